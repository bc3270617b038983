"""Environments of Brax (https://github.com/google/brax); the extra `brax` installs it."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.errors import unknown_name
from ajax.core.spaces import Box
from ajax.environments.base import Step
from ajax.environments.convert import strong
from ajax.environments.wrappers import TimeLimit

EPISODE_LENGTH = 1000  # Brax's own default, in `brax.envs.create`

# Brax's names, so that they can be listed and suggested without importing it; a test compares them with Brax's.
NAMES = (
    *("ant", "fast", "halfcheetah", "hopper", "humanoid", "humanoidstandup", "inverted_double_pendulum"),
    *("inverted_pendulum", "pusher", "reacher", "swimmer", "walker2d"),
)


@struct.dataclass
class BraxEnv:
    """A Brax environment without Brax's wrappers, so that `done` means termination only. Build it with `make`.

    Actions lie in [-1, 1], as Brax's actuators expect. Brax's metrics are the step's `info`.

    Attributes:
        name: Brax's name of the environment.
        backend: Brax's physics pipeline: "generalized", "positional", "spring" or "mjx".
        observation_space: a float32 vector without bounds.
        action_space: the box [-1, 1].
    """

    name: str = struct.field(pytree_node=False)
    backend: str = struct.field(pytree_node=False)
    observation_space: Box = struct.field(pytree_node=False)
    action_space: Box = struct.field(pytree_node=False)

    @property
    def task(self) -> Any:
        """Brax's environment object."""
        return _load(self.name, self.backend)

    def reset(self, key: jax.Array) -> tuple[Any, jax.Array]:
        """Start an episode; returns `(Brax's State, observation)`."""
        state = strong(self.task.reset(key))
        return state, state.obs

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(Brax's State, Step)`. Brax's dynamics draw nothing from `key`."""
        state = strong(self.task.step(state, action))
        step = Step(
            obs=state.obs,
            reward=state.reward.astype(jnp.float32),
            terminated=state.done.astype(bool),
            truncated=jnp.zeros((), bool),
            info=dict(state.metrics),
        )
        return state, step


def make(name: str, backend: str = "generalized", time_limit: int = EPISODE_LENGTH) -> TimeLimit:
    """Build a Brax environment that truncates after `time_limit` steps.

    Raises:
        UnknownName: Brax has no environment of that name.
        ModuleNotFoundError: Brax isn't installed.
    """
    task = _load(name, backend)
    obs = jax.eval_shape(task.reset, jax.random.key(0)).obs
    env = BraxEnv(
        name=name,
        backend=backend,
        observation_space=Box(shape=obs.shape),
        action_space=Box(-1.0, 1.0, (task.action_size,)),
    )
    return TimeLimit(env, time_limit)


@functools.cache
def _load(name: str, backend: str) -> Any:
    if name not in NAMES:
        raise unknown_name("Brax environment", name, NAMES)
    from brax import envs

    return envs.get_environment(name, backend=backend)
