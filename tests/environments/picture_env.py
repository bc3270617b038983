"""An environment of images of bytes: a bright column moves to the right; the action that names its side pays."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.base import Step

SIDE = 4


@struct.dataclass
class PictureEnv:
    """The state is the column, and a step moves it on; past the last column the episode terminates.

    Attributes:
        continuous: actions in the box [-1, 1] of one dimension, whose sign counts; else one of two.
    """

    continuous: bool = struct.field(pytree_node=False, default=False)

    @property
    def observation_space(self) -> Box:
        """Bytes (SIDE, SIDE, 1)."""
        return Box(0.0, 255.0, (SIDE, SIDE, 1), "uint8")

    @property
    def action_space(self) -> Space:
        """A box or two actions."""
        return Box(-1.0, 1.0, (1,)) if self.continuous else Discrete(2)

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Begin at a random column but the last."""
        column = jax.random.randint(key, (), 0, SIDE - 1)
        return column, _picture(column)

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, Step]:
        """Naming the half that the column is in pays 1."""
        right = state >= SIDE // 2
        named = jnp.reshape(action, ()) > 0
        step = Step(
            obs=_picture(state + 1),
            reward=(named == right).astype(jnp.float32),
            terminated=state + 1 >= SIDE - 1,
            truncated=jnp.bool_(False),
        )
        return state + 1, step


def _picture(column: jax.Array) -> jax.Array:
    row = jnp.where(jnp.arange(SIDE) == column, 255, 0).astype(jnp.uint8)
    return jnp.broadcast_to(row[None, :, None], (SIDE, SIDE, 1))
