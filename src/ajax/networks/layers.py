"""What layers of every kind share: nonlinearities, and the distributions of initial weights."""

from __future__ import annotations

from typing import Any

import flax.linen as nn

ACTIVATIONS = {"relu": nn.relu, "tanh": nn.tanh, "silu": nn.silu, "gelu": nn.gelu, "elu": nn.elu}
INITIALIZERS = {
    "orthogonal": lambda scale: nn.initializers.orthogonal(scale),
    "lecun": lambda scale: nn.initializers.variance_scaling(scale**2, "fan_in", "uniform"),
}


def hidden_init(name: str) -> Any:
    """The initializer of hidden layers: orthogonal weights have a gain of sqrt(2), as for rectifiers."""
    return INITIALIZERS[name](2.0**0.5 if name == "orthogonal" else 1.0)
