"""Policies under a command: the gate, their ranges, and that the first is near uniform."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.records import Inputs
from ajax.networks.cnn import CNN
from ajax.networks.commanded import CommandedCategorical, CommandedNormal, GatedMLP
from ajax.networks.torsos import MLP, Torso

KEY = jax.random.key(0)
OBS, COMMAND = jax.random.normal(jax.random.key(1), (5, 3)), jax.random.normal(jax.random.key(2), (5, 2))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_the_command_gates_the_first_hidden_layer(activation):
    torso = Torso(widths=(4, 6), activation=activation)
    out, variables = GatedMLP(torso, 2).init_with_output(KEY, OBS, COMMAND)
    p = variables["params"]
    state, gate = (x @ p[n]["kernel"] + p[n]["bias"][None] for n, x in (("state", OBS), ("command", COMMAND)))
    hidden = getattr(nn, activation)(state) / (1.0 + jnp.exp(-gate))
    rest = MLP(Torso(widths=(6,), activation=activation), 2).apply({"params": p["MLP_0"]}, hidden)
    np.testing.assert_allclose(out, rest, rtol=1e-5, atol=1e-6)


def test_layer_norm_comes_before_the_nonlinearity_and_the_gate():
    _, variables = GatedMLP(Torso(widths=(4,), layer_norm=True), 2).init_with_output(KEY, OBS, COMMAND)
    p = variables["params"]
    assert set(p) == {"state", "LayerNorm_0", "command", "MLP_0"}


@pytest.mark.parametrize(
    "module", [CommandedCategorical(3, Torso(widths=(8,))), CommandedNormal(2, Torso(widths=(8,)))]
)
def test_another_command_is_another_distribution(module):
    x = Inputs(OBS, command=COMMAND)
    one, variables = module.init_with_output(KEY, x)
    other = module.apply(variables, x.replace(command=-COMMAND))
    assert all(
        not np.allclose(a, b, atol=1e-6) for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    )


def test_the_first_policy_is_near_uniform():
    pi, _ = CommandedCategorical(3, Torso(widths=(8,))).init_with_output(KEY, Inputs(OBS, command=COMMAND))
    np.testing.assert_allclose(jnp.exp(pi.log_probs), 1 / 3, atol=0.02)


def test_means_stay_in_the_box_and_deviations_in_their_bounds():
    module = CommandedNormal(2, Torso(widths=(8,)))
    x = Inputs(OBS, command=COMMAND)
    params = module.init(KEY, x)
    pi = module.apply(jax.tree.map(lambda p: 1e4 * p, params), x)
    assert float(jnp.abs(pi.loc).max()) <= 1.0
    assert float(pi.log_std.min()) == -5.0 and float(pi.log_std.max()) == 2.0


def test_images_go_through_the_torsos_convolutions():
    x = Inputs(jnp.zeros((5, 6, 6, 1), jnp.uint8), command=COMMAND)
    pi, variables = CommandedCategorical(3, Torso(widths=(8,), cnn=CNN())).init_with_output(KEY, x)
    assert pi.logits.shape == (5, 3) and "policy_encoder" in variables["params"]
