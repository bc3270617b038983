"""The encoder: from `Inputs` to features, by convolutions and a memory where the torso has them."""

from __future__ import annotations

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from ajax.core.records import Inputs
from ajax.networks.cnn import Filters
from ajax.networks.layers import flat
from ajax.networks.memory import forget
from ajax.networks.torsos import Torso


class Encoder(nn.Module):
    """What a network knows of the state, (batch, ...): the observation, or what `torso` finds in it and remembers.

    Every head reads its `Inputs` through one, and gives it a name: that of the network's own carry. Critics of an
    ensemble share theirs.
    """

    torso: Torso

    def __call__(self, x: Inputs) -> jax.Array:
        return self.remember(x)[0]

    @nn.compact
    def remember(self, x: Inputs) -> tuple[jax.Array, Any]:
        """The features, and the carry after the rows: `()` without a memory."""
        see = Filters(self.torso.cnn, self.torso.activation, self.torso.initializer) if self.torso.cnn else _as_it_is
        if self.torso.memory is None:
            return see(x.obs), ()
        cell = self.torso.memory.cell("cell")
        carry = self._start(x)
        if x.before is not None:
            carry = _follow(cell, see, carry, x.before, len(x.obs))
        carry, features = cell(forget(x.reset, carry), flat(see(x.obs)))
        return features, carry

    def _start(self, x: Inputs) -> Any:
        assert self.torso.memory is not None and self.name is not None
        n = len(x.obs) if x.before is None else x.before.obs.shape[1]
        return (x.carry or {}).get(self.name, self.torso.memory.empty(n))


def _follow(cell: nn.Module, see: Any, carry: Any, before: Inputs, n_rows: int) -> Any:
    """The carries that `n_rows` rows follow, the last of them the one at the end of the stream `before`.

    No gradient flows into what lies before the first of them.
    """

    def step(cell: Any, carry: Any, now: tuple[jax.Array, jax.Array | None]) -> tuple[Any, Any]:
        features, reset = now
        carry, _ = cell(forget(reset, carry), features)
        return carry, carry

    n_steps, n = before.obs.shape[:2]
    stream = flat(see(before.obs.reshape(-1, *before.obs.shape[2:]))).reshape(n_steps, n, -1), before.reset
    unroll = nn.scan(step, variable_broadcast="params", split_rngs={"params": False})
    first = n_steps - (n_rows // n - 1)
    if first:
        carry, _ = unroll(cell, carry, jax.tree.map(lambda x: x[:first], stream))
    carry = jax.lax.stop_gradient(carry)
    carries = jax.tree.map(lambda c: c[None], carry)
    if first < n_steps:
        _, rest = unroll(cell, carry, jax.tree.map(lambda x: x[first:], stream))
        carries = jax.tree.map(lambda c, r: jnp.concatenate([c, r]), carries, rest)
    return jax.tree.map(lambda c: c.reshape(-1, *c.shape[2:]), carries)


def _as_it_is(obs: jax.Array) -> jax.Array:
    return obs
