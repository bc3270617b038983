"""Our CrossQ against the installed SBX's: the check of the authors' record, on a record made now."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

pytest.importorskip("sbx", reason="make conformance-live installs it")

from tests.conformance import test_crossq_adityab
from tests.conformance.conventions import linear_log_alpha
from tests.conformance.kit import Check
from tests.conformance.live.capture import record
from tests.conformance.live.sbx import CrossQ
from tests.conformance.test_conventions import without

WRONG = (
    {"adam_b1": 0.9},
    {"gamma": 0.98},
    {"policy_delay": 2},
    {"alpha_learning_rate": 1.01e-3},
    {"target_entropy": -2.2},
)


@cache
def check() -> Check:
    """CrossQ, and what its namesake does."""
    return dataclasses.replace(test_crossq_adityab.check_of(record(CrossQ)), conventions=(linear_log_alpha,))


def test_float64():
    assert check().misfits() == []


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_number_is_caught(wrong):
    assert check().misfits(4, agent=dataclasses.replace(check().agent, **wrong))


def test_the_loss_of_the_temperature_is_linear_in_its_logarithm():
    """As the registered convention says of other libraries, too."""
    assert without(check(), "linear_log_alpha").misfits(4)
