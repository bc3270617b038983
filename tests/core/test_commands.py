"""Commands: the goal that episodes set, what is drawn from it, and what is left of a command."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.commands import Goal, exploring, goal_of, greedy, remaining

RETURNS, LENGTHS = jnp.array([1.0, 3.0, 8.0, 99.0]), jnp.array([2.0, 4.0, 6.0, 50.0])
KNOWN = jnp.array([True, True, True, False])


def test_the_goal_is_mean_and_deviation_of_returns_and_the_mean_length():
    goal = goal_of(RETURNS, LENGTHS, KNOWN)
    np.testing.assert_allclose(goal.low, 4.0)
    np.testing.assert_allclose(goal.high, 4.0 + np.std([1.0, 3.0, 8.0]), rtol=1e-6)
    np.testing.assert_allclose(goal.horizon, 4.0)


def test_no_episode_sets_no_goal():
    goal = goal_of(RETURNS, LENGTHS, jnp.zeros(4, bool))
    assert [float(x) for x in jax.tree.leaves(goal)] == [float(x) for x in jax.tree.leaves(Goal.none())] == [0, 0, 1]


def test_exploring_asks_for_returns_uniform_in_the_goals_bounds():
    goal = Goal(jnp.float32(4.0), jnp.float32(7.0), jnp.float32(5.0))
    commands = np.asarray(exploring(goal, jax.random.key(0), 4_000))
    assert commands.shape == (4_000, 2) and (commands[:, 1] == 5.0).all()
    returns = (commands[:, 0] - 4.0) / 3.0
    assert 0.0 <= returns.min() < 0.01 and 0.99 < returns.max() < 1.0
    np.testing.assert_allclose(np.quantile(returns, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03)


def test_an_evaluation_asks_for_the_mean():
    goal = Goal(jnp.float32(4.0), jnp.float32(7.0), jnp.float32(5.0))
    np.testing.assert_array_equal(greedy(goal, 3), [[4.0, 5.0]] * 3)


def test_what_is_left_is_the_return_without_what_was_earned_and_the_steps_not_taken_yet():
    first = jnp.array([[10.0, 4.0], [10.0, 4.0], [-2.0, 3.0]])
    left = remaining(first, jnp.array([0.0, 2.5, -1.0]), jnp.array([0.0, 3.0, 1.0]))
    np.testing.assert_array_equal(left, [[10.0, 4.0], [7.5, 1.0], [-1.0, 2.0]])


def test_a_horizon_is_never_below_one():
    left = remaining(jnp.array([[1.0, 3.0], [1.0, 2.5]]), jnp.zeros(2), jnp.array([3.0, 9.0]))
    np.testing.assert_array_equal(left[:, 1], [1.0, 1.0])
