"""Distributions against SciPy, numerical integration and their own samples."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from jax.test_util import check_grads

from ajax.core.distributions import Categorical, EpsilonGreedy, Normal, TanhNormal

LOC, LOG_STD = jnp.array([[0.5, -1.0], [0.0, 2.0]]), jnp.array([0.2, -0.7])


def test_normal_log_prob_is_scipys_summed_over_dimensions():
    action = jnp.array([[0.1, -1.3], [2.0, 2.1]])
    expected = scipy.stats.norm.logpdf(action, LOC, np.exp(LOG_STD)).sum(-1)
    np.testing.assert_allclose(normal().log_prob(action), expected, rtol=1e-5)


def normal() -> Normal:
    return Normal(LOC, jnp.broadcast_to(LOG_STD, LOC.shape))


def test_log_std_is_not_a_log_variance():
    # sigma = 2 at its mean: -log 2 - log sqrt(2 pi) = -1.612; read as a variance, -1.266
    out = Normal(jnp.zeros((1, 1)), jnp.full((1, 1), jnp.log(2.0))).log_prob(jnp.zeros((1, 1)))
    assert float(out[0]) == pytest.approx(-1.6121, abs=1e-4)


def test_normal_entropy_is_scipys():
    expected = scipy.stats.norm.entropy(LOC, np.exp(LOG_STD)).sum(-1)
    np.testing.assert_allclose(normal().entropy(), expected, rtol=1e-5)


def test_normal_samples_have_its_moments():
    draws = jax.vmap(normal().sample)(jax.random.split(jax.random.key(0), 20_000))
    np.testing.assert_allclose(draws.mean(0), LOC, atol=5 * 1.3 / 20_000**0.5)
    np.testing.assert_allclose(draws.std(0), np.exp(normal().log_std), rtol=5 / 40_000**0.5)
    np.testing.assert_array_equal(normal().mode(), LOC)


def test_samples_are_reparameterized():
    key = jax.random.key(1)
    gradient = jax.grad(lambda loc: Normal(loc, jnp.zeros((1, 2))).sample(key).sum())(jnp.zeros((1, 2)))
    np.testing.assert_array_equal(gradient, [[1.0, 1.0]])
    spread = jax.grad(lambda log_std: Normal(jnp.zeros((1, 2)), log_std).sample(key).sum())(jnp.zeros((1, 2)))
    np.testing.assert_allclose(spread, jax.random.normal(key, (1, 2)), rtol=1e-6)


def tanh_normal(loc: float, log_std: float, n: int) -> tuple[np.ndarray, np.ndarray]:
    """n one-dimensional actions, and their log probabilities."""
    pi = TanhNormal(jnp.full((n, 1), loc), jnp.full((n, 1), log_std))
    action, log_prob = pi.sample_and_log_prob(jax.random.key(0))
    return np.asarray(action[:, 0], np.float64), np.asarray(log_prob, np.float64)


def test_tanh_normal_log_prob_is_the_density_with_its_jacobian():
    action, log_prob = tanh_normal(0.3, -0.5, 200)
    u = np.arctanh(action)
    expected = scipy.stats.norm.logpdf(u, 0.3, np.exp(-0.5)) - np.log(1 - action**2)
    np.testing.assert_allclose(log_prob, expected, atol=1e-4)
    # tanh taken once more in the correction is another number
    assert (
        np.abs(expected - (scipy.stats.norm.logpdf(u, 0.3, np.exp(-0.5)) - np.log(1 - np.tanh(action) ** 2))).max()
        > 0.1
    )


def test_tanh_normal_is_a_density():
    action, log_prob = tanh_normal(0.3, 0.4, 4000)
    order = np.argsort(action)
    edges = np.tanh([0.3 - 1.5, 0.3 + 1.5])
    grid, density = action[order], np.exp(log_prob[order])
    inside = (grid > edges[0]) & (grid < edges[1])
    expected = 2 * scipy.stats.norm.cdf(1.5 / np.exp(0.4)) - 1
    assert np.trapezoid(density[inside], grid[inside]) == pytest.approx(expected, abs=0.01)


def test_tanh_normal_sums_over_dimensions():
    pi = TanhNormal(jnp.zeros((3, 2)), jnp.zeros((3, 2)))
    action, log_prob = pi.sample_and_log_prob(jax.random.key(0))
    assert action.shape == (3, 2) and log_prob.shape == (3,)
    u = np.arctanh(np.asarray(action, np.float64))
    expected = (scipy.stats.norm.logpdf(u) - np.log(1 - np.asarray(action, np.float64) ** 2)).sum(-1)
    np.testing.assert_allclose(log_prob, expected, atol=1e-4)


@pytest.mark.parametrize("loc", [-30.0, -9.0, 9.0, 30.0])
def test_tanh_normal_is_finite_at_the_edges_of_the_box(loc):
    def mean_log_prob(loc):
        return TanhNormal(loc, jnp.full((8, 1), 2.0)).sample_and_log_prob(jax.random.key(0))[1].mean()

    value, gradient = jax.value_and_grad(mean_log_prob)(jnp.full((8, 1), loc))
    assert np.isfinite(value) and np.isfinite(gradient).all()
    # the mean of -log(1 - tanh(u)^2) = 2 |u| - 2 log 2 far out; its slope is 2 by |loc|, so the policy is pulled back
    assert np.sign(gradient.sum()) == np.sign(loc)


def test_tanh_normal_gradient_is_right():
    def log_prob(loc, log_std):
        return TanhNormal(loc, log_std).sample_and_log_prob(jax.random.key(3))[1].sum()

    check_grads(
        log_prob, (jnp.array([[0.2, -0.4]]), jnp.array([[0.1, -0.3]])), order=1, modes=["rev"], atol=1e-2, rtol=1e-2
    )


def test_tanh_normal_sample_and_mode():
    pi = TanhNormal(LOC, normal().log_std)
    np.testing.assert_array_equal(pi.sample(jax.random.key(0)), pi.sample_and_log_prob(jax.random.key(0))[0])
    np.testing.assert_allclose(pi.mode(), np.tanh(LOC), rtol=1e-6)


LOGITS = jnp.log(jnp.array([[0.2, 0.5, 0.3], [1.0, 1.0, 2.0]]))


def test_categorical_normalizes():
    np.testing.assert_allclose(jnp.exp(Categorical(LOGITS).log_probs), [[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], rtol=1e-6)
    np.testing.assert_allclose(jnp.exp(Categorical(LOGITS).log_prob(jnp.array([2, 0]))), [0.3, 0.25], rtol=1e-6)


def test_categorical_entropy_is_scipys():
    expected = [scipy.stats.entropy([0.2, 0.5, 0.3]), scipy.stats.entropy([0.25, 0.25, 0.5])]
    np.testing.assert_allclose(Categorical(LOGITS).entropy(), expected, rtol=1e-6)


def test_categorical_mode_and_samples():
    pi = Categorical(LOGITS)
    assert pi.mode().tolist() == [1, 2] and pi.mode().dtype == jnp.int32
    draws = jax.vmap(pi.sample)(jax.random.split(jax.random.key(0), 4000))
    share = np.stack([(np.asarray(draws) == a).mean(0) for a in range(3)], -1)
    np.testing.assert_allclose(share, [[0.2, 0.5, 0.3], [0.25, 0.25, 0.5]], atol=5 * 0.5 / 4000**0.5)


def test_epsilon_greedy_is_random_in_its_share_and_else_the_best():
    q = jnp.broadcast_to(jnp.array([0.0, 2.0, 1.0, -1.0]), (20_000, 4))
    draws = EpsilonGreedy(q, 0.4).sample(jax.random.key(0))
    share = np.bincount(draws, minlength=4) / 20_000
    np.testing.assert_allclose(share, [0.1, 0.7, 0.1, 0.1], atol=5 * 0.5 / 20_000**0.5)
    assert (EpsilonGreedy(q, 1.0).mode() == 1).all() and (EpsilonGreedy(q, 0.0).sample(jax.random.key(1)) == 1).all()


def test_a_squashed_draw_is_a_function_of_its_noise():
    pi, key = TanhNormal(LOC, normal().log_std), jax.random.key(4)
    drawn, made = pi.sample_and_log_prob(key), pi.from_noise(jax.random.normal(key, LOC.shape))
    assert (drawn[0] == made[0]).all() and (drawn[1] == made[1]).all()
    np.testing.assert_allclose(pi.from_noise(jnp.zeros_like(LOC))[0], jnp.tanh(LOC), rtol=1e-6)
