"""Environments of MuJoCo Playground (https://github.com/google-deepmind/mujoco_playground); extra `playground`."""

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
from ajax.environments.wrappers import FlattenObservation, TimeLimit


@struct.dataclass
class PlaygroundEnv:
    """A MuJoCo Playground environment without its wrappers, so that `done` means termination only. Use `make`.

    A simulation that diverges (NaN in the observation or the reward) ends the episode as terminated with reward 0 and
    the numbers replaced by 0, so that one bad state can't reach the networks.

    Attributes:
        name: Playground's name of the environment.
        observation_space: a float32 box without bounds, or a dict of them.
        action_space: the box [-1, 1].
    """

    name: str = struct.field(pytree_node=False)
    observation_space: Any = struct.field(pytree_node=False)
    action_space: Box = struct.field(pytree_node=False)

    @property
    def task(self) -> Any:
        """Playground's environment object."""
        return _load(self.name)

    def reset(self, key: jax.Array) -> tuple[Any, Any]:
        """Start an episode; returns `(Playground's State, observation)`."""
        state = strong(self.task.reset(key))
        return state, state.obs

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(Playground's State, Step)`. Its dynamics draw nothing from `key`."""
        state = strong(self.task.step(state, action))
        broken = [jnp.isnan(leaf).any() for leaf in jax.tree.leaves((state.obs, state.reward))]
        diverged = functools.reduce(jnp.logical_or, broken)
        obs = jax.tree.map(lambda leaf: jnp.where(jnp.isnan(leaf), 0.0, leaf), state.obs)
        step = Step(
            obs=obs,
            reward=jnp.where(diverged, 0.0, state.reward).astype(jnp.float32),
            terminated=state.done.astype(bool) | diverged,
            truncated=jnp.zeros((), bool),
            info=dict(state.metrics),
        )
        return state, step


def make(name: str, time_limit: int | None = None) -> TimeLimit:
    """Build a Playground environment that truncates after `time_limit` steps (None: its own episode length).

    Observations that are dicts are flattened into one vector.

    Raises:
        UnknownName: Playground has no environment of that name.
        ModuleNotFoundError: Playground isn't installed.
    """
    from mujoco_playground import registry

    task = _load(name)
    obs = jax.eval_shape(task.reset, jax.random.key(0)).obs
    env = PlaygroundEnv(
        name=name,
        observation_space=jax.tree.map(lambda leaf: Box(shape=leaf.shape), obs),
        action_space=Box(-1.0, 1.0, (task.action_size,)),
    )
    limit = time_limit or int(registry.get_default_config(name).episode_length)
    return TimeLimit(env if isinstance(env.observation_space, Box) else FlattenObservation(env), limit)


def names() -> list[str]:
    """Return Playground's environments by name."""
    from mujoco_playground import registry

    return sorted(registry.ALL_ENVS)


@functools.cache
def _load(name: str) -> Any:
    from mujoco_playground import registry

    if name not in registry.ALL_ENVS:
        raise unknown_name("Playground environment", name, registry.ALL_ENVS)
    config = registry.get_default_config(name)
    if "impl" in config and jax.default_backend() == "cpu":
        config.impl = "jax"  # Warp's kernels, the default, are made for GPUs
    return registry.load(name, config)
