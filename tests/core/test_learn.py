"""One optimizer step, clipping by the global norm, and target averaging, against numbers worked out by hand."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.learn import adam, descend, make, pick, polyak, radam, select


class Point(nn.Module):
    """Two trained numbers, x = (1, 2)."""

    @nn.compact
    def __call__(self) -> jax.Array:
        return self.param("x", lambda key: jnp.array([1.0, 2.0]))


def quadratic(net):
    """Half the squared distance to the origin: its gradient is x."""
    value = 0.5 * jnp.square(net()).sum()
    return value, {"loss": value}


def test_the_first_adam_step_is_the_learning_rate_against_the_sign():
    net = make(Point(), adam(), jax.random.key(0))
    after, metrics = descend(net, adam(0.1), quadratic)
    np.testing.assert_allclose(after.params["x"], [0.9, 1.9], rtol=1e-5)
    assert metrics["loss"] == 2.5


def test_the_second_adam_step_is_kingma_and_bas():
    net = make(Point(), adam(), jax.random.key(0))
    for _ in range(2):
        net, _ = descend(net, adam(0.1), quadratic)
    m = v = np.zeros(2)
    x = np.array([1.0, 2.0])
    for t in (1, 2):
        m, v = 0.9 * m + 0.1 * x, 0.999 * v + 0.001 * x**2
        x = x - 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    np.testing.assert_allclose(net.params["x"], x, rtol=1e-5)


def test_epsilon_stands_outside_the_root():
    net = make(Point(), adam(), jax.random.key(0))
    after, _ = descend(net, adam(0.1, eps=1.0), quadratic)
    np.testing.assert_allclose(after.params["x"], [1 - 0.1 / 2, 2 - 0.1 * 2 / 3], rtol=1e-5)


def test_rectified_adam_is_liu_et_als():
    """Algorithm 2, step by step: the moment alone until its sixth step, then Adam's step times the rectification."""
    net = make(Point(), radam(), jax.random.key(0))
    m = v = np.zeros(2)
    x, rho_inf, rectified = np.array([1.0, 2.0]), 2 / (1 - 0.999) - 1, []
    for t in range(1, 9):
        net, _ = descend(net, radam(0.1), quadratic)
        m, v = 0.9 * m + 0.1 * x, 0.999 * v + 0.001 * x**2
        rho, m_hat = rho_inf - 2 * t * 0.999**t / (1 - 0.999**t), m / (1 - 0.9**t)
        rectified.append(rho >= 5)
        if rectified[-1]:
            r = np.sqrt((rho - 4) * (rho - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * rho))
            x = x - 0.1 * r * m_hat / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        else:
            x = x - 0.1 * m_hat
    assert rectified == [False] * 5 + [True] * 3
    np.testing.assert_allclose(net.params["x"], x, rtol=2e-3)  # rho is a difference of numbers near 2000


def first_moment(gradient: list[float], limit: float) -> np.ndarray:
    """What reaches Adam of a gradient, as its first moment shows after one step: (1 - beta_1) times it."""
    net = make(Point(), adam(max_grad_norm=limit), jax.random.key(0))
    after, _ = descend(net, adam(0.1, max_grad_norm=limit), lambda net: ((net() * jnp.array(gradient)).sum(), {}))
    moments = [leaf for leaf in jax.tree.leaves(after.opt) if leaf.shape == (2,)]
    return np.asarray(moments[0]) / 0.1


def test_the_global_norm_is_clipped_not_each_element():
    np.testing.assert_allclose(first_moment([3.0, 4.0], 1.0), [0.6, 0.8], rtol=1e-5)  # elementwise: (1, 1)


def test_a_gradient_within_the_limit_is_left_alone():
    np.testing.assert_allclose(first_moment([0.3, 0.4], 1.0), [0.3, 0.4], rtol=1e-5)


def test_the_learning_rate_is_traced():
    net = make(Point(), adam(), jax.random.key(0))
    step = jax.jit(lambda net, rate: descend(net, adam(rate), quadratic)[0].params["x"])
    np.testing.assert_allclose(step(net, 0.1), [0.9, 1.9], rtol=1e-5)
    np.testing.assert_allclose(step(net, 0.2), [0.8, 1.8], rtol=1e-5)
    assert step._cache_size() == 1


@pytest.mark.parametrize(("tau", "value"), [(0.005, 0.005), (1.0, 1.0), (0.0, 0.0)])
def test_polyak_moves_the_target_a_small_share_of_the_way(tau, value):
    # the roles of target and online exchanged would give 0.995
    np.testing.assert_allclose(polyak({"w": jnp.zeros(2)}, {"w": jnp.ones(2)}, tau)["w"], value, rtol=1e-5)


def test_polyak_is_exact_at_both_ends():
    target, online = {"w": jnp.array([3.0, 1e-6])}, {"w": jnp.array([1e-6, -0.1])}  # 3 + (1e-6 - 3) is not 1e-6
    np.testing.assert_array_equal(polyak(target, online, jnp.float32(1.0))["w"], online["w"])
    np.testing.assert_array_equal(polyak(target, online, jnp.float32(0.0))["w"], target["w"])


def test_a_frozen_network_carries_no_optimizer_state():
    net = make(Point(), adam(), jax.random.key(0))
    assert len(jax.tree.leaves(net.opt)) == 3  # two moments and a step count
    assert jax.tree.leaves(net.frozen()) == jax.tree.leaves(net.params)
    assert net.frozen().opt == () and net.opt != ()


def test_a_network_at_other_parameters_computes_with_them():
    net = make(Point(), adam(), jax.random.key(0))
    np.testing.assert_array_equal(net.at({"x": jnp.array([5.0, 6.0])})(), [5.0, 6.0])
    np.testing.assert_array_equal(net(), [1.0, 2.0])


def test_select_takes_every_leaf_of_one_side():
    new, old = {"a": jnp.ones(2), "b": jnp.ones(())}, {"a": jnp.zeros(2), "b": jnp.zeros(())}
    assert all((leaf == 1).all() for leaf in jax.tree.leaves(select(jnp.array(True), new, old)))
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(select(jnp.array(False), new, old)))


def test_pick_reads_one_value_a_row():
    values = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(pick(values, jnp.array([2, 0])), [3.0, 4.0])
    np.testing.assert_array_equal(pick(values[None], jnp.array([[2, 0]])), [[3.0, 4.0]])
