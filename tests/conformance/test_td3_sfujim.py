"""TD3 against the authors' code (sfujim/TD3): four updates from the same state, batches and random numbers."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import flax.linen as nn
import jax
import pytest

import ajax.agents.td3 as module
from ajax.agents.td3 import TD3
from ajax.core.learn import adam, polyak
from ajax.core.records import Inputs
from ajax.networks.heads import DeterministicPolicy, QEnsemble
from ajax.networks.torsos import Torso
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import ensemble, mlp

LAYERS = ("layer0", "layer1", "layer2")


class ScaledCritics(nn.Module):
    """Critics that read actions in the environment's units, as the original's do."""

    torso: Torso
    scale: float
    n_critics: int = 2

    @nn.compact
    def __call__(self, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, scale * a)."""
        return QEnsemble(self.torso, self.n_critics, name="critics")(x, self.scale * action)


def networks(config: dict[str, Any]) -> dict[str, Network]:
    """TD3's networks in a record of the authors'; TD3+BC's are the same."""
    torso, size = Torso(widths=tuple(config["hidden_layers"])), config["act_dim"]
    actor, critic = DeterministicPolicy(size, torso), ScaledCritics(torso, config["max_action"])

    def pair(prefix: str) -> list:
        return ensemble("critics/VmapMLP_0", (f"{prefix}critic1", f"{prefix}critic2"), 3)

    return {
        "actor": Network(actor, mlp("MLP_0", *(f"actor/{layer}" for layer in LAYERS)), "opt_actor"),
        "critic": Network(critic, pair(""), "opt_critic"),
        "target_actor": Network(actor, mlp("MLP_0", *(f"target_actor/{layer}" for layer in LAYERS))),
        "target_critic": Network(critic, pair("target_")),
    }


def configured(config: dict[str, Any], **fields: Any) -> TD3:
    """Our configuration for a record: its noise is in units of a box [-max_action, max_action], ours of [-1, 1]."""
    return TD3(
        gamma=config["discount"],
        tau=config["tau"],
        learning_rate=config["critic_lr"],
        actor_learning_rate=config["actor_lr"],
        target_noise=config["policy_noise"] / config["max_action"],
        target_noise_clip=config["noise_clip"] / config["max_action"],
        policy_delay=config["policy_freq"],
        **fields,
    )


@cache
def check() -> Check:
    """TD3 and its record."""
    return check_of(Record("td3"))


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    return Check(
        record=record,
        agent=configured(record.config),
        module=module,
        networks=networks(record.config),
        draws={"target_noise": "target_noise"},
        scale=record.config["max_action"],
        first_update=int(record.arrays["before/counter/total_it"]),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


def test_the_authors_defaults_are_ours():
    ours = configured(check().record.config)
    assert ours == TD3(), "their launcher's 0.2 and 0.5, delay 2, tau 0.005 and step size 3e-4"


@pytest.mark.parametrize(
    "wrong",
    [
        {"target_noise": 0.22},
        {"target_noise_clip": 0.45},
        {"tau": 0.0055},
        {"gamma": 0.995 * 0.99},
        {"learning_rate": 3.03e-4},
        {"actor_learning_rate": 3.03e-4},
        {"policy_delay": 1},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "tau swapped with 1 - tau": fault(module, "polyak", lambda t, o, tau: polyak(o, t, tau)),
    "Adam's epsilon 1e-5": fault(module, "adam", lambda rate: adam(rate, eps=1e-5)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
