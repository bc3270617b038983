"""SAC against Stable-Baselines3: four updates from the same state, batches and random numbers."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

import ajax.agents.sac as module
from ajax.agents.sac import SAC, soft_value
from ajax.core.learn import adam, polyak
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso
from tests.conformance.conventions import linear_log_alpha, tanh_eps
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import Leaf, ensemble, mlp


@cache
def check() -> Check:
    """SAC and its record."""
    return check_of(Record("sac"))


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    config = record.config
    critic = QEnsemble(Torso(widths=tuple(config["critic_hidden"])))
    actor = SquashedPolicy(config["act_dim"], Torso(widths=tuple(config["actor_hidden"])))
    return Check(
        record=record,
        agent=SAC(
            gamma=config["gamma"],
            tau=config["tau"],
            learning_rate=config["lr"],
            actor_learning_rate=config["lr"],
            alpha_learning_rate=config["lr"],
        ),
        module=module,
        networks={
            "actor": Network(
                actor, mlp("MLP_0", "actor/layer0", "actor/layer1", ("actor/mean", "actor/log_std")), "opt_actor"
            ),
            "critic": Network(critic, ensemble("VmapMLP_0", ("critic1", "critic2"), 3), "opt_critic"),
            "target": Network(critic, ensemble("VmapMLP_0", ("target_critic1", "target_critic2"), 3)),
            "log_alpha": Network(Scalar(), [Leaf("value", ("log_alpha",), "scalar")], "opt_alpha"),
        },
        draws={"action": "action_noise", "next_action": "next_action_noise"},
        conventions=(tanh_eps, linear_log_alpha),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"tau": 0.0055},
        {"learning_rate": 3.03e-4},
        {"actor_learning_rate": 3.03e-4},
        {"alpha_learning_rate": 3.03e-4},
        {"target_entropy": -2.2},
        {"target_entropy": 2.0},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


def test_swapped_noises_are_caught():
    swapped = {"action": "next_action_noise", "next_action": "action_noise"}
    assert dataclasses.replace(check(), draws=swapped).misfits(1)


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "no entropy in the values": fault(module, "soft_value", lambda a, c, x, alpha, k: soft_value(a, c, x, 0.0, k)),
    "Adam's epsilon 1e-5": fault(module, "adam", lambda rate: adam(rate, eps=1e-5)),
    "tau swapped with 1 - tau": fault(module, "polyak", lambda t, o, tau: polyak(o, t, tau)),
    "the mean of the critics": fault(
        module, "soft_value", lambda a, c, x, alpha, k: soft_value(a, lambda *i: c(*i).mean(0)[None], x, alpha, k)
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
