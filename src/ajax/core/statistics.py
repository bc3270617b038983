"""Running mean and variance, merged batch by batch, and the scale of TD errors that they make."""

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
        rows = rows.reshape(-1, *self.mean.shape).astype(self.mean.dtype)
        n, mean = rows.shape[0], rows.mean(0)
        total = self.count + n
        delta = mean - self.mean
        m2 = self.m2 + jnp.square(rows - mean[None]).sum(0) + jnp.square(delta) * self.count * n / total
        return RunningStats(self.mean + delta * n / total, m2, total)

    @property
    def variance(self) -> jax.Array:
        """Mean squared deviation; 0 before anything was seen."""
        return self.m2 / jnp.maximum(self.count, 1.0)

    @property
    def std(self) -> jax.Array:
        """Standard deviation; 1 before anything was seen."""
        return jnp.where(self.count > 0, jnp.sqrt(self.variance + 1e-8), 1.0)

    @property
    def spread(self) -> jax.Array:
        """Standard deviation; 1 where all that was seen is one number, which has no deviation to divide by."""
        return jnp.where(self.variance > 1e-8 * jnp.square(self.mean), self.std, 1.0)

    def normalize(self, x: jax.Array, limit: float = 10.0) -> jax.Array:
        """Shift and scale, then clip to +- `limit`."""
        mean, std = jnp.broadcast_to(self.mean, x.shape), jnp.broadcast_to(self.std, x.shape)
        return jnp.clip((x - mean) / std, -limit, limit)


class ReturnScale(struct.PyTreeNode):
    """What one environment's rewards say of the size of TD errors (Schaul et al. 2021, arXiv:2105.05347, eq. 6).

    Attributes:
        reward: statistics of rewards.
        discount: statistics of the discount: gamma, and 0 where the task terminated.
        square: statistics of finished episodes' squared returns, undiscounted.
        running: return of the episode under way.
    """

    reward: RunningStats
    discount: RunningStats
    square: RunningStats
    running: jax.Array

    @classmethod
    def zeros(cls) -> ReturnScale:
        """Nothing seen: the scale is 1."""
        # arrays of their own, since a run gives its own away
        return cls(RunningStats.zeros(()), RunningStats.zeros(()), RunningStats.zeros(()), jnp.zeros(()))

    def add(
        self, reward: jax.Array, terminated: jax.Array, truncated: jax.Array, gamma: jax.Array | float
    ) -> ReturnScale:
        """Merge one step, all scalars. An episode that was cut short has no return: it is left out."""
        total = self.running + reward
        ended = jnp.maximum(terminated, truncated)
        return ReturnScale(
            reward=self.reward.add(reward),
            discount=self.discount.add(gamma * (1.0 - terminated)),
            square=jax.tree.map(
                lambda new, old: jnp.where(terminated > 0, new, old), self.square.add(jnp.square(total)), self.square
            ),
            running=total * (1.0 - ended),
        )

    @property
    def sigma(self) -> jax.Array:
        """sqrt(Var[r] + Var[discount] E[G^2]), at least 0.01; until an episode terminates and below 0.1, 1."""
        variance = jnp.maximum(self.reward.variance + self.discount.variance * self.square.mean, 1e-4)
        return jnp.where((variance <= 0.01) & (self.square.count == 0), 1.0, jnp.sqrt(variance))
