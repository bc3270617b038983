"""Loss terms, elementwise: the caller takes the mean."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.distributions import Categorical


def huber(error: jax.Array, delta: jax.Array | float = 1.0) -> jax.Array:
    """Huber 1964: e^2 / 2 within `delta`, linear with slope `delta` outside; DQN's error clipping (Mnih 2015)."""
    small = jnp.minimum(jnp.abs(error), delta)
    return 0.5 * jnp.square(small) + delta * (jnp.abs(error) - small)


def expectile(error: jax.Array, tau: jax.Array | float) -> jax.Array:
    """|tau - 1(error < 0)| error^2, whose mean over x - m is least at m, the tau-expectile (Newey & Powell 1987)."""
    return jnp.where(error > 0, tau, 1.0 - tau) * jnp.square(error)


def clipped_surrogate(ratio: jax.Array, advantage: jax.Array, clip: jax.Array | float) -> jax.Array:
    """PPO's objective to *maximize*: min(ratio A, clip(ratio, 1 - clip, 1 + clip) A) (Schulman et al. 2017, eq. 7)."""
    return jnp.minimum(ratio * advantage, jnp.clip(ratio, 1.0 - clip, 1.0 + clip) * advantage)


def imitation_error(pi: Any, action: jax.Array) -> jax.Array:
    """How far a policy is from actions, (batch,): -log pi(a) of discrete ones, else the mode's squared distance.

    Args:
        pi: a distribution, or the actions (batch, size) of a deterministic policy.
        action: (batch,) indices, or (batch, size).
    """
    if isinstance(pi, Categorical):
        return -pi.log_prob(action)
    return jnp.square((pi if isinstance(pi, jax.Array) else pi.mode()) - action).sum(-1)


def standardize(x: jax.Array, eps: float = 1e-8) -> jax.Array:
    """Shift and scale to mean 0 and standard deviation 1 over *all* axes."""
    return (x - x.mean()) / (x.std() + eps)
