"""Schedules: their value at the start, on the way and after, and that they follow steps, not updates."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from ajax.core.records import Clock
from ajax.core.schedules import Cosine, Linear, value_at


def at(step: float, update: int = 0, horizon: float = 1000.0) -> Clock:
    return Clock(jnp.float32(step), jnp.int32(update), jnp.float32(horizon))


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (50, 0.55), (100, 0.1), (101, 0.1), (1000, 0.1), (5000, 0.1)])
def test_linear_moves_over_a_fraction_of_the_run(step, value):
    assert float(Linear(start=1.0, end=0.1, fraction=0.1).at(at(step))) == pytest.approx(value, abs=1e-6)


def test_linear_takes_the_whole_run_by_default():
    assert float(Linear(start=0.0, end=1.0).at(at(250))) == 0.25


@pytest.mark.parametrize(("step", "value"), [(0, 1.0), (50, 0.775), (75, 0.55), (150, 0.1), (1000, 0.1)])
def test_cosine_is_half_a_period(step, value):
    # a third of the way: 0.1 + 0.9 (1 + cos 60 degrees) / 2
    assert float(Cosine(start=1.0, end=0.1, fraction=0.15).at(at(step))) == pytest.approx(value, abs=1e-6)


def test_updates_do_not_move_it():
    assert float(Linear(start=0.0, end=1.0).at(at(250, update=900))) == 0.25


def test_a_plain_number_is_itself():
    assert value_at(0.3, at(500)) == 0.3
    assert float(value_at(Linear(start=0.0, end=1.0), at(500))) == 0.5
    assert float(value_at(Cosine(start=1.0), at(500))) == pytest.approx(0.5)


def test_a_schedule_is_traced():
    value = jax.jit(value_at)(Linear(start=0.0, end=2.0), at(500))
    assert float(value) == 1.0
