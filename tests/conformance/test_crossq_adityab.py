"""CrossQ against the authors' code (adityab/CrossQ): four updates, over the end of the renormalization's warm-up."""

from __future__ import annotations

import contextlib
import dataclasses
from functools import cache
from typing import Any
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest

import ajax.agents.crossq as module
import ajax.networks.renorm as renorm
from ajax.agents.crossq import CrossQ
from ajax.core.learn import adam
from ajax.core.records import Net
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso
from tests.conformance.kit import Check, Network, Patch, Record, fault
from tests.conformance.submaps import Leaf, mlp

CRITICS = ("critic0", "critic1")


def norms(path: str, nets: tuple[str, ...], n: int, parts: tuple[str, ...]) -> list[Leaf]:
    """Parts of the normalization layers at `path`, stacked where several nets of the record are one of ours."""
    join: Any = "stack" if len(nets) > 1 else "alone"
    return [
        Leaf(f"{path}/BatchRenorm_{i}/{part}", tuple(f"{net}/norm{i}/{part}" for net in nets), join)
        for i in range(n)
        for part in parts
    ]


def network(head: Any, path: str, nets: tuple[str, ...], layers: list[Leaf], opt: str) -> Network:
    """A network with a normalization layer before every dense one."""
    statistics = norms(path, nets, 3, ("mean", "var", "steps"))
    return Network(head, [*layers, *norms(path, nets, 3, ("scale", "bias"))], opt, statistics=statistics)


@cache
def check() -> Check:
    """CrossQ and its record."""
    return check_of(Record("crossq"))


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    config = record.config
    torso, critic_torso = (Torso(widths=tuple(config[f"{net}_hidden"])) for net in ("actor", "critic"))
    # the record's layers begin with step counts of their own, near or past the end of the warm-up
    warmup = config["renorm_warmup_steps"]
    critics = [
        Leaf(f"VmapMLP_0/Dense_{i}/{part}", tuple(f"{net}/dense{i}/{part}" for net in CRITICS), "stack")
        for i in range(3)
        for part in ("kernel", "bias")
    ]
    return Check(
        record=record,
        agent=CrossQ(
            gamma=config["gamma"],
            learning_rate=config["lr"],
            actor_learning_rate=config["lr"],
            adam_b1=config["adam_b1"],
            alpha_learning_rate=config["alpha_lr"],
            policy_delay=config["policy_delay"],
            renorm_warmup=warmup,
        ),
        module=module,
        networks={
            "actor": network(
                SquashedPolicy(config["act_dim"], torso, warmup),
                "MLP_0",
                ("actor",),
                mlp("MLP_0", "actor/dense0", "actor/dense1", ("actor/mean", "actor/log_std")),
                "opt_actor",
            ),
            "critic": network(QEnsemble(critic_torso, renorm=warmup), "VmapMLP_0", CRITICS, critics, "opt_critic"),
            "log_alpha": Network(Scalar(), [Leaf("value", ("log_alpha",))], "opt_alpha"),
        },
        draws={"next_action": "next_action_noise", "action": "action_noise"},
        first_update=int(record.arrays["before/counter/n_updates"]),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


def test_the_authors_defaults_are_ours():
    ours, agent = check().agent, CrossQ()
    for name in ("gamma", "learning_rate", "actor_learning_rate", "adam_b1", "alpha_learning_rate", "policy_delay"):
        assert getattr(ours, name) == getattr(agent, name), name
    assert ours.renorm_warmup == agent.renorm_warmup
    config = check().record.config
    assert (config["bn_momentum"], config["bn_epsilon"]) == (renorm.MOMENTUM, renorm.EPSILON)
    assert (config["renorm_r_max"], config["renorm_d_max"]) == (renorm.R_MAX, renorm.D_MAX)


@pytest.mark.parametrize(
    "wrong",
    [
        {"gamma": 0.995 * 0.99},
        {"learning_rate": 1.01e-3},
        {"actor_learning_rate": 1.01e-3},
        {"alpha_learning_rate": 1.01e-3},
        {"adam_b1": 0.9},
        {"target_entropy": -2.2},
        {"policy_delay": 1},
    ],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


def separate_passes() -> contextlib.AbstractContextManager:
    """Normalize the next rows by statistics of their own."""
    train = Net.train

    def apart(net: Net, *inputs: Any) -> Any:
        if not isinstance(net.module, QEnsemble):
            return train(net, *inputs)
        x, action = inputs
        halves = [(type(x)(o), a) for o, a in zip(jnp.split(x.obs, 2), jnp.split(action, 2), strict=True)]
        (q, statistics), (next_q, _) = (train(net, *half) for half in halves)
        return jnp.concatenate([q, next_q], 1), statistics

    return mock.patch.object(Net, "train", apart)


def no_renormalization(mean: Any, var: Any, *running: Any) -> Any:
    """r = 1 and d = 0."""
    return jnp.ones_like(mean), jnp.zeros_like(mean)


FAULTS: dict[str, Patch] = {
    "the terminal flag ignored": fault(module, "td_target", lambda r, discount, v: r + 0.99 * v),
    "separate passes": separate_passes,
    "batch statistics never kept": lambda: mock.patch.object(
        Net, "train", lambda net, *inputs, train=Net.train: (train(net, *inputs)[0], net.statistics)
    ),
    "running statistics in training": lambda: mock.patch.object(
        Net, "train", lambda net, *inputs, train=Net.train: (net(*inputs), train(net, *inputs)[1])
    ),
    "plain batch normalization for ever": fault(renorm, "_correction", no_renormalization),
    "r not limited": fault(renorm, "R_MAX", np.inf),
    "momentum 0.9": fault(renorm, "MOMENTUM", 0.9),
    "epsilon 1e-5": fault(renorm, "EPSILON", 1e-5),
    "beta_1 of the temperature 0.5": fault(module, "adam", lambda rate, b1=0.9: adam(rate, b1=0.5)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(4, faults=[FAULTS[name]])
