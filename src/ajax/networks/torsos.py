"""Torsos: the shape of a network, and its dense layers."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.networks.cnn import CNN
from ajax.networks.layers import ACTIVATIONS, INITIALIZERS, flat, hidden_init
from ajax.networks.memory import GRU, LSTM, Mamba, Transformer
from ajax.networks.product import dot_general
from ajax.networks.renorm import BatchRenorm

HIDDEN = "hidden"
"""The collection that hidden layers' activations are kept in, by `apply(..., mutable=[HIDDEN])`."""


@config
class Torso:
    """The shape of a network, shared by all agents: a multilayer perceptron, and what it reads the observation by."""

    widths: tuple[int, ...] = setting(default=(256, 256), help="units of each hidden layer")
    activation: str = setting(default="relu", choices=tuple(ACTIVATIONS), help="nonlinearity after each hidden layer")
    initializer: str = setting(default="lecun", choices=tuple(INITIALIZERS), help="distribution of the initial weights")
    layer_norm: bool = setting(default=False, help="normalize each hidden layer before its nonlinearity")
    cnn: CNN | None = setting(default=None, help="convolutions before the hidden layers, for images; None: none")
    memory: GRU | LSTM | Transformer | Mamba | None = setting(
        default=None, help="memory before the hidden layers, for what one observation does not show; None: none"
    )

    def check(self) -> None:
        """Widths are positive."""
        if any(width < 1 for width in self.widths):
            raise ConfigError(f"Torso(widths={self.widths!r}): every width must be at least 1.")


class MLP(nn.Module):
    """Hidden layers as `torso` says, then a linear layer of `out` units whose weights are scaled by `out_scale`.

    With `renorm`, the inputs and each hidden layer's outputs are batch-renormalized, after that many training calls.
    With `unit_features`, the last hidden layer is divided by its Euclidean norm (Bjorck et al. 2022, arXiv:2112.07066,
    section 4), which bounds the output by its weights. Takes (batch, *shape), flattens each row, returns (batch, out).
    """

    torso: Torso
    out: int
    out_scale: float = 1.0
    renorm: int | None = None
    unit_features: bool = False

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        x = flat(x)
        if self.renorm is not None:
            x = BatchRenorm(self.renorm)(x)
        for i, width in enumerate(self.torso.widths):
            x = nn.Dense(width, kernel_init=hidden_init(self.torso.initializer), dot_general=dot_general)(x)
            if self.torso.layer_norm:
                x = nn.LayerNorm()(x)
            x = ACTIVATIONS[self.torso.activation](x)
            if self.renorm is not None:
                x = BatchRenorm(self.renorm)(x)
            self.sow(HIDDEN, f"layer_{i:03d}", x)  # kept only where a caller asks for the collection
        if self.unit_features:
            # the floor is for an observation of zeros, which has features of zeros before the first update
            x = x / jnp.sqrt(jnp.maximum(jnp.square(x).sum(-1, keepdims=True), 1e-12))
        last = INITIALIZERS[self.torso.initializer](self.out_scale)
        return nn.Dense(self.out, kernel_init=last, dot_general=dot_general)(x)
