"""The answers of an agent that learns from recorded steps, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing.suites.offline import ACTIONS, EACH, HIGH, LOW, drawn, expectile, mistaken, paid, recorded
from ajax.probing.suites.value_chains.boxes import BOXED


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.8])
def test_the_expectile_of_a_coin(tau):
    """At m, tau (1 - m) / 2 is (1 - tau) m / 2."""
    assert expectile(np.array([0.0, 1.0]), tau) == pytest.approx(tau)


def test_the_expectile_minimizes_its_loss():
    values, tau = np.array([-1.0, 0.3, 0.4, 2.0]), 0.7
    grid = np.linspace(-1, 2, 30_001)
    error = values[:, None] - grid
    loss = (np.where(error > 0, tau, 1 - tau) * error**2).mean(0)
    assert expectile(values, tau) == pytest.approx(grid[loss.argmin()], abs=1e-4)


def test_actions_are_weighed_by_the_exponential_of_their_advantage():
    values = np.zeros_like(ACTIONS)
    assert drawn(values, 0.0, 2.0) == pytest.approx((LOW + HIGH) / 2)
    values[0] = np.log(4.0)  # weighs 16 at beta 2, and 1 the others
    others = ACTIONS[1:].sum()
    assert drawn(values, 0.0, 2.0) == pytest.approx((16 * ACTIONS[0] + others) / (16 + EACH - 1))
    values[0] = 50.0  # past the limit of weights
    assert drawn(values, 0.0, 2.0) == pytest.approx((100 * ACTIONS[0] + others) / (100 + EACH - 1))


def test_every_mistake_leads_elsewhere():
    values = paid(BOXED, 1, ACTIONS)
    v = expectile(values, 0.8)
    right = drawn(values, v, 2.0)
    assert all(abs(x - right) > 0.1 for x in mistaken(values, v, 2.0).values())


def test_recorded_steps_are_the_tasks_own():
    data = recorded(BOXED)
    first, second = slice(0, EACH), slice(EACH, 2 * EACH)
    assert np.all(data.reward[first] == 0) and np.all(data.terminated == np.repeat([False, True], EACH))
    np.testing.assert_allclose(data.reward[second], 1 - 0.2 * (ACTIONS - 1.8) ** 2, atol=1e-6)
    np.testing.assert_array_equal(data.next_obs[first], data.obs[second])
    assert not data.truncated.any()
