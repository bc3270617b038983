"""Wrappers: environments made of environments. Pure, and pytrees like what they wrap."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.core.errors import ConfigError, SpaceError
from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.base import Step


@struct.dataclass
class Clock:
    """A wrapped environment's state and the steps taken since its reset.

    Attributes:
        inner: the wrapped environment's state.
        time: scalar int32.
    """

    inner: Any
    time: jax.Array


@struct.dataclass
class TimeLimit:
    """Truncates an episode at its `limit`-th step.

    A task that ends at exactly that step is both terminated and truncated; since the flags are kept apart, its value
    is still cut by `terminated`.

    Attributes:
        env: the environment, a pytree (`ajax.environments.as_env` makes one of any object).
        limit: steps, at least 1.
    """

    env: Any
    limit: int = struct.field(pytree_node=False)

    def __post_init__(self):
        if self.limit < 1:
            raise ConfigError(f"TimeLimit(limit={self.limit}): limit must be at least 1 step.")

    @property
    def observation_space(self) -> Space:
        """The wrapped environment's."""
        return self.env.observation_space

    @property
    def action_space(self) -> Space:
        """The wrapped environment's."""
        return self.env.action_space

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is truncated."""
        return self.limit

    def reset(self, key: jax.Array) -> tuple[Clock, Any]:
        """Start an episode; returns `(state, observation)`."""
        state, obs = self.env.reset(key)
        return Clock(state, jnp.int32(0)), obs

    def step(self, key: jax.Array, state: Clock, action: jax.Array) -> tuple[Clock, Step]:
        """Take `action` in `state`; returns `(next state, Step)`."""
        inner, step = self.env.step(key, state.inner, action)
        time = state.time + 1
        return Clock(inner, time), step.replace(truncated=step.truncated | (time >= self.limit))


@struct.dataclass
class ActionRepeat:
    """Takes each action `n` times and sums the rewards. An episode that ends before the n-th time stays ended: what
    the wrapped environment would do after its end adds nothing.

    Attributes:
        env: the environment, a pytree (`ajax.environments.as_env` makes one of any object).
        n: inner steps per step, at least 1.
    """

    env: Any
    n: int = struct.field(pytree_node=False)

    def __post_init__(self):
        if self.n < 1:
            raise ConfigError(f"ActionRepeat(n={self.n}): n must be at least 1.")

    @property
    def observation_space(self) -> Space:
        """The wrapped environment's."""
        return self.env.observation_space

    @property
    def action_space(self) -> Space:
        """The wrapped environment's."""
        return self.env.action_space

    @property
    def time_limit(self) -> int | None:
        """Steps after which an episode is truncated, in this environment's own (repeated) steps; None if never."""
        limit = time_limit(self.env)
        return None if limit is None else math.ceil(limit / self.n)

    def reset(self, key: jax.Array) -> tuple[Any, Any]:
        """Start an episode; returns `(state, observation)`."""
        return self.env.reset(key)

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` up to `n` times from `state`; returns `(next state, Step)`."""
        keys = jax.random.split(key, self.n)
        first = self.env.step(keys[0], state, action)

        def again(carry, key):
            state, step = carry
            ended = step.terminated | step.truncated
            next_state, next_step = self.env.step(key, state, action)
            next_step = next_step.replace(reward=step.reward + next_step.reward)
            return jax.tree.map(lambda old, new: jnp.where(ended, old, new), carry, (next_state, next_step)), None

        return jax.lax.scan(again, first, keys[1:])[0]


@struct.dataclass
class FlattenObservation:
    """Joins observations that are dicts, tuples or images into one float32 vector, leaves in `jax.tree` order.

    Elements of a `Discrete` space become one-hot vectors of length n.

    Attributes:
        env: the environment, a pytree; its `observation_space` is a `Box`, a `Discrete`, or dicts and tuples of them.
    """

    env: Any

    @property
    def observation_space(self) -> Box:
        """A float32 box of one dimension."""
        bounds = [_flat_bounds(space) for space in jax.tree.leaves(self.env.observation_space)]
        return Box.of(np.concatenate([low for low, _ in bounds]), np.concatenate([high for _, high in bounds]))

    @property
    def action_space(self) -> Space:
        """The wrapped environment's."""
        return self.env.action_space

    @property
    def time_limit(self) -> int | None:
        """The wrapped environment's; None if it has none."""
        return time_limit(self.env)

    def reset(self, key: jax.Array) -> tuple[Any, jax.Array]:
        """Start an episode; returns `(state, observation)`."""
        state, obs = self.env.reset(key)
        return state, self._flat(obs)

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(next state, Step)`."""
        state, step = self.env.step(key, state, action)
        return state, step.replace(obs=self._flat(step.obs))

    def _flat(self, obs: Any) -> jax.Array:
        return jnp.concatenate(jax.tree.leaves(jax.tree.map(_flat_leaf, self.env.observation_space, obs)))


def time_limit(env: Any) -> int | None:
    """Return the steps after which `env` truncates an episode, or None where it declares no `time_limit`."""
    return env.time_limit if hasattr(env, "time_limit") else None


def _flat_leaf(space: Space, leaf: jax.Array) -> jax.Array:
    return jax.nn.one_hot(leaf, space.n) if isinstance(space, Discrete) else jnp.ravel(leaf).astype(jnp.float32)


def _flat_bounds(space: Any) -> tuple[np.ndarray, np.ndarray]:
    if isinstance(space, Discrete):
        return np.zeros(space.n), np.ones(space.n)
    if isinstance(space, Box):
        return tuple(np.ravel(np.broadcast_to(bound, space.shape)) for bound in (space.low, space.high))  # type: ignore
    raise SpaceError(f"FlattenObservation: {space!r} is not a Box, a Discrete, or a dict or tuple of them.")
