"""Replay: a ring of transitions, uniform sampling of rows or of windows of consecutive rows.

The ring is (rows, n_envs, ...): one row holds the step that every parallel environment took at one tick, so that a
window runs along one environment's own time, and adding is one contiguous write.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.errors import ConfigError


@config
class Replay:
    """How an off-policy agent collects and reuses experience."""

    capacity: int = setting(default=1_000_000, low=1, help="transitions kept, over all environments")
    batch_size: int = setting(default=256, low=1, help="transitions in one update")
    warmup: int = setting(
        default=1_000, low=0, help="environment steps of uniformly random actions before learning starts"
    )
    n_envs: int = setting(default=1, low=1, help="environments stepped in parallel")
    steps: int = setting(default=1, low=1, help="steps of every environment between two rounds of updates")
    updates: int = setting(default=1, low=1, help="gradient updates in a round")

    def check(self) -> None:
        """The buffer holds a batch, and warm-up fills one."""
        if self.batch_size > self.capacity:
            raise ConfigError(
                f"Replay(batch_size={self.batch_size}, capacity={self.capacity}): a batch can't be larger than the"
                " buffer. Lower batch_size or raise capacity."
            )
        if self.capacity < self.n_envs * self.steps:
            raise ConfigError(
                f"Replay(capacity={self.capacity}, n_envs={self.n_envs}, steps={self.steps}): the buffer must hold"
                f" what one round collects, {self.n_envs * self.steps} transitions. Raise capacity."
            )


class Store(struct.PyTreeNode):
    """The ring's contents.

    Attributes:
        rows: pytree of arrays (n_rows, n_envs, ...).
        at: row that the next write goes to, int32.
        size: rows written so far, at most n_rows, int32.
    """

    rows: Any
    at: jax.Array
    size: jax.Array


def init(row: Any, capacity: int) -> Store:
    """An empty store for rows like `row`, a pytree of arrays (n_envs, ...); `capacity` counts transitions."""
    n_envs = jax.tree.leaves(row)[0].shape[0]
    n_rows = capacity // n_envs
    rows = jax.tree.map(lambda x: jnp.zeros((n_rows, *x.shape), x.dtype), row)
    return Store(rows, jnp.int32(0), jnp.int32(0))


def add(store: Store, row: Any) -> Store:
    """Write one row over the oldest."""
    n_rows = jax.tree.leaves(store.rows)[0].shape[0]
    rows = jax.tree.map(lambda ring, new: jax.lax.dynamic_update_index_in_dim(ring, new, store.at, 0), store.rows, row)
    return Store(rows, (store.at + 1) % n_rows, jnp.minimum(store.size + 1, n_rows))


def sample(store: Store, key: jax.Array, batch_size: int, window: int = 1) -> Any:
    """Draw with replacement, uniformly over what is stored.

    Returns:
        Rows (batch_size, ...), or for `window` > 1 (window, batch_size, ...): consecutive steps of one environment,
        never across the write position.
    """
    n_rows, n_envs = jax.tree.leaves(store.rows)[0].shape[:2]
    # one draw serves both coordinates: position in time from the oldest row, and environment
    flat = jax.random.randint(key, (batch_size,), 0, jnp.maximum(store.size - window + 1, 1) * n_envs)
    start, env = flat // n_envs, flat % n_envs
    oldest = jnp.where(store.size == n_rows, store.at, 0)
    if window > 1:
        start, env = start[None] + jnp.arange(window)[:, None], env[None]
    at = (oldest + start) % n_rows * n_envs + env
    # a flat, clipping take: XLA's CPU backend fuses any other gather with the write before it, and copies the ring
    return jax.tree.map(lambda ring: jnp.take(ring.reshape(-1, *ring.shape[2:]), at, axis=0, mode="clip"), store.rows)
