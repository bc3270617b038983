"""Policies that do as they are told: an action distribution of the state and of a command."""

from __future__ import annotations

import dataclasses

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.distributions import Categorical, Normal
from ajax.core.records import Inputs, Spec
from ajax.networks.encoder import Encoder
from ajax.networks.layers import ACTIVATIONS, flat, hidden_init
from ajax.networks.product import dot_general
from ajax.networks.torsos import MLP, Torso


class GatedMLP(nn.Module):
    """An MLP whose first hidden layer is multiplied by what the command opens: f(W s + b) sigmoid(U c + d).

    The gated option of Srivastava et al. 2019, arXiv:1912.02877, section 2.3. Takes features (batch, *shape) and
    commands (batch, 2), returns (batch, out).
    """

    torso: Torso
    out: int
    out_scale: float = 1.0

    @nn.compact
    def __call__(self, features: jax.Array, command: jax.Array) -> jax.Array:
        width, *rest = self.torso.widths
        init = hidden_init(self.torso.initializer)
        h = nn.Dense(width, kernel_init=init, dot_general=dot_general, name="state")(flat(features))
        if self.torso.layer_norm:
            h = nn.LayerNorm()(h)
        h = ACTIVATIONS[self.torso.activation](h)
        h = h * nn.sigmoid(nn.Dense(width, kernel_init=init, dot_general=dot_general, name="command")(command))
        return MLP(dataclasses.replace(self.torso, widths=tuple(rest)), self.out, self.out_scale)(h)


class CommandedCategorical(nn.Module):
    """B(. | s, c) over `n_actions`. The last layer starts small, so that the first policy is near uniform."""

    n_actions: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Categorical:
        assert x.command is not None
        features = Encoder(self.torso, name="policy_encoder")(x)
        return Categorical(GatedMLP(self.torso, self.n_actions, 0.01)(features, x.command))


class CommandedNormal(nn.Module):
    """B(. | s, c): a Normal whose mean, squashed into [-1, 1], and log deviation both come from state and command.

    The log deviation is clipped to [-5, 2], as in `TanhMeanPolicy`.
    """

    size: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Normal:
        assert x.command is not None
        features = Encoder(self.torso, name="policy_encoder")(x)
        loc, log_std = jnp.split(GatedMLP(self.torso, 2 * self.size, 0.01)(features, x.command), 2, -1)
        return Normal(jnp.tanh(loc), jnp.clip(log_std, -5.0, 2.0))


def commanded(spec: Spec, torso: Torso) -> CommandedCategorical | CommandedNormal:
    """The policy under commands for these actions."""
    return CommandedCategorical(spec.n_actions, torso) if spec.discrete else CommandedNormal(spec.action_size, torso)
