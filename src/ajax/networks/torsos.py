"""Torsos: from an observation to features."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.networks.product import dot_general

ACTIVATIONS = {"relu": nn.relu, "tanh": nn.tanh, "silu": nn.silu, "gelu": nn.gelu, "elu": nn.elu}
INITIALIZERS = {
    "orthogonal": lambda scale: nn.initializers.orthogonal(scale),
    "lecun": lambda scale: nn.initializers.variance_scaling(scale**2, "fan_in", "uniform"),
}


@config
class Torso:
    """The shape of a multilayer perceptron, shared by all agents."""

    widths: tuple[int, ...] = setting(default=(256, 256), help="units of each hidden layer")
    activation: str = setting(default="relu", choices=tuple(ACTIVATIONS), help="nonlinearity after each hidden layer")
    initializer: str = setting(default="lecun", choices=tuple(INITIALIZERS), help="distribution of the initial weights")
    layer_norm: bool = setting(default=False, help="normalize each hidden layer before its nonlinearity")

    def check(self) -> None:
        """Widths are positive."""
        from ajax.core.errors import ConfigError

        if any(width < 1 for width in self.widths):
            raise ConfigError(f"Torso(widths={self.widths!r}): every width must be at least 1.")


class MLP(nn.Module):
    """Hidden layers as `torso` says, then a linear layer of `out` units whose weights are scaled by `out_scale`.

    Takes (batch, *shape), flattens each row, returns (batch, out).
    """

    torso: Torso
    out: int
    out_scale: float = 1.0

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        init = INITIALIZERS[self.torso.initializer]
        gain = 2.0**0.5 if self.torso.initializer == "orthogonal" else 1.0
        x = x.reshape(x.shape[0], -1).astype(jnp.promote_types(x.dtype, jnp.float32))
        for width in self.torso.widths:
            x = nn.Dense(width, kernel_init=init(gain), dot_general=dot_general)(x)
            if self.torso.layer_norm:
                x = nn.LayerNorm()(x)
            x = ACTIVATIONS[self.torso.activation](x)
        return nn.Dense(self.out, kernel_init=init(self.out_scale), dot_general=dot_general)(x)
