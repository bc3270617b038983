"""TD3+BC against the authors' code (sfujim/TD3_BC): four updates from the same state, batches and random numbers."""

from __future__ import annotations

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import pytest

import ajax.agents.td3 as module
from tests.conformance.conventions import BehaviorCloningUnits
from tests.conformance.kit import Check, Patch, Record, fault
from tests.conformance.test_td3_sfujim import configured, networks


@cache
def check() -> Check:
    """TD3 with `bc_alpha`, and its record."""
    return check_of(Record("td3_bc"))


def check_of(record: Record) -> Check:
    """The same for another record of the kind."""
    return Check(
        record=record,
        agent=configured(record.config, bc_alpha=record.config["alpha"]),
        module=module,
        networks=networks(record.config),
        draws={"target_noise": "target_noise"},
        scale=record.config["max_action"],
        first_update=int(record.arrays["before/counter/total_it"]),
        extensions=(BehaviorCloningUnits(scale=record.config["max_action"]),),
    )


def test_float64():
    assert check().misfits() == []


def test_float32():
    assert check().misfits(x64=False) == []


@pytest.mark.parametrize(
    "wrong",
    [{"target_noise": 0.22}, {"target_noise_clip": 0.45}, {"bc_alpha": 2.6}, {"bc_alpha": None}, {"tau": 0.0055}],
    ids=str,
)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(2, agent=dataclasses.replace(check().agent, **wrong))


FAULTS: dict[str, Patch] = {
    "lambda not detached": fault(jax.lax, "stop_gradient", lambda x: x),
    "lambda without the absolute value": fault(jnp, "abs", lambda x: x),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name):
    assert check().misfits(2, faults=[FAULTS[name]])
