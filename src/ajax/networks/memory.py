"""Memories: what a network carries from one step of an episode to the next.

A memory is a cell: `cell(carry, features) -> (carry, output)`, a step of every row at once. A carry of zeros remembers
nothing, whatever the cell. Unrolling a cell over time, and forgetting at an episode's start, is written once, in
`ajax.networks.encoder.Encoder`.
"""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.networks.sequence import MambaCell, TransformerCell

SIZE: Any = setting(default=64, low=1, help="features that a step puts out; for GRU and LSTM also units of the state")


@config
class Memory:
    """Base of the memories: what the training loops read of one."""

    length: int = setting(
        default=16, low=2, help="consecutive steps that a gradient flows through; batches are sequences of so many"
    )
    burn_in: int = setting(
        default=0, low=0, help="replayed steps before a sequence, which only warm the stored memory up"
    )

    def cell(self, name: str) -> nn.Module:
        """The linen module of one step."""
        raise NotImplementedError

    def empty(self, n: int) -> Any:
        """The carry of `n` rows that remember nothing."""
        raise NotImplementedError


@config
class GRU(Memory):
    """Gated recurrent unit (Cho et al. 2014, arXiv:1406.1078)."""

    size: int = SIZE

    def cell(self, name: str) -> nn.Module:
        """Flax's cell."""
        return nn.GRUCell(self.size, name=name)

    def empty(self, n: int) -> Any:
        """The state (n, size)."""
        return jnp.zeros((n, self.size))


@config
class LSTM(Memory):
    """Long short-term memory (Hochreiter & Schmidhuber 1997), with a forget gate."""

    size: int = SIZE

    def cell(self, name: str) -> nn.Module:
        """Flax's cell, its gates computed together."""
        return nn.OptimizedLSTMCell(self.size, name=name)

    def empty(self, n: int) -> Any:
        """The cell's and the hidden state, each (n, size)."""
        return jnp.zeros((n, self.size)), jnp.zeros((n, self.size))


@config
class Transformer(Memory):
    """Causal attention over the last `window` steps of the episode (Vaswani et al. 2017, arXiv:1706.03762)."""

    size: int = SIZE
    window: int = setting(default=16, low=1, help="steps that attention reaches back over, the present one included")
    heads: int = setting(default=4, low=1, help="attention heads; they divide size")
    layers: int = setting(default=1, low=1, help="layers of attention and a hidden layer each")

    def check(self) -> None:
        """Heads divide the size."""
        if self.size % self.heads:
            raise ConfigError(
                f"Transformer(size={self.size}, heads={self.heads}): heads must divide size. Change one of them."
            )

    def cell(self, name: str) -> nn.Module:
        """See `TransformerCell`."""
        return TransformerCell(self.size, self.heads, self.layers, name=name)

    def empty(self, n: int) -> Any:
        """No steps: the embedded steps (n, window, size), and which of them are there (n, window)."""
        return jnp.zeros((n, self.window, self.size)), jnp.zeros((n, self.window))


@config
class Mamba(Memory):
    """Selective state space (Gu & Dao 2023, arXiv:2312.00752), one block."""

    size: int = SIZE
    state: int = setting(default=16, low=1, help="numbers that each channel of the block remembers")

    def cell(self, name: str) -> nn.Module:
        """See `MambaCell`."""
        return MambaCell(self.size, self.state, name=name)

    def empty(self, n: int) -> Any:
        """The convolution's last inputs and the state of every channel."""
        return MambaCell.empty(n, self.size, self.state)


def forget(reset: jax.Array | None, carry: Any) -> Any:
    """The carry, emptied in the rows where `reset` (n,) is 1."""
    if reset is None:
        return carry
    return jax.tree.map(lambda c: jnp.where(reset.reshape(-1, *[1] * (c.ndim - 1)) > 0, 0.0, c), carry)
