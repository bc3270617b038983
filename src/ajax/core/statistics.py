"""Running mean and variance, merged batch by batch."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct


class RunningStats(struct.PyTreeNode):
    """Mean and variance of all that was seen, element by element.

    Attributes:
        mean, m2: mean and sum of squared deviations, in the shape of one observation.
        count: how many were seen, float32 scalar.
    """

    mean: jax.Array
    m2: jax.Array
    count: jax.Array

    @classmethod
    def zeros(cls, shape: tuple[int, ...]) -> RunningStats:
        """Statistics of nothing: they leave a value as it is."""
        return cls(jnp.zeros(shape), jnp.zeros(shape), jnp.zeros(()))

    def add(self, rows: jax.Array) -> RunningStats:
        """Merge rows of any number of leading axes (Chan et al. 1983, the parallel update)."""
        rows = rows.reshape(-1, *self.mean.shape).astype(jnp.float32)
        n, mean = rows.shape[0], rows.mean(0)
        total = self.count + n
        delta = mean - self.mean
        m2 = self.m2 + jnp.square(rows - mean[None]).sum(0) + jnp.square(delta) * self.count * n / total
        return RunningStats(self.mean + delta * n / total, m2, total)

    @property
    def std(self) -> jax.Array:
        """Standard deviation; 1 before anything was seen."""
        variance = self.m2 / jnp.maximum(self.count, 1.0)
        return jnp.where(self.count > 0, jnp.sqrt(variance + 1e-8), 1.0)

    def normalize(self, x: jax.Array, limit: float = 10.0) -> jax.Array:
        """Shift and scale, then clip to +- `limit`."""
        mean, std = jnp.broadcast_to(self.mean, x.shape), jnp.broadcast_to(self.std, x.shape)
        return jnp.clip((x - mean) / std, -limit, limit)
