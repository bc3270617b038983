"""Episodes: whole ones, those of the highest return, and samples of what was done in them to get what.

The store has a slot for each episode that it keeps and one for each environment, whose open episode is written there
step by step. An episode that ends is in its place already: its environment goes on in the slot of the worst episode
that there is. Nothing is ever moved.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.core.keys import stream
from ajax.core.records import Batch


@config
class Episodes:
    """How an agent collects and reuses whole episodes."""

    capacity: int = setting(default=500, low=1, help="episodes kept: those of the highest return")
    max_length: int = setting(default=1_000, low=1, help="steps of the longest episode that is kept; no longer one is")
    last_few: int = setting(default=50, low=1, help="best episodes that commands are made of")
    trailing: bool = setting(
        default=True, help="learn from segments up to an episode's end; False: up to any later step"
    )
    batch_size: int = setting(default=768, low=1, help="segments in one update")
    warmup: int = setting(
        default=4_096, low=0, help="environment steps of uniformly random actions before learning starts"
    )
    n_envs: int = setting(default=16, low=1, help="environments stepped in parallel")
    steps: int = setting(default=128, low=1, help="steps of every environment between two rounds of updates")
    updates: int = setting(default=100, low=1, help="gradient updates in a round")

    def check(self) -> None:
        """The buffer holds the episodes that commands are made of."""
        if self.last_few > self.capacity:
            raise ConfigError(
                f"Episodes(last_few={self.last_few}, capacity={self.capacity}): commands can't be made of more episodes"
                " than are kept. Lower last_few or raise capacity."
            )


class Store(struct.PyTreeNode):
    """The slots, n_slots = capacity + n_envs of them.

    Attributes:
        rows: transitions, a pytree of arrays (n_slots, max_length, ...).
        before: rewards summed before each of them (n_slots, max_length).
        returns: rewards summed over each episode, so far where it is open (n_slots,).
        lengths: steps of each, so far where it is open, int32 (n_slots,).
        whole: whether the slot holds an episode that ended, every step of it (n_slots,).
        number: when it ended: how many had ended before it, int32 (n_slots,).
        open: each environment's slot, int32 (n_envs,).
        ended: how many episodes have ended, kept or not, int32.
    """

    rows: Batch
    before: jax.Array
    returns: jax.Array
    lengths: jax.Array
    whole: jax.Array
    number: jax.Array
    open: jax.Array
    ended: jax.Array


def init(row: Batch, capacity: int, max_length: int) -> Store:
    """An empty store for rows like `row`, a batch of arrays (n_envs, ...)."""
    n_envs = row.reward.shape[0]
    n = capacity + n_envs
    return Store(
        rows=jax.tree.map(lambda x: jnp.zeros((n, max_length, *x.shape[1:]), x.dtype), row),
        before=jnp.zeros((n, max_length)),
        returns=jnp.zeros(n),
        lengths=jnp.zeros(n, jnp.int32),
        whole=jnp.zeros(n, bool),
        number=jnp.zeros(n, jnp.int32),
        open=jnp.arange(n_envs, dtype=jnp.int32),
        ended=jnp.int32(0),
    )


def add(store: Store, row: Batch) -> Store:
    """Write one step of every environment (n_envs, ...) into its open episode; those that end with it are kept.

    A full store drops the episode of the lowest return, of several the oldest, be it the new one. An episode of more
    than `max_length` steps is dropped when it ends.
    """
    slot, max_length = store.open, store.before.shape[1]
    t = store.lengths[slot]
    rows = jax.tree.map(lambda x, new: x.at[slot, t].set(new, mode="drop"), store.rows, row)
    before = store.before.at[slot, t].set(store.returns[slot], mode="drop")
    ended = jnp.maximum(row.terminated, row.truncated) > 0
    store = store.replace(
        rows=rows,
        before=before,
        returns=store.returns.at[slot].add(row.reward),
        lengths=store.lengths.at[slot].add(1),
        whole=store.whole.at[slot].set(ended & (t + 1 <= max_length)),
        number=store.number.at[slot].set(store.ended + jnp.cumsum(ended) - 1),
        ended=store.ended + ended.sum(),
    )
    worth = jnp.where(store.whole, store.returns, -jnp.inf)
    # few steps end an episode; only numbers of slots pass through the branch, no row
    open = jax.lax.cond(ended.any(), _reopen, lambda worth, number, ended, slot: slot, worth, store.number, ended, slot)
    return store.replace(
        open=open,
        returns=store.returns.at[open].set(jnp.where(ended, 0.0, store.returns[open])),
        lengths=store.lengths.at[open].set(jnp.where(ended, 0, store.lengths[open])),
        whole=store.whole.at[open].set(False),
    )


def _reopen(worth: jax.Array, number: jax.Array, ended: jax.Array, slot: jax.Array) -> jax.Array:
    """The slots to go on in (n_envs,): where an episode `ended`, the one of least `worth` that is not open."""
    worth = worth.at[slot].set(jnp.where(ended, worth[slot], jnp.inf))
    spare = jnp.lexsort((number, worth))[: len(slot)]
    return jnp.where(ended, spare[jnp.cumsum(ended) - 1], slot).astype(jnp.int32)


def restart(store: Store) -> Store:
    """Forget the open episodes, where their environments start again."""
    return store.replace(returns=store.returns.at[store.open].set(0.0), lengths=store.lengths.at[store.open].set(0))


def best(store: Store, n: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns (n,) and lengths (n,) of the best episodes, of equal ones the newest, and whether there are so many."""
    order = jnp.lexsort((store.number, jnp.where(store.whole, store.returns, -jnp.inf)))[::-1][:n]
    return store.returns[order], store.lengths[order].astype(jnp.float32), store.whole[order]


def sample(store: Store, key: jax.Array, batch_size: int, trailing: bool) -> tuple[Batch, jax.Array]:
    """Draw segments of episodes: an episode, its first step t1 and its end t2 > t1, each uniformly.

    Args:
        store: what is drawn from; where it holds no episode, the result has no meaning.
        key: of the draws.
        batch_size: how many, with replacement.
        trailing: whether t2 is the episode's end.

    Returns:
        The transitions at t1 (batch_size, ...), and the commands that the segments fulfilled (batch_size, 2): the sum
        of their rewards, and their t2 - t1 steps.
    """
    whole = jnp.cumsum(store.whole)
    nth = jax.random.randint(stream(key, "episode"), (batch_size,), 1, jnp.maximum(whole[-1], 1) + 1)
    slot = jnp.searchsorted(whole, nth)
    length = store.lengths[slot]
    first = jax.random.randint(stream(key, "first"), (batch_size,), 0, jnp.maximum(length, 1))
    last = length if trailing else jax.random.randint(stream(key, "last"), (batch_size,), first + 1, length + 1)
    max_length = store.before.shape[1]
    # flat, clipping takes: see `replay.sample`
    at = slot * max_length + first

    def take(ring: jax.Array, index: jax.Array) -> jax.Array:
        return jnp.take(ring.reshape(-1, *ring.shape[2:]), index, axis=0, mode="clip")

    until = jnp.where(last < length, take(store.before, slot * max_length + last), store.returns[slot])
    command = jnp.stack([until - take(store.before, at), (last - first).astype(jnp.float32)], -1)
    return jax.tree.map(lambda ring: take(ring, at), store.rows), command
