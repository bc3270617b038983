"""IQL against the authors' code (ikostrikov/implicit_q_learning): four updates, weights at their limit among them."""

from __future__ import annotations

import dataclasses
from functools import cache

import jax.numpy as jnp
import pytest

import ajax.agents.iql as module
from ajax.agents.iql import IQL
from ajax.core.learn import adam, polyak
from ajax.core.losses import expectile
from ajax.core.schedules import Cosine
from ajax.networks.heads import QEnsemble, TanhMeanPolicy, Value
from ajax.networks.torsos import Torso
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import Leaf, mlp

LAYERS = ("dense0", "dense1", "dense2")


def loaded() -> Record:
    """The record; the actor's optimizer counts its steps twice, once for its schedule."""
    record = Record("iql")
    for key in [key for key in record.arrays if key.endswith("/schedule_step")]:
        assert record.arrays.pop(key) == record.arrays[key.replace("schedule_", "")]
    return record


@cache
def check() -> Check:
    """IQL and its record."""
    return check_of(loaded())


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    config = record.config
    torso = Torso(widths=tuple(config["hidden"]))

    def pair(prefix: str) -> list[Leaf]:
        return [
            Leaf(f"VmapMLP_0/Dense_{i}/{part}", tuple(f"{prefix}critic{j}/{layer}/{part}" for j in (1, 2)), "stack")
            for i, layer in enumerate(LAYERS)
            for part in ("kernel", "bias")
        ]

    actor = [*mlp("MLP_0", "actor/dense0", "actor/dense1", "actor/mean"), Leaf("log_std", ("actor/log_std",))]
    return Check(
        record=record,
        agent=IQL(
            gamma=config["discount"],
            tau=config["tau"],
            learning_rate=config["critic_lr"],
            value_learning_rate=config["value_lr"],
            actor_learning_rate=Cosine(start=config["actor_lr"]),
            expectile=config["expectile"],
            beta=config["temperature"],
            max_weight=config["weight_cap"],
        ),
        module=module,
        networks={
            "actor": Network(TanhMeanPolicy(config["act_dim"], torso), actor, "opt_actor"),
            "critic": Network(QEnsemble(torso), pair(""), "opt_critic"),
            "target": Network(QEnsemble(torso), pair("target_")),
            "value": Network(Value(torso), mlp("MLP_0", *(f"value/{layer}" for layer in LAYERS)), "opt_value"),
        },
        first_update=int(record.arrays["before/opt_actor/step"]),
        horizon=config["max_steps"],
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


def test_the_authors_defaults_are_ours():
    assert check().agent == IQL()


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"tau": 0.0055},
        {"learning_rate": 3.03e-4},
        {"value_learning_rate": 3.03e-4},
        {"actor_learning_rate": 3e-4},
        {"expectile": 0.72},
        {"expectile": 0.3},
        {"beta": 3.06},
        {"beta": 1 / 3},
        {"max_weight": 1e6},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "the expectile's weights on the wrong side": fault(module, "expectile", lambda e, tau: expectile(-e, tau)),
    "the absolute error": fault(module, "expectile", lambda e, tau: jnp.where(e > 0, tau, 1 - tau) * jnp.abs(e)),
    "tau swapped with 1 - tau": fault(module, "polyak", lambda t, o, tau: polyak(o, t, tau)),
    "Adam's epsilon 1e-5": fault(module, "adam", lambda rate: adam(rate, eps=1e-5)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
