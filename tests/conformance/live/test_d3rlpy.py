"""Our TD3+BC and IQL against the installed d3rlpy's: the checks of the authors' records, on records made now."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

pytest.importorskip("d3rlpy", reason="make conformance-live installs it")

from ajax import Torso
from tests.conformance import test_iql_ikostrikov, test_td3bc_sfujim
from tests.conformance.kit import Check
from tests.conformance.live import d3rlpy
from tests.conformance.live.capture import record

WRONG = {
    "TD3BC": ({"target_noise": 0.33}, {"target_noise_clip": 0.36}, {"bc_alpha": 2.1}, {"tau": 0.011}),
    "IQL": ({"expectile": 0.7}, {"beta": 2.1}, {"max_weight": 1.2}, {"gamma": 0.97}, {"value_learning_rate": 1.1e-3}),
}


@cache
def check(name: str) -> Check:
    """One agent, and what its namesake does."""
    if name == "TD3BC":
        return test_td3bc_sfujim.check_of(record(d3rlpy.TD3BC))
    made = test_iql_ikostrikov.check_of(record(d3rlpy.IQL))
    config = made.record.config
    policy = d3rlpy.SigmoidDeviation(config["act_dim"], Torso(widths=tuple(config["hidden"])))
    actor = dataclasses.replace(made.networks["actor"], module=policy)
    return dataclasses.replace(
        made,
        agent=dataclasses.replace(made.agent, actor_learning_rate=config["actor_lr"]),
        networks=made.networks | {"actor": actor},
        extensions=(d3rlpy.EarlyValue(),),
    )


@pytest.mark.parametrize("name", WRONG)
def test_float64(name):
    assert check(name).misfits() == []


@pytest.mark.parametrize("name", WRONG)
def test_float32(name):
    assert check(name).misfits(2, x64=False) == []


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in WRONG for wrong in WRONG[name]], ids=str)
def test_a_wrong_number_is_caught(name, wrong):
    assert check(name).misfits(2, agent=dataclasses.replace(check(name).agent, **wrong))


def test_the_actor_of_td3_bc_learns_at_the_first_update_and_then_at_every_second():
    """Ours, as the authors', at the second: the phase is the only difference, and the check allows for it."""
    late = dataclasses.replace(check("TD3BC"), first_update=check("TD3BC").first_update + 1)
    assert any(line.startswith("after1/actor/") for line in late.misfits(1))


def test_the_critics_of_iql_read_the_value_before_its_step():
    found = dataclasses.replace(check("IQL"), extensions=()).misfits(1)
    assert found and all("critic" in line for line in found)


def test_the_deviation_of_iql_is_a_sigmoid():
    networks = check("IQL").networks
    clipped = test_iql_ikostrikov.check_of(check("IQL").record).networks["actor"]
    found = dataclasses.replace(check("IQL"), networks=networks | {"actor": clipped}).misfits(1)
    assert found and all("actor" in line for line in found)
