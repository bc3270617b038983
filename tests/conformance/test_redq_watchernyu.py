"""REDQ against the authors' code (watchernyu/REDQ): one training call of four updates, with every draw."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import re
from functools import cache
from typing import Any
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest

import ajax.agents.redq as module
from ajax.agents.redq import REDQ, soft_value
from ajax.core.learn import adam, polyak
from ajax.networks.heads import Scalar, SquashedPolicy, members
from ajax.networks.torsos import Torso
from tests.conformance.conventions import early_actor, held_alpha, linear_log_alpha, tanh_eps
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import Leaf, ensemble, mlp
from tests.conformance.test_td3_sfujim import ScaledCritics


def joined(record: Record) -> Record:
    """The record with one optimizer for its critics' five, which step together, and without alpha beside log_alpha."""
    for key in [key for key in record.arrays if re.search(r"opt_critic\d/|/alpha$", key)]:
        array, new = record.arrays.pop(key), re.sub(r"opt_critic\d/", "opt_critic/", key)
        if key.endswith("/alpha"):
            log_alpha = record.arrays[f"{key.removesuffix('alpha')}log_alpha"].astype(np.float64)
            np.testing.assert_allclose(array, np.exp(log_alpha)[0], rtol=1e-6)
        else:
            assert new not in record.arrays or record.arrays[new] == array, "the critics' step counts differ"
            record.arrays[new] = array
    return record


@cache
def check() -> Check:
    """REDQ and its record."""
    record = joined(Record("redq"))
    config = record.config
    torso, n = Torso(widths=tuple(config["hidden"])), config["num_Q"]
    critic = ScaledCritics(torso, config["max_action"], n)

    def pairs(prefix: str) -> list[Leaf]:
        return ensemble("critics/VmapMLP_0", [f"{prefix}critic{i}" for i in range(n)], 3)

    return Check(
        record=record,
        agent=REDQ(
            gamma=config["gamma"],
            tau=1.0 - config["polyak"],
            learning_rate=config["lr"],
            actor_learning_rate=config["lr"],
            alpha_learning_rate=config["lr"],
            n_critics=n,
            n_target_critics=config["num_min"],
            policy_delay=config["policy_update_delay"],
        ),
        module=module,
        networks={
            "actor": Network(
                SquashedPolicy(config["act_dim"], torso),
                mlp("MLP_0", "actor/layer0", "actor/layer1", ("actor/mean", "actor/log_std")),
                "opt_actor",
            ),
            "critic": Network(critic, pairs(""), "opt_critic"),
            "target": Network(critic, pairs("target_")),
            "log_alpha": Network(Scalar(), [Leaf("value", ("log_alpha",), "scalar")], "opt_alpha"),
        },
        draws={"subset": "critic_subset", "next_action": "next_action_noise", "action": "action_noise"},
        scale=config["max_action"],
        conventions=(tanh_eps, linear_log_alpha, early_actor, held_alpha),
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
        {"policy_delay": 1},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


def valued(**changed: Any) -> Patch:
    """`soft_value`, as the conventions have it, with arguments replaced."""

    def patch() -> contextlib.AbstractContextManager:
        given_value = module.soft_value
        names = tuple(inspect.signature(soft_value).parameters)

        def value(*given: Any) -> Any:
            return given_value(*(changed.get(name, x) for name, x in zip(names, given, strict=True)))

        return mock.patch.object(module, "soft_value", value)

    return patch


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "the minimum over all critics": fault(module, "members", lambda critics, index: critics),
    "another pair of critics": fault(module, "members", lambda critics, index: members(critics, (index + 1) % 5)),
    "the mean of the pair": valued(over=jnp.mean),
    "the policy on the minimum": valued(over=jnp.min),
    "no entropy in the values": valued(alpha=0.0),
    "tau swapped with 1 - tau": fault(module, "polyak", lambda t, o, tau: polyak(o, t, tau)),
    "Adam's epsilon 1e-5": fault(module, "adam", lambda rate: adam(rate, eps=1e-5)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
