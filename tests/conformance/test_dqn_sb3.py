"""DQN against Stable-Baselines3: four updates from the same state and batches."""

from __future__ import annotations

import dataclasses
from functools import cache

import jax.numpy as jnp
import pytest

import ajax.agents.dqn as module
from ajax.agents.dqn import DQN
from ajax.core.learn import descend
from ajax.core.losses import huber
from ajax.networks.heads import QValues
from ajax.networks.torsos import Torso
from tests.conformance.conventions import late_refresh, torch_clip
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import mlp


@cache
def check() -> Check:
    """DQN and its record."""
    return check_of(Record("dqn"))


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    config = record.config
    q = QValues(config["num_actions"], Torso(widths=tuple(config["hidden"])))
    layers = [f"layer{i}" for i in range(len(config["hidden"]) + 1)]
    return Check(
        record=record,
        agent=DQN(
            gamma=config["gamma"],
            learning_rate=config["lr"],
            adam_eps=config["adam_eps"],
            max_grad_norm=config["max_grad_norm"],
            target_period=config["target_update_interval"],
        ),
        module=module,
        networks={
            "q": Network(q, mlp("MLP_0", *(f"q/{layer}" for layer in layers)), "opt", clips=True),
            "target": Network(q, mlp("MLP_0", *(f"target_q/{layer}" for layer in layers))),
        },
        # theirs counts before it asks whether to copy, ours after the step: see `late_refresh`
        first_update=int(record.arrays["before/counter/n_calls"]) + 1,
        conventions=(torch_clip,),
        expected=late_refresh,
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"learning_rate": 1.01e-3},
        {"adam_eps": 1e-5},
        {"max_grad_norm": 1.05},
        {"max_grad_norm": None},
        {"target_period": 1},
        {"double": True},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    agent = dataclasses.replace(check().agent, **wrong)
    clips = agent.max_grad_norm is not None
    q = dataclasses.replace(check().networks["q"], clips=clips)
    wrong_check = dataclasses.replace(check(), networks=check().networks | {"q": q})
    assert wrong_check.misfits(2, agent=agent)


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "the squared error": fault(module, "huber", lambda error, clip: 0.5 * jnp.square(error)),
    "twice the loss": fault(module, "huber", lambda error, clip: 2.0 * huber(error, clip)),
    "the target learns": fault(module, "select", lambda flag, new, old: new),
    "Q of the wrong action": fault(module, "pick", lambda values, index: values.max(-1)),
    "no step": fault(module, "descend", lambda net, tx, loss: (net, descend(net, tx, loss)[1])),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
