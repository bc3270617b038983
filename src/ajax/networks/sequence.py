"""Cells of sequence models, a step at a time: causal attention over a window, and a selective state space."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp


class TransformerCell(nn.Module):
    """Attention of the present step to the last steps, each layer normalized first (Xiong et al. 2020, figure 1b).

    The carry is the window itself: embedded steps (n, window, size), oldest first, and which are there (n, window). A
    learned embedding tells a step's age. So the output depends on the window's steps alone, however many layers.
    """

    size: int
    heads: int
    layers: int

    @nn.compact
    def __call__(self, carry: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        steps, there = carry
        token = nn.Dense(self.size, name="embed")(x)
        steps = jnp.concatenate([steps[:, 1:], token[:, None]], 1)
        there = jnp.concatenate([there[:, 1:], jnp.ones_like(there[:, :1])], 1)
        n, window = there.shape
        age = self.param("age", nn.initializers.normal(0.02), (window, self.size))
        hidden = steps + jnp.broadcast_to(age[None], steps.shape)
        causal = jnp.tril(jnp.ones((window, window), bool))
        mask = jnp.broadcast_to(causal[None, None], (n, 1, window, window)) & (there > 0)[:, None, None, :]
        for i in range(self.layers):
            y = nn.LayerNorm(name=f"norm_{i}")(hidden)
            hidden = hidden + nn.MultiHeadDotProductAttention(self.heads, name=f"attention_{i}")(y, y, mask=mask)
            y = nn.Dense(2 * self.size, name=f"wide_{i}")(nn.LayerNorm(name=f"wide_norm_{i}")(hidden))
            hidden = hidden + nn.Dense(self.size, name=f"narrow_{i}")(nn.gelu(y))
        return (steps, there), nn.LayerNorm(name="norm")(hidden[:, -1])


EXPAND, WIDTH = 2, 4
"""Channels per feature and width of the convolution, as in the authors' code (state-spaces/mamba, mamba_simple.py)."""


class MambaCell(nn.Module):
    """One step of a Mamba block around a normalized residual (Gu & Dao 2023, algorithm 2 and figure 3).

    With h the state of a channel, u its input, and the step size D, B and C functions of u:
    h <- exp(D A) h + D B u, y = C h + skip u. The carry is the convolution's last inputs (n, WIDTH - 1, channels) and h
    (n, channels, state).
    """

    size: int
    state: int

    @staticmethod
    def empty(n: int, size: int, state: int) -> tuple[jax.Array, jax.Array]:
        """The carry of `n` rows that remember nothing."""
        return jnp.zeros((n, WIDTH - 1, EXPAND * size)), jnp.zeros((n, EXPAND * size, state))

    @nn.compact
    def __call__(self, carry: Any, x: jax.Array) -> tuple[Any, jax.Array]:
        seen, h = carry
        n, channels = len(x), EXPAND * self.size
        token = nn.Dense(self.size, name="embed")(x)
        u, gate = jnp.split(nn.Dense(2 * channels, use_bias=False, name="in")(nn.LayerNorm(name="norm")(token)), 2, -1)

        seen = jnp.concatenate([seen, u[:, None]], 1)  # (n, WIDTH, channels)
        taps = self.param("taps", nn.initializers.variance_scaling(1.0, "fan_in", "uniform"), (WIDTH, channels))
        bias = self.param("taps_bias", nn.initializers.zeros, (channels,))
        u = nn.silu(jnp.einsum("nwc,wc->nc", seen, taps) + jnp.broadcast_to(bias[None], u.shape))

        rank = -(-self.size // 16)
        low, b, c = jnp.split(
            nn.Dense(rank + 2 * self.state, use_bias=False, name="select")(u), [rank, rank + self.state], -1
        )
        delta = nn.softplus(nn.Dense(channels, bias_init=_step_sizes, name="step")(low))
        a = -jnp.exp(self.param("log_a", _decays, (channels, self.state)))
        skip = self.param("skip", nn.initializers.ones, (channels,))
        decay = jnp.exp(jnp.einsum("nc,cs->ncs", delta, a))
        h = decay * h + jnp.einsum("nc,ns,nc->ncs", delta, b, u)
        y = jnp.einsum("ncs,ns->nc", h, c) + jnp.broadcast_to(skip[None], (n, channels)) * u
        out = nn.Dense(self.size, use_bias=False, name="out")(y * nn.silu(gate))
        return (seen[:, 1:], h), token + out


def _decays(key: jax.Array, shape: tuple[int, int], dtype: Any = jnp.float32) -> jax.Array:
    """log of 1, 2, ..., state in every channel (S4D-Real)."""
    return jnp.broadcast_to(jnp.log(jnp.arange(1, shape[1] + 1, dtype=dtype))[None], shape)


def _step_sizes(key: jax.Array, shape: tuple[int], dtype: Any = jnp.float32) -> jax.Array:
    """What softplus makes step sizes of, spread evenly in log between 0.001 and 0.1."""
    step = jnp.exp(jax.random.uniform(key, shape, dtype, jnp.log(1e-3), jnp.log(1e-1)))
    return step + jnp.log(-jnp.expm1(-step))
