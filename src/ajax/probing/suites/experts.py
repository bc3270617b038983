"""Experts for probes: what each does in a state is known."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.expert import Expert


class Listed(Expert):
    """Does what is listed for the state that it sees one-hot.

    Attributes:
        actions: by state, in the environment's units.
        discrete: whether they are indices.
    """

    actions: tuple[float, ...] = struct.field(pytree_node=False)
    discrete: bool = struct.field(pytree_node=False)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action of the state."""
        action = jnp.asarray(self.actions, jnp.float32)[jnp.argmax(obs[: len(self.actions)])]
        return (action.astype(jnp.int32) if self.discrete else action.reshape(1)), memory


class Counting(Listed):
    """Does what is listed for the step of the episode, which it counts itself; beyond the list, its last entry."""

    def init(self) -> jax.Array:
        """The first step."""
        return jnp.int32(0)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action of the step."""
        action = jnp.asarray(self.actions, jnp.float32)[jnp.minimum(memory, len(self.actions) - 1)]
        return (action.astype(jnp.int32) if self.discrete else action.reshape(1)), memory + 1


class Uniform(Expert):
    """Draws from a box of one dimension.

    Attributes:
        low, high: its bounds.
    """

    low: float
    high: float

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """A draw."""
        return jax.random.uniform(key, (1,), minval=self.low, maxval=self.high), memory
