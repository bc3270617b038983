"""PPO against Stable-Baselines3: rollouts, their advantages, and every gradient step from the same state and data."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ajax.agents.ppo as module
from ajax.agents.ppo import PPO
from ajax.core.hooks import Hooks
from ajax.core.losses import clipped_surrogate
from ajax.core.records import Batch, Clock, Inputs
from ajax.core.returns import gae
from ajax.networks.heads import ActorCritic, GaussianPolicy, Value
from ajax.networks.torsos import Torso
from tests.conformance.conventions import torch_clip, unbiased_std
from tests.conformance.kit import STAGES, Check, Network, Patch, Record, cast, fault
from tests.conformance.submaps import Flat, Leaf, mlp


class RolloutCheck(Check):
    """A check of whole rollouts: an update of the record is one rollout and all its minibatch steps."""

    def rollout(self, agent: PPO, state: Any, update: int, dtype: Any) -> Batch:
        """The record's rollout (time, n_envs, ...) as our environments' loop would hand it over."""
        b = cast(self.record.at("batch", update), dtype)
        flat = Inputs(b["obs"].reshape(-1, b["obs"].shape[-1]))
        shape = b["reward"].shape
        log_prob = agent.pi(state, flat).log_prob(b["action"].reshape(flat.obs.shape[0], -1)).reshape(shape)
        # the record's episodes end in terminations alone: the original folds truncations into the rewards
        terminated = np.concatenate([b["episode_start"][1:], b["last_done"][None]])
        following = np.concatenate([b["obs"][1:], b["last_obs"][None]])
        extras = {"log_prob": log_prob, "value": agent.v(state, flat).reshape(shape)}
        return Batch(
            Inputs(b["obs"]), b["action"], b["reward"], terminated, np.zeros_like(terminated), Inputs(following), extras
        )

    def minibatches(self, update: int) -> np.ndarray:
        """Rows of our time-major rollout in every minibatch; theirs counts environment by environment."""
        n_steps, n_envs = self.record.config["n_steps"], self.record.config["n_envs"]
        env, time = np.divmod(self.record.at("draw", update)["permutation"], n_steps)
        return (time * n_envs + env).reshape(-1, self.record.config["batch_size"])

    def stages(self, updates: int, agent: PPO, dtype: Any) -> dict[str, Flat]:
        """After 1, 2 and 4 gradient steps of the first rollout, then after 1, 2 and 4 rollouts."""

        def learn(agent: PPO, state: Any, rollout: Batch, index: jax.Array, clock: Clock) -> Any:
            rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[index], rollout)
            hooks = Hooks(agent, (), (), clock, jax.random.key(0))
            return agent.update(state, rows, jax.random.key(0), clock, hooks)[0]

        step, prepare = jax.jit(learn), jax.jit(lambda agent, state, rollout: agent.prepare(state, rollout))
        clock = Clock(jnp.float32(0), jnp.int32(0), jnp.float32(1))
        state, reached = cast(self.begin(), dtype), {}
        for u in range(updates):
            rollout = prepare(agent, state, self.rollout(agent, state, u, dtype))
            for i, index in enumerate(self.minibatches(u)):
                state = step(agent, state, rollout, index, clock)
                if u == 0 and i + 1 in STAGES:
                    reached[STAGES[i + 1].replace("after", "gradstep")] = self.read(state)
            if u + 1 in STAGES:
                reached[STAGES[u + 1]] = self.read(state)
        return reached


@cache
def check() -> RolloutCheck:
    """PPO and its record."""
    return check_of(Record("ppo"))


def check_of(record: Record) -> RolloutCheck:
    """The same for another record of the kind."""
    config = record.config
    policy = GaussianPolicy(config["act_dim"], Torso(widths=tuple(config["actor_hidden"]), activation="tanh"))
    value = Value(Torso(widths=tuple(config["critic_hidden"]), activation="tanh"))
    leaves = [
        *mlp("policy/MLP_0", "actor/layer0", "actor/layer1", "actor/mean"),
        Leaf("policy/log_std", ("actor/log_std",)),
        *mlp("value/MLP_0", "critic/layer0", "critic/layer1", "critic/value"),
    ]
    return RolloutCheck(
        record=record,
        agent=PPO(
            gamma=config["gamma"],
            gae_lambda=config["gae_lambda"],
            clip=config["clip_range"],
            learning_rate=config["lr"],
            adam_eps=config["adam_eps"],
            max_grad_norm=config["max_grad_norm"],
            value_coef=2.0 * config["vf_coef"],  # our value loss has the factor 1/2 in itself
            entropy_coef=config["ent_coef"],
        ),
        module=module,
        networks={"net": Network(ActorCritic(policy, value), leaves, "opt", clips=True)},
        conventions=(torch_clip, unbiased_std),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


def test_advantages_and_returns_are_theirs():
    with jax.enable_x64(True):
        state, agent = cast(check().begin(), np.float64), check().agent
        extras = agent.prepare(state, check().rollout(agent, state, 0, np.float64)).extras
    mid = check().record.at("f64/mid", 0)
    for ours, theirs in (("value", "value"), ("log_prob", "log_prob"), ("advantage", "advantage")):
        np.testing.assert_allclose(extras[ours], mid[theirs], rtol=1e-10, err_msg=theirs)
    np.testing.assert_allclose(extras["target_value"], mid["return"], rtol=1e-10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gae_lambda": 0.98 * 0.95},
        {"gamma": 0.995 * 0.99},
        {"clip": 0.105},
        {"entropy_coef": 0.015},
        {"value_coef": 0.5},
        {"max_grad_norm": 0.525},
        {"learning_rate": 3.03e-3},
        {"adam_eps": 1e-8},
        {"standardize_advantages": False},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(1, agent=dataclasses.replace(check().agent, **wrong))


FAULTS: dict[str, Patch] = {
    "episode ends ignored": fault(
        module, "gae", lambda r, v, nv, term, trunc, gamma, lam: gae(r, v, nv, 0 * term, trunc, gamma, lam)
    ),
    "terminations taken for truncations": fault(
        module, "gae", lambda r, v, nv, term, trunc, gamma, lam: gae(r, v, nv, trunc, term, gamma, lam)
    ),
    "the maximum of the two gains": fault(
        module, "clipped_surrogate", lambda ratio, a, clip: -clipped_surrogate(ratio, -a, clip)
    ),
    "no clipping": fault(module, "clipped_surrogate", lambda ratio, a, clip: ratio * a),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(1, faults=[FAULTS[name]])


def test_minibatches_in_the_wrong_order_are_caught(monkeypatch):
    rows = check().record.at("draw", 0)["permutation"].reshape(-1, check().record.config["batch_size"])
    monkeypatch.setattr(RolloutCheck, "minibatches", lambda self, update: rows)
    assert check().misfits(1)
