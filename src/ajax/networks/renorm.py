"""Batch renormalization: what lets critics that see two distributions at once do without a target network."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp

# CrossQ's (adityab/CrossQ, sbx/sac/policies.py), which takes the last two from Ioffe 2017, section 3
MOMENTUM = 0.99
EPSILON = 1e-3
R_MAX, D_MAX = 3.0, 5.0


class BatchRenorm(nn.Module):
    """Normalizes each feature of (batch, features), then scales and shifts it by parameters.

    In training (where the collection "batch_stats" may change: `Net.train`) by the mean and variance of the batch,
    corrected, as if by a constant, so that the result is that of the running ones (Ioffe 2017, arXiv:1702.03275,
    algorithm 1); otherwise by the running ones.

    Attributes:
        warmup: training calls before the correction begins; until then it is plain batch normalization.
    """

    warmup: int

    @nn.compact
    def __call__(self, x: jax.Array) -> jax.Array:
        """The normalized features: (batch, features)."""
        size = x.shape[-1:]
        running_mean = self.variable("batch_stats", "mean", jnp.zeros, size)
        running_var = self.variable("batch_stats", "var", jnp.ones, size)
        steps = self.variable("batch_stats", "steps", jnp.zeros, (), jnp.int32)
        scale = self.param("scale", nn.initializers.ones, size)
        bias = self.param("bias", nn.initializers.zeros, size)
        mean, var = running_mean.value, running_var.value
        if self.is_mutable_collection("batch_stats") and not self.is_initializing():
            batch_mean, batch_var = x.mean(0), x.var(0)
            r, d = _correction(batch_mean, batch_var, mean, var)
            warm = steps.value >= self.warmup
            r, d = jnp.where(warm, r, 1.0), jnp.where(warm, d, 0.0)
            running_mean.value = MOMENTUM * mean + (1.0 - MOMENTUM) * batch_mean
            running_var.value = MOMENTUM * var + (1.0 - MOMENTUM) * batch_var
            steps.value = steps.value + 1
            mean, var = batch_mean - d * _sqrt(batch_var) / r, batch_var / jnp.square(r)
        return (x - mean[None]) / jnp.sqrt(var + EPSILON)[None] * scale[None] + bias[None]


def _correction(
    mean: jax.Array, var: jax.Array, running_mean: jax.Array, running_var: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """r and d of algorithm 1, through which no gradient flows."""
    deviation = jnp.sqrt(running_var + EPSILON)
    r = jnp.clip(jnp.sqrt(var + EPSILON) / deviation, 1.0 / R_MAX, R_MAX)
    d = jnp.clip((mean - running_mean) / deviation, -D_MAX, D_MAX)
    return jax.lax.stop_gradient(r), jax.lax.stop_gradient(d)


def _sqrt(var: jax.Array) -> jax.Array:
    """The square root, with a slope of 0 at 0: a unit that is constant over the batch has an infinite one."""
    positive = var > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, var, 1.0)), 0.0)
