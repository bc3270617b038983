"""Action distributions, each an arrays-only record with `sample`, `mode`, `log_prob` and `entropy`.

Log probabilities of vector actions are summed over the last axis: (*batch,).
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.keys import stream
from ajax.core.learn import pick


class Categorical(struct.PyTreeNode):
    """A distribution over 0 .. n - 1 given unnormalized `logits` (*batch, n)."""

    logits: jax.Array

    @property
    def log_probs(self) -> jax.Array:
        """Normalized log probabilities (*batch, n)."""
        return jax.nn.log_softmax(self.logits)

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw indices (*batch,)."""
        return jax.random.categorical(key, self.logits)

    def mode(self) -> jax.Array:
        """The likeliest index."""
        return self.logits.argmax(-1).astype(jnp.int32)

    def log_prob(self, action: jax.Array) -> jax.Array:
        """log p(action)."""
        return pick(self.log_probs, action)

    def entropy(self) -> jax.Array:
        """Entropy in nats."""
        log_probs = self.log_probs
        return -(jnp.exp(log_probs) * log_probs).sum(-1)


class EpsilonGreedy(struct.PyTreeNode):
    """The best of action values `q` (*batch, n); with share `epsilon` any of the n (Sutton & Barto 2018, 2.2)."""

    q: jax.Array
    epsilon: jax.Array | float

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw indices (*batch,), each with a coin of its own."""
        greedy = self.mode()
        random = jax.random.randint(stream(key, "action"), greedy.shape, 0, self.q.shape[-1])
        coin = jax.random.uniform(stream(key, "coin"), greedy.shape)
        return jnp.where(coin < self.epsilon, random, greedy)

    def mode(self) -> jax.Array:
        """The index of the largest value."""
        return self.q.argmax(-1).astype(jnp.int32)


class Normal(struct.PyTreeNode):
    """Independent Gaussians with mean `loc` and log standard deviation `log_std`, both (*batch, d)."""

    loc: jax.Array
    log_std: jax.Array

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw (*batch, d), reparameterized."""
        return self.loc + jnp.exp(self.log_std) * jax.random.normal(key, self.loc.shape, self.loc.dtype)

    def mode(self) -> jax.Array:
        """The mean."""
        return self.loc

    def log_prob(self, action: jax.Array) -> jax.Array:
        """log p(action), summed over dimensions."""
        z = (action - self.loc) * jnp.exp(-self.log_std)
        return (-0.5 * jnp.square(z) - self.log_std - 0.5 * math.log(2 * math.pi)).sum(-1)

    def entropy(self) -> jax.Array:
        """Entropy in nats, summed over dimensions."""
        return (self.log_std + 0.5 * math.log(2 * math.pi * math.e)).sum(-1)


class TanhNormal(struct.PyTreeNode):
    """a = tanh(u), u ~ Normal(loc, exp(log_std)): actions in (-1, 1) (Haarnoja et al. 2018, appendix C)."""

    loc: jax.Array
    log_std: jax.Array

    def sample_and_log_prob(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw an action (*batch, d), reparameterized, with its log probability (*batch,)."""
        return self.from_noise(jax.random.normal(key, self.loc.shape, self.loc.dtype))

    def from_noise(self, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The action (*batch, d) that standard normal `noise` makes, with its log probability (*batch,).

        log pi(a) = log N(u) - sum log(1 - tanh(u)^2), the Jacobian written as 2 (log 2 - u - softplus(-2u)) so that
        it neither overflows nor loses digits at the edges of the box.
        """
        u = self.loc + jnp.exp(self.log_std) * noise
        log_normal = -0.5 * jnp.square(noise) - self.log_std - 0.5 * math.log(2 * math.pi)
        log_jacobian = 2.0 * (math.log(2.0) - u - jax.nn.softplus(-2.0 * u))
        return jnp.tanh(u), (log_normal - log_jacobian).sum(-1)

    def sample(self, key: jax.Array) -> jax.Array:
        """Draw an action (*batch, d)."""
        return self.sample_and_log_prob(key)[0]

    def mode(self) -> jax.Array:
        """The action at the Gaussian's mean."""
        return jnp.tanh(self.loc)
