"""What layers of every kind share: nonlinearities, and the distributions of initial weights."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

ACTIVATIONS = {
    "relu": nn.relu,
    "tanh": nn.tanh,
    "leaky_relu": nn.leaky_relu,
    "silu": nn.silu,
    "gelu": nn.gelu,
    "elu": nn.elu,
}
INITIALIZERS = {
    "orthogonal": lambda scale: nn.initializers.orthogonal(scale),
    "lecun": lambda scale: nn.initializers.variance_scaling(scale**2, "fan_in", "uniform"),
}


def hidden_init(name: str) -> Any:
    """The initializer of hidden layers: orthogonal weights have a gain of sqrt(2), as for rectifiers."""
    return INITIALIZERS[name](2.0**0.5 if name == "orthogonal" else 1.0)


def flat(x: jax.Array) -> jax.Array:
    """(batch, *shape) as rows of numbers, (batch, features)."""
    return x.reshape(x.shape[0], -1).astype(jnp.promote_types(x.dtype, jnp.float32))
