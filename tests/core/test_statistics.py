"""Running statistics against NumPy's over all rows at once."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.statistics import ReturnScale, RunningStats

ROWS = np.random.default_rng(0).normal([5.0, -2.0], [2.0, 0.1], (64, 2)).astype(np.float32)


@pytest.mark.parametrize("cuts", [(), (1,), (7, 40), (1, 2, 3, 63)])
def test_merging_parts_is_the_whole(cuts):
    stats = RunningStats.zeros((2,))
    for part in np.split(ROWS, cuts):
        stats = stats.add(jnp.asarray(part))
    np.testing.assert_allclose(stats.mean, ROWS.mean(0), rtol=1e-5)
    np.testing.assert_allclose(stats.std, ROWS.std(0), rtol=1e-4)
    assert float(stats.count) == 64


def test_leading_axes_are_all_rows():
    stats = RunningStats.zeros((2,)).add(jnp.asarray(ROWS.reshape(4, 16, 2)))
    np.testing.assert_allclose(stats.mean, ROWS.mean(0), rtol=1e-5)
    assert float(stats.count) == 64


def test_scalars_and_bytes():
    stats = RunningStats.zeros(()).add(jnp.array([0, 10, 250], jnp.uint8))
    assert float(stats.mean) == pytest.approx(260 / 3)


def test_nothing_seen_leaves_values_alone():
    x = jnp.array([[3.0, -4.0]])
    assert (RunningStats.zeros((2,)).std == 1.0).all()
    np.testing.assert_array_equal(RunningStats.zeros((2,)).normalize(x), x)


def test_normalize_shifts_scales_and_clips():
    stats = RunningStats.zeros((2,)).add(jnp.array([[4.0, 0.0], [6.0, 2.0]]))  # mean (5, 1), deviation (1, 1)
    np.testing.assert_allclose(stats.normalize(jnp.array([[7.0, 0.5]])), [[2.0, -0.5]], rtol=1e-6)
    np.testing.assert_allclose(stats.normalize(jnp.array([[100.0, -100.0]])), [[10.0, -10.0]])
    np.testing.assert_allclose(stats.normalize(jnp.array([[100.0, 1.0]]), limit=3.0), [[3.0, 0.0]])


def test_a_large_offset_loses_no_variance():
    rows = jnp.asarray(1e4 + ROWS[:, :1])
    stats = RunningStats.zeros((1,))
    for part in jnp.split(rows, 8):
        stats = stats.add(part)
    np.testing.assert_allclose(stats.std, np.asarray(rows, np.float64).std(0), rtol=1e-2)


def test_a_constant_is_not_divided_by_zero():
    stats = RunningStats.zeros((1,)).add(jnp.full((5, 1), 3.0))
    assert np.isfinite(stats.normalize(jnp.array([[3.0]]))).all()


def test_adding_is_jitted():
    np.testing.assert_allclose(jax.jit(RunningStats.add)(RunningStats.zeros((2,)), ROWS).mean, ROWS.mean(0), rtol=1e-5)


# The scale of TD errors


def scale(rewards: list, terminated: list, truncated: list, gamma: float = 0.9) -> ReturnScale:
    """What is known after these steps of one environment."""
    stats = ReturnScale.zeros()
    for row in zip(rewards, terminated, truncated, strict=True):
        stats = stats.add(*(jnp.float32(x) for x in row), gamma)
    return stats


def test_sigma_is_schaul_et_als():
    """Two episodes that terminate, of returns 3 and -1, and one that is cut short, whose return does not count."""
    rewards, terminated, truncated = [1.0, 2.0, 7.0, -1.0, 4.0], [0, 1, 0, 1, 0], [0, 0, 1, 0, 0]
    stats = scale(rewards, terminated, truncated)
    discounts = [0.9, 0.0, 0.9, 0.0, 0.9]
    variance = np.var(rewards) + np.var(discounts) * np.mean([3.0**2, (-1.0) ** 2])
    assert float(stats.sigma) == pytest.approx(variance**0.5, rel=1e-5)
    assert float(stats.square.count) == 2 and float(stats.running) == 4.0


@pytest.mark.parametrize(
    ("rewards", "terminated", "sigma"),
    [
        ([], [], 1.0),
        ([3.0], [0], 1.0),  # one reward has no variance
        ([0.0, 0.19], [0, 0], 1.0),
        ([0.0, 0.3], [0, 0], 0.15),
        ([0.0], [1], 0.01),  # an episode has ended: the floor
    ],
)
def test_a_small_sigma_is_1_until_an_episode_ends(rewards, terminated, sigma):
    assert float(scale(rewards, terminated, [0] * len(rewards)).sigma) == pytest.approx(sigma, rel=1e-4)


@pytest.mark.parametrize("value", [0.0, 1.0, -0.1, 300.0])
def test_what_never_varies_has_no_spread_to_divide_by(value):
    """A constant reward of 1 divided by a deviation of nearly 0 was a reward of 10, wherever rewards were clipped."""
    stats = RunningStats.zeros(()).add(jnp.full(1000, value)).add(jnp.full(7, value))
    assert float(stats.spread) == 1.0


def test_the_spread_of_what_varies_is_its_deviation():
    rows = jnp.asarray(1.0 + 1e-3 * ROWS[:, 0])
    np.testing.assert_allclose(RunningStats.zeros(()).add(rows).spread, np.asarray(rows, np.float64).std(), rtol=1e-2)
    assert float(RunningStats.zeros(()).spread) == 1.0
