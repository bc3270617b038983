"""Return estimators on fixtures with numbers worked out by hand, beside those that known mistakes would give."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajax.core.records import Batch, Inputs
from ajax.core.returns import (
    after_resets,
    charge_resets,
    differential_gae,
    discounted,
    gae,
    lambda_returns,
    n_step,
    rvi_target,
    td_target,
)

NO = jnp.zeros(3)


def flags(*at: int, n: int = 3) -> jax.Array:
    """1.0 at the given rows of n."""
    return jnp.zeros(n).at[jnp.array(at, jnp.int32)].set(1.0)


# One-step targets


def test_a_td_target_is_reward_plus_discounted_value():
    target = td_target(jnp.array([1.0, 1.0]), jnp.array([0.9, 0.0]), jnp.array([10.0, 10.0]))
    np.testing.assert_allclose(target, [10.0, 1.0])


def test_a_value_that_overflowed_is_not_read_where_nothing_follows():
    target = td_target(jnp.array([1.0, 2.0]), jnp.array([0.0, 0.0]), jnp.array([jnp.inf, jnp.nan]))
    np.testing.assert_array_equal(target, [1.0, 2.0])


# Generalized advantages: r = 1, V = 2 everywhere, gamma 0.9, lambda 0.95

GAE_MISTAKES = {
    "the end read one step ahead": [-1.000, 1.484, 0.800],
    "the cut one step late": [0.753, -0.055, -1.000],
    "no cut": [2.069, 1.484, 0.800],
    "bootstrap cut but not the trace": [0.530, -0.316, 0.800],
    "truncation": [1.484, 0.800, 0.800],
}


def advantages(terminated: jax.Array, truncated: jax.Array) -> np.ndarray:
    r, v = jnp.ones(3), jnp.full(3, 2.0)
    return np.asarray(gae(r, v, v, terminated, truncated, 0.9, 0.95))


def test_gae_at_a_termination():
    out = advantages(flags(1), NO)
    np.testing.assert_allclose(out, [-0.055, -1.000, 0.800], atol=5e-4)
    for mistake, wrong in GAE_MISTAKES.items():
        assert np.abs(out - wrong).max() > 0.1, mistake


def test_gae_at_a_truncation_keeps_the_bootstrap_and_cuts_the_trace():
    np.testing.assert_allclose(advantages(NO, flags(1)), GAE_MISTAKES["truncation"], atol=5e-4)


def test_gae_where_nothing_ends():
    np.testing.assert_allclose(advantages(NO, NO), GAE_MISTAKES["no cut"], atol=5e-4)


def test_gae_where_the_last_row_ends():
    np.testing.assert_allclose(advantages(flags(2), NO), [0.753, -0.055, -1.000], atol=5e-4)


def test_gae_terminating_at_the_time_limit_is_a_termination():
    np.testing.assert_allclose(advantages(flags(1), flags(1)), [-0.055, -1.000, 0.800], atol=5e-4)


def test_gae_keeps_environments_apart():
    r, v = jnp.ones((3, 2)), jnp.full((3, 2), 2.0)
    terminated = jnp.stack([flags(1), NO], -1)
    out = gae(r, v, v, terminated, jnp.zeros((3, 2)), 0.9, 0.95)
    np.testing.assert_allclose(out[:, 0], [-0.055, -1.000, 0.800], atol=5e-4)
    np.testing.assert_allclose(out[:, 1], GAE_MISTAKES["no cut"], atol=5e-4)


def test_gae_bootstraps_from_where_the_step_led():
    # s0 -> s1 truncated, V(s0) = 0, V(s1) = 10: bootstrapping from V(s0) would give 0
    one = jnp.zeros(1)
    out = gae(one, one, jnp.array([10.0]), one, jnp.ones(1), 0.9, 0.95)
    np.testing.assert_allclose(out, [9.0], rtol=1e-6)


def test_gae_with_no_discount_ignores_a_value_that_overflowed():
    out = gae(jnp.ones(3), jnp.zeros(3), jnp.full(3, jnp.inf), NO, NO, 0.0, 0.95)
    np.testing.assert_array_equal(out, [1.0, 1.0, 1.0])


# Lambda returns: a chain with values 0, 1, 2, 3, 4, no rewards, gamma 1


@pytest.mark.parametrize(
    ("lam", "targets", "seeded_one_row_early"),
    [(0.0, [1, 2, 3, 4], [1, 2, 4, 4]), (0.65, [2.347, 3.073, 3.650, 4.0], [2.495, 3.300, 4.0, 4.0])],
)
def test_lambda_returns_of_a_chain(lam, targets, seeded_one_row_early):
    out = lambda_returns(jnp.zeros(4), jnp.arange(1.0, 5.0), jnp.zeros(4), jnp.zeros(4), 1.0, lam)
    np.testing.assert_allclose(out, targets, atol=5e-4)
    assert np.abs(out - np.array(seeded_one_row_early)).max() > 0.3
    assert np.abs(out - jnp.arange(4.0)).max() > 0.3  # the value of the state itself, not of the next


def test_lambda_returns_at_a_termination_and_a_truncation():
    r, v = jnp.ones(3), jnp.full(3, 10.0)
    # row 2: 1 + 9; row 1 ends: 1, or 1 + 9 where it is only cut short; row 0: 1 + 0.9 (5 + G_1 / 2)
    np.testing.assert_allclose(lambda_returns(r, v, flags(1), NO, 0.9, 0.5), [5.95, 1.0, 10.0], rtol=1e-6)
    np.testing.assert_allclose(lambda_returns(r, v, NO, flags(1), 0.9, 0.5), [10.0, 10.0, 10.0], rtol=1e-6)


rows = st.lists(
    st.tuples(st.floats(-2, 2, width=32), st.floats(-3, 3, width=32), st.booleans(), st.booleans()),
    min_size=6,
    max_size=6,
)


@given(rows, st.floats(0, 1, width=32), st.floats(0, 1, width=32))
def test_lambda_returns_are_values_plus_advantages(rows, gamma, lam):
    """Any masks: V(s_t) + A_t is the lambda return when V(s_t) is also what the step before led to."""
    reward, next_value, terminated, truncated = (jnp.array(column, jnp.float32) for column in zip(*rows, strict=True))
    value = jnp.concatenate([jnp.zeros(1), next_value[:-1]])
    returns = jax.jit(lambda_returns)(reward, next_value, terminated, truncated, gamma, lam)
    advantage = jax.jit(gae)(reward, value, next_value, terminated, truncated, gamma, lam)
    np.testing.assert_allclose(returns, value + advantage, atol=1e-4)


# n-step windows


def window(reward: list[float], terminated=NO, truncated=NO, next_obs=(1.0, 2.0, 3.0)) -> Batch:
    """One window of three transitions, batch axis of 1; the observation of step i is i, it leads to next_obs[i]."""
    column = [jnp.asarray(x, jnp.float32)[:, None] for x in (reward, terminated, truncated, next_obs)]
    obs = jnp.arange(3.0)[:, None, None]
    return Batch(Inputs(obs), jnp.arange(3)[:, None], *column[:3], Inputs(column[3][..., None]))


def target(batch: Batch, gamma: float, next_values: dict[float, float]) -> float:
    folded, discount = n_step(batch, gamma, 3)
    value = jnp.array([next_values[float(folded.next.obs[0, 0])]])
    return float(td_target(folded.reward, discount, value)[0])


def test_n_step_discounts_the_bootstrap_n_times():
    # 1 + 0.5 + 0.25 + 10 / 8; with gamma in place of gamma^3 it would be 6.75
    assert target(window([1, 1, 1]), 0.5, {3.0: 10.0}) == pytest.approx(3.0)


def test_n_step_stops_at_a_termination():
    # the bootstrap beyond the end, V = 100, would give 14.25
    assert target(window([1, 1, 1], terminated=flags(1)), 0.5, {2.0: 100.0}) == pytest.approx(1.5)
    assert target(window([1, 1, 1], terminated=flags(2)), 0.5, {3.0: 100.0}) == pytest.approx(1.75)


def test_n_step_at_a_truncation_bootstraps_from_its_final_observation():
    # 1 + 0.5 + 0.25 V(final) with V = 8; not from the next episode's V(3) = 100
    assert target(window([1, 1, 1], truncated=flags(1)), 0.5, {2.0: 8.0, 3.0: 100.0}) == pytest.approx(3.5)
    assert target(window([1, 1, 1], truncated=flags(0)), 0.5, {1.0: 8.0, 3.0: 100.0}) == pytest.approx(5.0)


def test_n_step_keeps_the_first_observation_and_action_and_the_flags_of_the_last():
    folded, _ = n_step(window([1, 1, 1], truncated=flags(1)), 0.5, 3)
    assert (float(folded.now.obs[0, 0]), int(folded.action[0])) == (0.0, 0)
    assert (float(folded.terminated[0]), float(folded.truncated[0])) == (0.0, 1.0)


def test_n_step_with_no_discount_is_the_first_reward():
    assert target(window([1, 5, 5]), 0.0, {3.0: np.inf}) == 1.0


def test_n_step_of_one_leaves_the_batch():
    batch = jax.tree.map(lambda x: x[0], window([1, 1, 1], terminated=flags(0)))
    folded, discount = n_step(batch, 0.9, 1)
    assert folded is batch and discount.tolist() == [0.0]


def test_n_step_rows_are_independent():
    columns = [window([1, 1, 1]), window([1, 1, 1], terminated=flags(0)), window([1, 2, 4], truncated=flags(1))]
    batch = jax.tree.map(lambda *x: jnp.concatenate(x, 1), *columns)
    folded, discount = n_step(batch, 0.5, 3)
    np.testing.assert_allclose(folded.reward, [1.75, 1.0, 2.0])
    np.testing.assert_allclose(discount, [0.125, 0.0, 0.25])
    np.testing.assert_allclose(folded.next.obs[:, 0], [3.0, 1.0, 2.0])


# Differential advantages: r = 1, 2, 6, the gain 2, V = 1, 4, 0 and then 5


@pytest.mark.parametrize(
    ("lam", "terminated", "truncated", "advantage"),
    [
        (0.0, NO, NO, [2.0, -4.0, 9.0]),
        (0.5, NO, NO, [2.0 + 0.5 * 0.5, -4.0 + 0.5 * 9.0, 9.0]),
        (1.0, NO, NO, [7.0, 5.0, 9.0]),
        (0.5, flags(1), NO, [2.0 - 0.5 * 4.0, -4.0, 9.0]),  # what s_2 is worth is not read
        (0.5, NO, flags(1), [2.0 - 0.5 * 4.0, -4.0, 9.0]),  # it is, and happens to be 0
        (0.5, flags(2), NO, [1.0, -2.0, 4.0]),
    ],
)
def test_differential_advantages(lam, terminated, truncated, advantage):
    r, v, after = jnp.array([1.0, 2.0, 6.0]), jnp.array([1.0, 4.0, 0.0]), jnp.array([4.0, 0.0, 5.0])
    out = differential_gae(r, v, after, terminated, truncated, jnp.float32(2.0), lam)
    np.testing.assert_allclose(out, advantage, rtol=1e-6)


def test_differential_advantages_do_not_see_a_constant():
    """Values that are all higher by a constant, and rewards with the gain: neither moves an advantage."""
    r, v, after = jnp.array([1.0, 2.0, 6.0]), jnp.array([1.0, 4.0, 0.0]), jnp.array([4.0, 0.0, 5.0])
    one = differential_gae(r, v, after, NO, flags(1), jnp.float32(2.0), 0.7)
    other = differential_gae(r + 3.0, v + 10.0, after + 10.0, NO, flags(1), jnp.float32(5.0), 0.7)
    np.testing.assert_allclose(one, other, rtol=1e-5)


# Rewards as a window's start values them


def test_discounted_rewards_count_from_the_start_of_the_window_or_of_an_episode():
    reward = jnp.array([1.0, 2.0, 4.0, 8.0])
    none = jnp.zeros(4)
    np.testing.assert_allclose(discounted(reward, none, none, 0.5), [1.0, 1.0, 1.0, 1.0])
    for end in (1, 2):
        ended = flags(end, n=4)
        expected = np.array(reward) * 0.5 ** np.array([t if t <= end else t - end - 1 for t in range(4)])
        for terminated, truncated in ((ended, none), (none, ended), (ended, ended)):
            np.testing.assert_allclose(discounted(reward, terminated, truncated, 0.5), expected)
    np.testing.assert_allclose(discounted(reward, none, none, 1.0), reward)


def test_a_reset_is_charged_where_the_task_terminated_alone():
    charged = charge_resets(jnp.array([1.0, 2.0, -3.0]), flags(1), 0.5)
    np.testing.assert_array_equal(charged, [1.0, 1.5, -3.0])


def test_a_target_of_relative_value_iteration_is_lower_by_the_reference_and_never_cut():
    target = rvi_target(jnp.array([1.0, 2.0]), jnp.float32(0.5), jnp.array([3.0, -4.0]))
    np.testing.assert_array_equal(target, [3.5, -2.5])


@pytest.mark.parametrize("shape", [(2,), (2, 2, 1)], ids=["vectors", "images"])
def test_a_task_goes_on_from_the_reset_where_it_terminated_and_from_what_was_left_elsewhere(shape):
    def seen(*values: int) -> Inputs:
        return Inputs(jnp.stack([jnp.full(shape, value, jnp.uint8) for value in values]))

    none, ended = jnp.zeros(3), flags(1)
    first = Batch(seen(0, 1, 2), none, none, ended, flags(2), seen(10, 11, 12))
    then = Batch(seen(20, 21, 22), none + 1, none + 1, flags(0), none, seen(30, 31, 32))
    b, after = after_resets(jax.tree.map(lambda a, b: jnp.stack([a, b]), first, then))
    jax.tree.map(np.testing.assert_array_equal, b, first)
    np.testing.assert_array_equal(after.obs, seen(10, 21, 12).obs)
    assert after.obs.dtype == jnp.uint8
