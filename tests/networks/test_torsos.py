"""Torsos: shapes, that every option reaches the network, and the initial weights' scale."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.networks.torsos import ACTIVATIONS, MLP, Torso


def params(torso: Torso, out: int = 2, out_scale: float = 1.0, size: int = 3) -> dict:
    return jax.jit(MLP(torso, out, out_scale).init)(jax.random.key(0), jnp.zeros((1, size)))["params"]


def test_every_width_is_used():
    shapes = [layer["kernel"].shape for layer in params(Torso(widths=(5, 7, 11))).values()]
    assert shapes == [(3, 5), (5, 7), (7, 11), (11, 2)]


def test_no_hidden_layer_is_a_linear_map():
    assert [layer["kernel"].shape for layer in params(Torso(widths=())).values()] == [(3, 2)]


def test_the_forward_pass_is_the_formula():
    torso = Torso(widths=(5, 7), activation="tanh")
    p, x = jax.tree.map(np.asarray, params(torso)), np.array([[0.3, -0.5, 2.0], [1.0, 0.0, -1.0]], np.float32)
    hidden = np.tanh(x @ p["Dense_0"]["kernel"] + p["Dense_0"]["bias"])
    hidden = np.tanh(hidden @ p["Dense_1"]["kernel"] + p["Dense_1"]["bias"])
    expected = hidden @ p["Dense_2"]["kernel"] + p["Dense_2"]["bias"]
    np.testing.assert_allclose(MLP(torso, 2).apply({"params": p}, x), expected, rtol=1e-5, atol=1e-6)


def test_every_activation_is_another_function():
    p, x = params(Torso(widths=(8,))), jnp.array([[1.0, -2.0, 0.5]])
    outputs = {name: MLP(Torso(widths=(8,), activation=name), 2).apply({"params": p}, x) for name in ACTIVATIONS}
    assert len({tuple(np.asarray(out).ravel().tolist()) for out in outputs.values()}) == len(ACTIVATIONS)


def test_layer_norm_makes_the_scale_of_the_input_irrelevant():
    torso = Torso(widths=(16,), layer_norm=True)
    module, p, x = MLP(torso, 2), params(torso), jnp.array([[1.0, -2.0, 0.5]])
    np.testing.assert_allclose(module.apply({"params": p}, x), module.apply({"params": p}, 50.0 * x), rtol=1e-3)
    plain = params(Torso(widths=(16,)))
    assert "LayerNorm_0" in p and "LayerNorm_0" not in plain


def test_images_are_flattened_and_bytes_become_floats():
    images = jnp.arange(24, dtype=jnp.uint8).reshape(2, 3, 4)
    module = MLP(Torso(widths=(5,)), 2)
    p = module.init(jax.random.key(0), images)["params"]
    out = module.apply({"params": p}, images)
    assert p["Dense_0"]["kernel"].shape == (12, 5) and out.dtype == jnp.float32
    np.testing.assert_allclose(out, module.apply({"params": p}, images.astype(jnp.float32)))


def test_lecun_weights_have_variance_one_over_fan_in():
    kernel = np.asarray(params(Torso(widths=(200,)), size=50)["Dense_0"]["kernel"])
    assert kernel.std() == pytest.approx(50**-0.5, rel=0.05)
    assert np.abs(kernel).max() <= (3 / 50) ** 0.5  # uniform: the bound that the agents' pages state


def test_orthogonal_weights_are_orthogonal_with_gain_root_two():
    p = params(Torso(widths=(6, 6), initializer="orthogonal"), out=3, out_scale=0.01)
    hidden, last = np.asarray(p["Dense_1"]["kernel"]), np.asarray(p["Dense_2"]["kernel"])
    np.testing.assert_allclose(hidden.T @ hidden, 2 * np.eye(6), atol=1e-5)
    np.testing.assert_allclose(last.T @ last, 1e-4 * np.eye(3), atol=1e-8)


def test_biases_start_at_zero():
    assert all((layer["bias"] == 0).all() for layer in params(Torso()).values())
