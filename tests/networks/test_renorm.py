"""Batch renormalization against its definition, by numbers worked out with NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.learn import adam, make
from ajax.core.records import Inputs, Net
from ajax.networks.heads import QEnsemble, SquashedPolicy
from ajax.networks.renorm import BatchRenorm
from ajax.networks.torsos import MLP, Torso

ROWS = np.array([[1.0, 10.0], [3.0, -10.0], [5.0, 30.0]], np.float32)
MEAN, VAR = ROWS.mean(0), ROWS.var(0)


def layer(warmup: int, **statistics: Any) -> Net:
    """A layer for two features, with these running statistics."""
    net = make(BatchRenorm(warmup), adam(), jax.random.key(0), jnp.zeros((1, 2)))
    return net.replace(statistics=net.statistics | {name: jnp.asarray(x) for name, x in statistics.items()})


def test_it_begins_as_the_identity():
    net = layer(10)
    np.testing.assert_allclose(net(ROWS), ROWS / np.sqrt(1.001), rtol=1e-6)
    assert int(net.statistics["steps"]) == 0, "initializing is no training call"


def test_outside_training_the_running_statistics_normalize_and_stay():
    net = layer(0, mean=[1.0, 2.0], var=[4.0, 9.0])
    expected = (ROWS - np.array([[1.0, 2.0]])) / np.sqrt(np.array([[4.0, 9.0]]) + 1e-3)
    np.testing.assert_allclose(net(ROWS), expected, rtol=1e-6)


def test_before_the_warmup_it_is_plain_batch_normalization():
    out, _ = layer(10, mean=[7.0, 7.0], var=[4.0, 9.0]).train(ROWS)
    np.testing.assert_allclose(out, (ROWS - MEAN[None]) / np.sqrt(VAR + 1e-3)[None], rtol=1e-5)


@pytest.mark.parametrize(
    ("mean", "var"), [([1.5, 8.0], [3.0, 200.0]), ([100.0, -1e4], [1e-6, 1e6])], ids=["inside", "at the limits"]
)
def test_after_the_warmup_the_batch_is_corrected_towards_the_running_statistics(mean, var):
    mean, var = np.array(mean, np.float32), np.array(var, np.float32)
    r = np.clip(np.sqrt(VAR + 1e-3) / np.sqrt(var + 1e-3), 1 / 3, 3)
    d = np.clip((MEAN - mean) / np.sqrt(var + 1e-3), -5, 5)
    out, _ = layer(10, mean=mean, var=var, steps=10).train(ROWS)
    expected = (ROWS - (MEAN - d * np.sqrt(VAR) / r)[None]) / np.sqrt(VAR / r**2 + 1e-3)[None]
    np.testing.assert_allclose(out, expected, rtol=1e-4)
    if abs(mean[0]) < 10:  # within the limits it is what the running statistics make of it, but for epsilon
        np.testing.assert_allclose(out, (ROWS - mean[None]) / np.sqrt(var)[None], atol=2e-3)


def test_the_running_statistics_follow_the_batch():
    _, after = layer(10, mean=[1.5, 8.0], var=[3.0, 200.0], steps=4).train(ROWS)
    np.testing.assert_allclose(after["mean"], 0.99 * np.array([1.5, 8.0]) + 0.01 * MEAN, rtol=1e-6)
    np.testing.assert_allclose(after["var"], 0.99 * np.array([3.0, 200.0]) + 0.01 * VAR, rtol=1e-6)
    assert int(after["steps"]) == 5


def test_the_gradient_flows_through_the_batch_statistics_but_not_the_correction():
    def total(rows: jax.Array, steps: int) -> jax.Array:
        out = layer(10, mean=[1.5, 8.0], var=[3.0, 200.0], steps=steps).train(rows)[0]
        return (out * jnp.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]])).sum()

    scale = float(np.sqrt(VAR[0]) / np.sqrt(3.001))  # r, a constant
    plain, renormed = (np.asarray(jax.grad(total)(ROWS, steps)) for steps in (0, 10))
    assert abs(plain[:, 0].sum()) < 1e-5  # a shift of all rows changes nothing
    np.testing.assert_allclose(renormed[1:, 0], scale * plain[1:, 0], rtol=1e-2)


@pytest.mark.parametrize("steps", [0, 10])
def test_a_feature_that_never_changes_has_a_finite_gradient(steps):
    rows = jnp.asarray(ROWS).at[:, 0].set(2.0)

    def total(rows: jax.Array) -> jax.Array:
        return jnp.square(layer(10, steps=steps).train(rows)[0]).sum()

    assert np.isfinite(jax.grad(total)(rows)).all()


def test_a_network_normalizes_its_inputs_and_every_hidden_layer():
    module = MLP(Torso(widths=(4, 5)), 2, renorm=10)
    net = make(module, adam(), jax.random.key(0), jnp.zeros((1, 3)))
    assert {name: s["mean"].shape for name, s in net.statistics.items()} == {
        "BatchRenorm_0": (3,),
        "BatchRenorm_1": (4,),
        "BatchRenorm_2": (5,),
    }
    _, after = net.train(jnp.ones((6, 3)))
    assert all(int(s["steps"]) == 1 for s in after.values())
    assert make(MLP(Torso(), 2), adam(), jax.random.key(0), jnp.zeros((1, 3))).statistics == {}


def test_each_critic_has_statistics_of_its_own():
    x, action = Inputs(jnp.asarray(ROWS)), jnp.ones((3, 1))
    net = make(QEnsemble(Torso(widths=(4,)), renorm=10), adam(), jax.random.key(0), x, action)
    q, after = net.train(x, action)
    assert q.shape == (2, 3)
    hidden = after["VmapMLP_0"]["BatchRenorm_1"]["mean"]
    assert hidden.shape == (2, 4) and (hidden[0] != hidden[1]).any()


def test_a_policy_is_normalized_too():
    x = Inputs(jnp.asarray(ROWS))
    net = make(SquashedPolicy(1, Torso(widths=(4,)), 10), adam(), jax.random.key(0), x)
    pi, after = net.train(x)
    assert (pi.loc != net(x).loc).any() and after.keys() == net.statistics.keys()
