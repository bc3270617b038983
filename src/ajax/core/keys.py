"""Random keys by name, not by order: adding a consumer moves nobody else's draws, and nothing threads a key."""

from __future__ import annotations

import zlib

import jax


def stream(key: jax.Array, name: str) -> jax.Array:
    """Return the key for one named use of `key`. Different names give independent draws."""
    return jax.random.fold_in(key, zlib.crc32(name.encode()) & 0x7FFFFFFF)


def seed_key(seed: jax.Array | int) -> jax.Array:
    """Return the root key of the run with this seed; everything random in a run derives from it."""
    return jax.random.key(seed)
