"""A task whose every transition says what it is: for tests of adapters, buffers and loops."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.base import Step

TERMINATES_AT = 3
TRUNCATES_AT = 5


@struct.dataclass
class IdentityEnv:
    """Observes [t, c]: steps since the start, and a sign c drawn at the start, one or minus one with equal chance.

    Where c is 1 the episode terminates at t = 3; where c is -1 it is truncated at t = 5. The reward of an action a
    taken at t is c * (10 t + a), so that a stored transition can be recognised and its parts checked against another.

    Attributes:
        continuous: actions in the box [-1, 1] of one dimension; else one of two.
    """

    continuous: bool = struct.field(pytree_node=False, default=False)

    @property
    def observation_space(self) -> Box:
        """[t, c]."""
        return Box.of([0.0, -1.0], [TRUNCATES_AT, 1.0])

    @property
    def action_space(self) -> Space:
        """A box or two actions."""
        return Box(-1.0, 1.0, (1,)) if self.continuous else Discrete(2)

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is truncated."""
        return TRUNCATES_AT

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw c; returns `(state, observation)`, which are the same."""
        obs = jnp.stack([jnp.float32(0.0), jnp.where(jax.random.bernoulli(key), 1.0, -1.0)])
        return obs, obs

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, Step]:
        """Count one step; returns `(next state, Step)`."""
        t, c = state
        state = jnp.stack([t + 1.0, c])
        step = Step(
            obs=state,
            reward=c * (10.0 * t + jnp.reshape(action, ()).astype(jnp.float32)),
            terminated=(c > 0) & (t + 1.0 >= TERMINATES_AT),
            truncated=(c < 0) & (t + 1.0 >= TRUNCATES_AT),
        )
        return state, step
