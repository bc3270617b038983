"""Scaled rewards are for the agent alone: the discount of their sums is the documented one, and what is reported is in
the environment's units."""

from __future__ import annotations

import numpy as np
import pytest

from tests.agents.contract import HIGH, LOW, NORMALIZED, ONE_KIND, SUBJECTS, rows, witnessed
from tests.environments.identity_env import TERMINATES_AT, TRUNCATES_AT

GOOD, BAD = sum(10 * t for t in range(TERMINATES_AT)), -sum(10 * t for t in range(TRUNCATES_AT))
"""What an episode of either sign returns without its actions and its draw."""
ACTIONS = TRUNCATES_AT * max(-LOW + 0.5, HIGH) + 1
"""Bound on what those add."""


@pytest.mark.parametrize(("name", "kind"), ONE_KIND)
def test_the_discount_is_the_one_given(name, kind):
    lanes = witnessed(name, kind, **NORMALIZED)[0].session.lanes
    assert float(lanes.task.normalize.reward_gamma) == NORMALIZED["reward_normalization_gamma"]


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_without_one_there_is_no_discounting(name, kind):
    task = witnessed(name, kind)[0].session.lanes.task
    assert float(task.normalize.reward_gamma) == 0.0 and not task.normalize.rewards


@pytest.mark.parametrize(("name", "kind"), ONE_KIND)
def test_the_agent_learns_from_scaled_rewards(name, kind):
    scaled, plain = (np.abs(rows(witnessed(name, kind, **options)[1]).reward) for options in (NORMALIZED, {}))
    assert scaled.max() <= 10.0 < plain.max()
    late = witnessed(name, kind, **NORMALIZED)[1][-8:]
    assert np.abs(rows(late).reward).max() < 5.0


@pytest.mark.parametrize(("name", "kind"), ONE_KIND)
def test_returns_are_reported_in_the_environments_units(name, kind):
    result, _ = witnessed(name, kind, **NORMALIZED)
    outcome = result.evaluate(32)
    expected = np.where(outcome.lengths == TERMINATES_AT, GOOD, BAD)
    assert (np.abs(outcome.returns - expected) <= ACTIONS).all() and outcome.finished.all()
    trained, lengths = result.metrics["train/return"], result.metrics["train/length"]
    # the mean over episodes of either kind: their share follows from the mean length
    good = (TRUNCATES_AT - lengths) / (TRUNCATES_AT - TERMINATES_AT)
    assert (np.abs(trained - (good * GOOD + (1 - good) * BAD)) <= ACTIONS).all()
