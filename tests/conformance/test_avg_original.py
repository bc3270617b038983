"""AVG against the authors' code (gauthamvasan/avg): four updates from the same state, transitions and noise."""

from __future__ import annotations

import dataclasses
from functools import cache, cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ajax.agents.avg as module
from ajax.agents.avg import AVG
from ajax.core.distributions import TanhNormal
from ajax.core.learn import adam
from ajax.core.records import Batch, Inputs
from ajax.core.statistics import ReturnScale, RunningStats
from ajax.networks.heads import QEnsemble, SquashedPolicy
from ajax.networks.torsos import Torso
from tests.conformance.conventions import exact_bias_correction, log_variance
from tests.conformance.kit import STAGES, Check, Network, Patch, Record, cast, fault
from tests.conformance.submaps import Flat, Leaf, mlp

STATISTICS = {"reward": "reward_rms", "discount": "gamma_rms", "square": "return_sq_rms"}
NUMBERS = {"count": "n", "mean": "mean", "m2": "sum_sq"}


class Scaler:
    """The original's return scaler as our `ReturnScale`; it has the two methods of a `Network`."""

    def load(self, flat: Flat) -> ReturnScale:
        """The statistics at a stage of the record."""
        fields = {
            ours: RunningStats(
                **{number: np.float32(flat[f"scaler/{theirs}/{name}"]) for number, name in NUMBERS.items()}
            )
            for ours, theirs in STATISTICS.items()
        }
        return ReturnScale(running=flat["scaler/G"], **fields)

    def read(self, scale: ReturnScale) -> Flat:
        """The statistics as the record would hold them."""
        flat = {
            f"scaler/{theirs}/{name}": np.asarray(getattr(getattr(scale, ours), number))
            for ours, theirs in STATISTICS.items()
            for number, name in NUMBERS.items()
        }
        return flat | {"scaler/G": np.asarray(scale.running)}


class TransitionCheck(Check):
    """A check of updates on single transitions, whose action is a draw of the policy as it stands."""

    @cached_property
    def names(self) -> set[str]:
        """Without the statistics of returns, which the original keeps and never reads."""
        return {name for name in super().names if "/return_rms/" not in name}

    def stages(self, updates: int, agent: AVG, dtype: Any) -> dict[str, Flat]:
        """Our state after 1, 2 and 4 transitions."""

        def learn(agent: AVG, state: Any, b: dict[str, jax.Array], noises: dict[str, jax.Array]) -> Any:
            now, after = Inputs(b["obs"][None]), Inputs(b["next_obs"][None])
            noise = noises["action_noise"][None]
            action, _ = agent.pi(state, now).from_noise(noise)
            done = b["done"][None]
            rows = Batch(now, action, b["reward"][None], done, jnp.zeros_like(done), after, {"noise": noise})
            return self.step(agent, state, rows, {"next_action": noises["next_action_noise"][None]}, np.int32(0))

        step, state, reached = jax.jit(learn), cast(self.begin(), dtype), {}
        for u in range(updates):
            inputs = cast((self.record.at("batch", u), self.record.at("draw", u)), dtype)
            state = step(agent, state, *inputs)
            if u + 1 in STAGES:
                reached[STAGES[u + 1]] = self.read(state)
        return reached


@cache
def check() -> TransitionCheck:
    """AVG and its record."""
    record = Record("avg")
    config = record.config
    actor_torso, critic_torso = (
        Torso(widths=(width, width), activation="leaky_relu") for width in (config["nhid_actor"], config["nhid_critic"])
    )
    critic = [
        Leaf(f"VmapMLP_0/Dense_{i}/{part}", (f"critic/{layer}/{part}",), "stack")
        for i, layer in enumerate(("layer0", "layer1", "q"))
        for part in ("kernel", "bias")
    ]
    return TransitionCheck(
        record=record,
        agent=AVG(
            gamma=config["gamma"],
            alpha=config["alpha"],
            learning_rate=config["critic_lr"],
            actor_learning_rate=config["actor_lr"],
            adam_b1=config["adam_betas"][0],
        ),
        module=module,
        networks={
            "actor": Network(
                SquashedPolicy(config["act_dim"], actor_torso, unit_features=True),
                mlp("MLP_0", "actor/layer0", "actor/layer1", ("actor/mu", "actor/log_std")),
                "opt_actor",
            ),
            "critic": Network(QEnsemble(critic_torso, 1, unit_features=True), critic, "opt_critic"),
            "scale": Scaler(),  # type: ignore[dict-item]
        },
        conventions=(log_variance, exact_bias_correction),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


def test_the_authors_defaults_are_ours():
    ours, theirs = AVG(), check().agent
    assert ours == theirs


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"alpha": 1.02 * 0.07},
        {"learning_rate": 1.01 * 8.7e-3},
        {"actor_learning_rate": 1.01 * 6.3e-3},
        {"adam_b1": 0.9},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


def without_jacobian(self: TanhNormal, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A squashed draw with the density of the draw that was not."""
    log_normal = -0.5 * jnp.square(noise) - self.log_std - 0.5 * np.log(2 * np.pi)
    return jnp.tanh(self.loc + jnp.exp(self.log_std) * noise), log_normal.sum(-1)


ADD = ReturnScale.add
FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "TD errors not scaled": fault(ReturnScale, "sigma", 1.0),
    "half the squared error": fault(jnp, "square", lambda x: 0.5 * x * x),
    "the return not started again": fault(
        ReturnScale,
        "add",
        lambda self, r, term, trunc, gamma: ADD(self, r, term, trunc, gamma).replace(running=self.running + r),
    ),
    "the discount not 0 at the end": fault(
        ReturnScale,
        "add",
        lambda self, r, term, trunc, gamma: ADD(self, r, term, trunc, gamma).replace(discount=self.discount.add(gamma)),
    ),
    "a discounted return": fault(
        ReturnScale,
        "add",
        lambda self, r, term, trunc, gamma: ADD(self.replace(running=gamma * self.running), r, term, trunc, gamma),
    ),
    "no tanh Jacobian": fault(TanhNormal, "from_noise", without_jacobian),
    "Adam's epsilon 1e-5": fault(module, "adam", lambda rate, b1: adam(rate, b1=b1, eps=1e-5)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])


def test_features_of_another_norm_are_caught():
    right = check().networks["actor"]
    plain = dataclasses.replace(right, module=dataclasses.replace(right.module, unit_features=False))
    assert dataclasses.replace(check(), networks=check().networks | {"actor": plain}).misfits(1)
