"""PQN against the authors' code (mttga/purejaxql): rollouts, their lambda returns, and every gradient step."""

from __future__ import annotations

import dataclasses
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ajax.agents.pqn as module
from ajax.agents.pqn import PQN
from ajax.core.hooks import Hooks
from ajax.core.learn import adam
from ajax.core.records import Batch, Clock, Inputs
from ajax.core.returns import lambda_returns
from ajax.core.schedules import Linear
from ajax.networks.heads import QValues
from ajax.networks.torsos import Torso
from tests.conformance.conventions import early_bootstrap, per_gradient_step
from tests.conformance.kit import STAGES, Check, Network, Patch, Record, cast, fault
from tests.conformance.submaps import Flat, Leaf, mlp


class RolloutCheck(Check):
    """A check of whole rollouts: an update of the record is one rollout and all its minibatch steps."""

    @cached_property
    def names(self) -> set[str]:
        """Without what the network has not: a normalization of the input, whose result the original throws away."""
        return {name for name in super().names if "input_norm" not in name and name != "opt/schedule_step"}

    def rollout(self, update: int, dtype: Any) -> Batch:
        """The record's rollout (time, n_envs, ...) as our environments' loop would hand it over."""
        b = cast(self.record.at("batch", update), dtype)
        if dtype is np.float64:  # the original scaled its rewards in this precision
            b["reward"] = self.record.at("f64/batch", update)["reward"]
        following = np.concatenate([b["obs"][1:], b["next_obs"][-1:]])
        # the original knows one flag for both ends of an episode, and cuts the bootstrap at it
        return Batch(Inputs(b["obs"]), b["action"], b["reward"], b["done"], np.zeros_like(b["done"]), Inputs(following))

    def stages(self, updates: int, agent: PQN, dtype: Any) -> dict[str, Flat]:
        """After 1, 2 and 4 gradient steps of the first rollout, then after 1, 2 and 4 rollouts."""

        def learn(agent: PQN, state: Any, rollout: Batch, index: jax.Array, clock: Clock) -> Any:
            rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[index], rollout)
            hooks = Hooks(agent, (), (), clock, jax.random.key(0))
            return agent.update(state, rows, jax.random.key(0), clock, hooks)[0]

        step, prepare = jax.jit(learn), jax.jit(lambda agent, state, rollout: agent.prepare(state, rollout))
        state, reached = cast(self.begin(), dtype), {}
        size = self.record.config["NUM_STEPS"] * self.record.config["NUM_ENVS"]
        for u in range(updates):
            rollout = self.prepared(prepare(agent, state, self.rollout(u, dtype)), u)
            for i, index in enumerate(self.minibatches(u)):
                clock = Clock(dtype(u * size), np.int32(u * len(self.minibatches(u)) + i), dtype(self.horizon))
                state = step(agent, state, rollout, index, clock)
                if u == 0 and i + 1 in STAGES:
                    reached[STAGES[i + 1].replace("after", "gradstep")] = self.read(state)
            if u + 1 in STAGES:
                reached[STAGES[u + 1]] = self.read(state)
        return reached

    def prepared(self, rollout: Batch, update: int) -> Batch:
        """The rollout that is learned from, given what `prepare` made."""
        return rollout

    def minibatches(self, update: int) -> np.ndarray:
        """Rows of the rollout, time-major here and there, in every minibatch."""
        return self.record.at("draw", update)["permutation"].reshape(
            self.record.config["NUM_EPOCHS"] * self.record.config["NUM_MINIBATCHES"], -1
        )


class LearningCheck(RolloutCheck):
    """The same of the learning phase alone: the targets are the record's."""

    def prepared(self, rollout: Batch, update: int) -> Batch:
        """The rollout with the record's targets."""
        target = jnp.asarray(self.record.at("f64/mid", update)["target"], rollout.reward.dtype)
        return rollout.replace(extras=rollout.extras | {"target": target})


@cache
def check(kind: type[RolloutCheck] = RolloutCheck) -> RolloutCheck:
    """PQN and its record."""
    record = Record("pqn")
    config = record.config
    n_layers = config["NUM_LAYERS"]
    q = QValues(config["num_actions"], Torso(widths=(config["HIDDEN_SIZE"],) * n_layers, layer_norm=True))
    norms = [
        Leaf(f"MLP_0/LayerNorm_{i}/{part}", (f"q/norm{i}/{part}",))
        for i in range(n_layers)
        for part in ("scale", "bias")
    ]
    return kind(
        record=record,
        agent=PQN(
            gamma=config["GAMMA"],
            td_lambda=config["LAMBDA"],
            learning_rate=Linear(start=config["LR"], end=0.0),
            max_grad_norm=config["MAX_GRAD_NORM"],
        ),
        module=module,
        horizon=config["TOTAL_TIMESTEPS_DECAY"],
        networks={
            "q": Network(q, [*mlp("MLP_0", *(f"q/dense{i}" for i in range(n_layers + 1))), *norms], "opt", clips=True)
        },
        conventions=(early_bootstrap, per_gradient_step) if kind is RolloutCheck else (per_gradient_step,),
    )


@pytest.mark.parametrize("kind", [RolloutCheck, LearningCheck])
@pytest.mark.parametrize("x64", [True, False], ids=["float64", "float32"])
def test_updates(kind, x64):
    assert check(kind).misfits(x64=x64) == []


def test_lambda_returns_are_theirs():
    with early_bootstrap(), jax.enable_x64(True):
        state = cast(check().begin(), np.float64)
        targets = check().agent.prepare(state, check().rollout(0, np.float64)).extras["target"]
    np.testing.assert_allclose(targets, check().record.at("f64/mid", 0)["target"], rtol=1e-10)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"td_lambda": 0.98 * 0.95},
        {"learning_rate": Linear(start=1.01e-3, end=0.0)},
        {"learning_rate": 1e-3},
        {"max_grad_norm": 1.05 * 2.5},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(1, agent=dataclasses.replace(check().agent, **wrong))


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(
        module, "lambda_returns", lambda r, v, term, trunc, gamma, lam: lambda_returns(r, v, 0 * term, term, gamma, lam)
    ),
    "the trace goes on through ends": fault(
        module,
        "lambda_returns",
        lambda r, v, term, trunc, gamma, lam: lambda_returns(r, v, 0 * term, trunc, gamma, lam),
    ),
    "one-step targets": fault(
        module, "lambda_returns", lambda r, v, term, trunc, gamma, lam: lambda_returns(r, v, term, trunc, gamma, 0.0)
    ),
    "the largest value for that of the action": fault(module, "pick", lambda values, index: values.max(-1)),
    "Adam for RAdam": fault(module, "radam", adam),
    "twice the loss": fault(jnp, "square", lambda x: 2 * x * x),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(1, faults=[FAULTS[name]])


def test_the_same_order_in_every_epoch_is_caught(monkeypatch):
    rows = check().minibatches(0)
    half = len(rows) // check().record.config["NUM_EPOCHS"]
    monkeypatch.setattr(RolloutCheck, "minibatches", lambda self, update: np.concatenate([rows[:half], rows[:half]]))
    assert check().misfits(1)
