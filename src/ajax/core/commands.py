"""Commands: the return that an agent is asked for, and the steps in which it is to earn it.

A command is (desired return, desired horizon), the last axis of an array. Srivastava et al. 2019, "Training Agents
using Upside-Down Reinforcement Learning", arXiv:1912.02877, section 2 and algorithm 2.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct


class Goal(struct.PyTreeNode):
    """What is asked for, as the best episodes so far make it; scalars.

    Attributes:
        low, high: bounds of the desired return.
        horizon: desired horizon, steps.
    """

    low: jax.Array
    high: jax.Array
    horizon: jax.Array

    @classmethod
    def none(cls) -> Goal:
        """Before any episode has ended: nothing, at once."""
        return cls(jnp.zeros(()), jnp.zeros(()), jnp.ones(()))


def goal_of(returns: jax.Array, lengths: jax.Array, known: jax.Array) -> Goal:
    """The goal that episodes set: M, the mean of their returns, to M + S, their deviation; their mean length.

    Args:
        returns, lengths: of each episode (k,).
        known: whether there is such an episode (k,); where there is none at all, the goal is `Goal.none()`.
    """
    n = jnp.maximum(known.sum(), 1)

    def mean(x: jax.Array) -> jax.Array:
        return jnp.where(known, x, 0.0).sum() / n

    low = mean(returns)
    spread = jnp.sqrt(mean(jnp.square(returns - low)))
    return Goal(low, low + spread, jnp.maximum(mean(lengths), 1.0))


def exploring(goal: Goal, key: jax.Array, n: int) -> jax.Array:
    """The first commands of `n` episodes that explore (n, 2): each asks for a return from U[M, M + S]."""
    returns = goal.low + (goal.high - goal.low) * jax.random.uniform(key, (n,))
    return jnp.stack([returns, jnp.broadcast_to(goal.horizon, (n,))], -1)


def greedy(goal: Goal, n: int) -> jax.Array:
    """The first commands of `n` episodes that are evaluated (n, 2): each asks for M."""
    return jnp.broadcast_to(jnp.stack([goal.low, goal.horizon]), (n, 2))


def remaining(command: jax.Array, earned: jax.Array, elapsed: jax.Array) -> jax.Array:
    """What is left of the first commands (n, 2) in the course of their episodes: (n, 2).

    Args:
        command: at the episodes' starts.
        earned: sum of the rewards since then (n,).
        elapsed: steps since then (n,). A horizon is never below 1.
    """
    return jnp.stack([command[:, 0] - earned, jnp.maximum(command[:, 1] - elapsed, 1.0)], -1)
