"""Experts: policies that are given rather than learned, such as a controller, a planner or a trained agent.

An expert is written like an environment: for one observation, raw, with actions in the environment's own units. What it
remembers within an episode is a pytree that it is handed back, and that starts again with every episode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.spaces import Discrete, Space, to_agent


class Expert(struct.PyTreeNode):
    """Base of every expert. Its fields are arrays, or declared `struct.field(pytree_node=False)`.

    A stateless expert overrides `act` alone and hands its memory on as it came.
    """

    def init(self) -> Any:
        """Return the memory of an episode that starts: a pytree, `()` for none."""
        return ()

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """Return the action for one raw observation, in the environment's units, and the memory for the next."""
        raise NotImplementedError


class Stateless(Expert):
    """A function of one raw observation as an expert.

    Attributes:
        function: obs -> action, in the environment's units.
    """

    function: Callable[[jax.Array], jax.Array] = struct.field(pytree_node=False)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The function's action."""
        return jnp.asarray(self.function(obs)), memory


def memories(expert: Expert, n: int) -> Any:
    """The memories of `n` episodes that start, leading axis n."""
    return jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], n, 0), expert.init())


def advise(
    expert: Expert, space: Space, memory: Any, obs: jax.Array, key: jax.Array, elapsed: jax.Array | None = None
) -> tuple[jax.Array, Any]:
    """What an expert would do in each of several environments.

    Args:
        expert: whom to ask.
        space: the environment's actions.
        memory: the expert's of each environment, leading axis n.
        obs: raw observations (n, *shape).
        key: for experts that draw.
        elapsed: steps since each episode's start (n,): where 0, the memory starts again. None: it goes on everywhere.

    Returns:
        Actions in agent units, (n, size) within [-1, 1] or (n,) int32, and the memories after them.
    """
    n = obs.shape[0]
    if elapsed is not None:
        fresh = memories(expert, n)
        memory = jax.tree.map(
            lambda new, old: jnp.where((elapsed == 0).reshape(n, *[1] * (old.ndim - 1)), new, old), fresh, memory
        )
    action, memory = jax.vmap(expert.act)(memory, obs, jax.random.split(key, n))
    if isinstance(space, Discrete):
        return action.astype(jnp.int32), memory
    return jnp.clip(to_agent(space, action.astype(jnp.float32).reshape(n, *space.shape)), -1.0, 1.0), memory
