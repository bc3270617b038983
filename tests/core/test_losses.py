"""Loss terms against numbers worked out by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.losses import clipped_surrogate, expectile, huber, standardize


@pytest.mark.parametrize(
    ("error", "loss"), [(0.0, 0.0), (0.5, 0.125), (-0.5, 0.125), (1.0, 0.5), (-3.0, 2.5), (3.0, 2.5)]
)
def test_huber_is_square_within_one_and_linear_outside(error, loss):
    assert float(huber(jnp.float32(error))) == pytest.approx(loss)


def test_hubers_slope_is_clipped_and_never_vanishes():
    slopes = jax.vmap(jax.grad(huber))(jnp.array([-3.0, -0.5, 0.25, 1.0, 8.0]))
    np.testing.assert_allclose(slopes, [-1.0, -0.5, 0.25, 1.0, 1.0])


def test_hubers_threshold_moves():
    np.testing.assert_allclose(huber(jnp.array([1.0, 3.0]), 2.0), [0.5, 4.0])  # 2 * 3 - 2^2 / 2


@pytest.mark.parametrize(("error", "loss"), [(0.0, 0.0), (2.0, 0.7 * 4.0), (-2.0, 0.3 * 4.0)])
def test_expectile_weighs_the_two_sides(error, loss):
    assert float(expectile(jnp.float32(error), 0.7)) == pytest.approx(loss)


@pytest.mark.parametrize(("tau", "best"), [(0.5, 3.0), (0.7, 4.2), (0.9, 5.4)])
def test_the_expectile_is_where_the_loss_is_least(tau, best):
    # of 0 and 6: tau (6 - m) = (1 - tau) m
    slope = jax.grad(lambda m: expectile(jnp.array([0.0, 6.0]) - m, tau).mean())
    assert float(slope(best)) == pytest.approx(0.0, abs=1e-5) and slope(best - 0.1) < 0 < slope(best + 0.1)


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (1.0, 2.0, 2.0, 2.0),
        (1.1, 2.0, 2.2, 2.0),
        (1.5, 2.0, 2.4, 0.0),  # gained enough: nothing more to win
        (0.5, 2.0, 1.0, 2.0),  # the wrong way: the pull back is not clipped
        (0.5, -2.0, -1.6, 0.0),
        (1.5, -2.0, -3.0, -2.0),
    ],
)
def test_the_surrogate_takes_the_smaller_gain(ratio, advantage, value, slope):
    ratio, advantage = jnp.float32(ratio), jnp.float32(advantage)
    assert float(clipped_surrogate(ratio, advantage, 0.2)) == pytest.approx(value)
    assert float(jax.grad(clipped_surrogate)(ratio, advantage, 0.2)) == pytest.approx(slope)


def test_standardize_is_over_all_axes():
    x = jnp.array([[1.0], [2.0], [3.0], [6.0]])  # over the last axis alone everything would be 0
    out = standardize(x)
    np.testing.assert_allclose(out[:, 0], (np.array([1, 2, 3, 6]) - 3) / np.sqrt(3.5), rtol=1e-6)
    np.testing.assert_allclose(standardize(x.T), out.T)


def test_standardize_ignores_shift_and_scale():
    x = jnp.array([1.0, 2.0, 3.0, 6.0])
    np.testing.assert_allclose(standardize(100.0 * x - 7.0), standardize(x), rtol=1e-5)


def test_standardize_survives_equal_values():
    np.testing.assert_array_equal(standardize(jnp.full(4, 3.0)), np.zeros(4))


def test_standardize_leaves_what_hardly_differs_small():
    np.testing.assert_allclose(standardize(jnp.array([-1.0, 1.0]), eps=1.0), [-0.5, 0.5])
    np.testing.assert_allclose(standardize(1e-8 * jnp.array([-1.0, 1.0])), [-0.5, 0.5], rtol=1e-5)
