"""Environments of gymnax (https://github.com/RobertTLange/gymnax, version 1.0 or later)."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.errors import unknown_name
from ajax.core.spaces import Space
from ajax.environments import convert
from ajax.environments.base import Step
from ajax.environments.deferred import import_module

# Where gymnax keeps each environment, so that one can be loaded without importing all; a test compares the table
# with gymnax's own registry.
MODULES: dict[str, str] = {
    "Acrobot-v1": "classic_control.acrobot:Acrobot",
    "CartPole-v1": "classic_control.cartpole:CartPole",
    "MountainCar-v0": "classic_control.mountain_car:MountainCar",
    "MountainCarContinuous-v0": "classic_control.continuous_mountain_car:ContinuousMountainCar",
    "Pendulum-v1": "classic_control.pendulum:Pendulum",
    "Asterix-MinAtar": "minatar.asterix:MinAsterix",
    "Breakout-MinAtar": "minatar.breakout:MinBreakout",
    "Freeway-MinAtar": "minatar.freeway:MinFreeway",
    "Seaquest-MinAtar": "minatar.seaquest:MinSeaquest",
    "SpaceInvaders-MinAtar": "minatar.space_invaders:MinSpaceInvaders",
    "Catch-bsuite": "bsuite.catch:Catch",
    "DeepSea-bsuite": "bsuite.deep_sea:DeepSea",
    "DiscountingChain-bsuite": "bsuite.discounting_chain:DiscountingChain",
    "MNISTBandit-bsuite": "bsuite.mnist:MNISTBandit",
    "MemoryChain-bsuite": "bsuite.memory_chain:MemoryChain",
    "SimpleBandit-bsuite": "bsuite.bandit:SimpleBandit",
    "UmbrellaChain-bsuite": "bsuite.umbrella_chain:UmbrellaChain",
    "BernoulliBandit-misc": "misc.bernoulli_bandit:BernoulliBandit",
    "FourRooms-misc": "misc.rooms:FourRooms",
    "FrozenLake-misc": "misc.frozen_lake:FrozenLake",
    "GaussianBandit-misc": "misc.gaussian_bandit:GaussianBandit",
    "MetaMaze-misc": "misc.meta_maze:MetaMaze",
    "PointRobot-misc": "misc.point_robot:PointRobot",
    "Pong-misc": "misc.pong:Pong",
    "Reacher-misc": "misc.reacher:Reacher",
    "Swimmer-misc": "misc.swimmer:Swimmer",
}


@struct.dataclass
class GymnaxEnv:
    """A gymnax environment as an `Env`. Build it with `GymnaxEnv.of`.

    gymnax's `step_env` and `is_truncated` are used, not its `step`, which resets by itself. The parameters are
    arguments of the compiled program; `env.replace(params=...)` compiles nothing (the spaces and the time limit keep
    the values that they had in `of`).

    Attributes:
        params: gymnax's parameters, a pytree.
        name: gymnax's name of the environment.
        custom: an environment object that isn't one of gymnax's own, compared by `==`; else None.
        observation_space: a `Box` or `Discrete`.
        action_space: a bounded `Box` or a `Discrete`.
        time_limit: steps after which an episode is truncated.
    """

    params: Any
    name: str = struct.field(pytree_node=False)
    custom: Any = struct.field(pytree_node=False)
    observation_space: Space = struct.field(pytree_node=False)
    action_space: Space = struct.field(pytree_node=False)
    time_limit: int = struct.field(pytree_node=False)

    @classmethod
    def of(cls, env: Any, params: Any = None) -> GymnaxEnv:
        """Build the adapter.

        Args:
            env: a name ("CartPole-v1"), or an object of a subclass of gymnax's `Environment`.
            params: gymnax's parameters; the environment's defaults if None.

        Raises:
            UnknownName: gymnax has no environment of that name.
            SpaceError: a space is neither a box nor discrete, or the action box has no bounds.
        """
        name, custom = (env, None) if isinstance(env, str) else (env.name, env)
        task = _load(env) if isinstance(env, str) else env
        params = task.default_params if params is None else params
        return cls(
            params=params,
            name=name,
            custom=custom,
            observation_space=convert.observation_space(task.observation_space(params), name),
            action_space=convert.action_space(task.action_space(params), name),
            time_limit=int(params.max_steps_in_episode),
        )

    @property
    def task(self) -> Any:
        """gymnax's environment object."""
        return _load(self.name) if self.custom is None else self.custom

    def reset(self, key: jax.Array) -> tuple[Any, jax.Array]:
        """Start an episode; returns `(state, observation)`."""
        obs, state = self.task.reset_env(key, self.params)
        return convert.strong(state), self._observation(obs)

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(next state, Step)`, with the final observation at an episode's end."""
        obs, state, reward, terminated, info = self.task.step_env(key, state, action, self.params)
        truncated = self.task.is_truncated(state, self.params)
        info = {name: value for name, value in info.items() if name != "discount"}  # `terminated` says the same
        step = Step(
            obs=self._observation(obs),
            reward=jnp.asarray(reward, jnp.float32).reshape(()),
            terminated=jnp.asarray(terminated, bool).reshape(()),
            truncated=jnp.asarray(truncated, bool).reshape(()),
            info=info,
        )
        return convert.strong(state), step

    def _observation(self, obs: Any) -> jax.Array:
        return jnp.asarray(obs, self.observation_space.dtype).reshape(self.observation_space.shape)


@functools.cache
def _load(name: str) -> Any:
    """Return the one object of a gymnax environment in this process."""
    if name not in MODULES:
        raise unknown_name("gymnax environment", name, MODULES)
    module, cls = MODULES[name].split(":")
    for shared in ("environment", "spaces"):  # the environment's module asks the package for these
        import_module(f"gymnax.environments.{shared}")
    env = getattr(import_module(f"gymnax.environments.{module}"), cls)()
    return env.with_transition_gradients() if env.supports_transition_gradients else env
