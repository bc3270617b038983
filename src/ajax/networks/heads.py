"""Heads: the networks that agents call, each reading `Inputs`."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.distributions import Categorical, Normal, TanhNormal
from ajax.core.learn import pick
from ajax.core.records import Inputs, Net, Spec
from ajax.networks.encoder import Encoder
from ajax.networks.torsos import HIDDEN, MLP, Torso


def _ensemble(size: int):
    """MLP with `size` independent sets of parameters, evaluated on the same input: (size, batch, out)."""
    return nn.vmap(
        MLP,
        variable_axes={"params": 0, "batch_stats": 0, HIDDEN: 0},
        split_rngs={"params": True},
        in_axes=None,
        out_axes=0,
        axis_size=size,
    )


class QValues(nn.Module):
    """Q(s, .): (batch, n_actions). Dueling: V + A - mean A (Wang et al. 2016, eq. 9)."""

    n_actions: int
    torso: Torso
    dueling: bool = False

    @nn.compact
    def __call__(self, x: Inputs) -> jax.Array:
        features = Encoder(self.torso, name="q_encoder")(x)
        if not self.dueling:
            return MLP(self.torso, self.n_actions)(features)
        value = MLP(self.torso, 1, name="value")(features)
        advantage = MLP(self.torso, self.n_actions, name="advantage")(features)
        return value + advantage - advantage.mean(-1, keepdims=True)


class QEnsemble(nn.Module):
    """Q_i(s, a) of `n_critics` independent critics for box actions: (n_critics, batch).

    `renorm` and `unit_features`: see `MLP`.
    """

    torso: Torso
    n_critics: int = 2
    renorm: int | None = None
    unit_features: bool = False

    @nn.compact
    def __call__(self, x: Inputs, action: jax.Array) -> jax.Array:
        features = Encoder(self.torso, name="q_encoder")(x)
        rows = jnp.concatenate([features.reshape(len(features), -1), action.reshape(len(action), -1)], -1)
        mlp = _ensemble(self.n_critics)(self.torso, 1, renorm=self.renorm, unit_features=self.unit_features)
        return mlp(rows)[..., 0]


def members(critics: Net, index: jax.Array) -> Net:
    """The critics of a `QEnsemble` with these indices (n,), as an ensemble of n."""

    def choose(path: tuple, leaf: jax.Array) -> jax.Array:
        return leaf[index] if "VmapMLP" in jax.tree_util.keystr(path) else leaf  # an encoder is shared by all

    params = jax.tree_util.tree_map_with_path(choose, critics.params)
    return critics.replace(params=params, module=critics.module.clone(n_critics=index.shape[0]))


class QValuesEnsemble(nn.Module):
    """Q_i(s, .) of independent critics: (n_critics, batch, n_actions), or of one action: (n_critics, batch)."""

    n_actions: int
    torso: Torso
    n_critics: int = 2

    @nn.compact
    def __call__(self, x: Inputs, action: jax.Array | None = None) -> jax.Array:
        q = _ensemble(self.n_critics)(self.torso, self.n_actions)(Encoder(self.torso, name="q_encoder")(x))
        return q if action is None else pick(q, jnp.broadcast_to(action, q.shape[:-1]))


class Value(nn.Module):
    """V(s): (batch,)."""

    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> jax.Array:
        return MLP(self.torso, 1)(Encoder(self.torso, name="value_encoder")(x))[:, 0]


class CategoricalPolicy(nn.Module):
    """pi(. | s) over `n_actions`. The last layer starts small, so that the first policy is near uniform."""

    n_actions: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Categorical:
        return Categorical(MLP(self.torso, self.n_actions, 0.01)(Encoder(self.torso, name="policy_encoder")(x)))


class GaussianPolicy(nn.Module):
    """Normal with a mean from the state and one free log standard deviation a dimension, as PPO's."""

    size: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Normal:
        loc = MLP(self.torso, self.size, 0.01)(Encoder(self.torso, name="policy_encoder")(x))
        return Normal(loc, jnp.broadcast_to(self.param("log_std", nn.initializers.zeros, (self.size,)), loc.shape))


class SquashedPolicy(nn.Module):
    """tanh of a Normal whose mean and log standard deviation, clipped to [-20, 2], both come from the state: SAC's.

    The bounds are those of the authors' code (haarnoja/sac, sac/distributions/normal.py: LOG_SIG_CAP_MIN, _MAX).
    `renorm` and `unit_features`: see `MLP`.
    """

    size: int
    torso: Torso
    renorm: int | None = None
    unit_features: bool = False

    @nn.compact
    def __call__(self, x: Inputs) -> TanhNormal:
        mlp = MLP(self.torso, 2 * self.size, renorm=self.renorm, unit_features=self.unit_features)
        loc, log_std = jnp.split(mlp(Encoder(self.torso, name="policy_encoder")(x)), 2, -1)
        return TanhNormal(loc, jnp.clip(log_std, -20.0, 2.0))


class TanhMeanPolicy(nn.Module):
    """Normal whose mean is squashed into [-1, 1], with one free log standard deviation a dimension: IQL's.

    The deviation's bounds are those of the authors' code (ikostrikov/implicit_q_learning, policy.py: LOG_STD_MIN and
    LOG_STD_MAX).
    """

    size: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Normal:
        loc = jnp.tanh(MLP(self.torso, self.size)(Encoder(self.torso, name="policy_encoder")(x)))
        log_std = jnp.clip(self.param("log_std", nn.initializers.zeros, (self.size,)), -5.0, 2.0)
        return Normal(loc, jnp.broadcast_to(log_std, loc.shape))


class DeterministicPolicy(nn.Module):
    """mu(s) = tanh(...): (batch, size) in [-1, 1]."""

    size: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> jax.Array:
        return jnp.tanh(MLP(self.torso, self.size)(Encoder(self.torso, name="policy_encoder")(x)))


class ActorCritic(nn.Module):
    """A policy and a value network trained by one loss: (distribution, value (batch,))."""

    policy: nn.Module
    value: nn.Module

    def __call__(self, x: Inputs):
        return self.policy(x), self.value(x)


def actor_critic(spec: Spec, torso: Torso) -> ActorCritic:
    """The networks of PPO and its kin: a categorical or Gaussian policy, as the actions are, and V(s)."""
    if spec.discrete:
        return ActorCritic(CategoricalPolicy(spec.n_actions, torso), Value(torso))
    return ActorCritic(GaussianPolicy(spec.action_size, torso), Value(torso))


class Scalar(nn.Module):
    """One trained number."""

    start: float = 0.0

    @nn.compact
    def __call__(self) -> jax.Array:
        return self.param("value", nn.initializers.constant(self.start), ())
