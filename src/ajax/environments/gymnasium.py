"""Environments of Gymnasium (https://gymnasium.farama.org): stepped on the host, several at once, in NumPy."""

from __future__ import annotations

import copy
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ajax.core.errors import EnvironmentFault, UnknownName, did_you_mean
from ajax.core.spaces import Space
from ajax.environments import convert


@dataclasses.dataclass(frozen=True)
class HostStep:
    """What one step of `n` environments led to.

    Attributes:
        obs: (n, ...) what to act on next: the next episode's first observation where one ended.
        final_obs: (n, ...) what the step led to: the final observation where an episode ended, `obs` elsewhere.
        reward: (n,) float32, in the environment's own units.
        terminated: (n,) bool: the task itself ended.
        truncated: (n,) bool: the episode was cut (a time limit).
    """

    obs: np.ndarray
    final_obs: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray


class GymnasiumEnv:
    """A Gymnasium environment by its id, a function that makes it, or an instance; `vector` makes it steppable.

    Observations of `Dict` and `Tuple` spaces are flattened as `gymnasium.spaces.utils.flatten` does; floats become
    float32, bytes stay bytes. Discrete spaces count from 0 whatever their `start`.

    Args:
        source: an id ("CartPole-v1"), a class or function without arguments that returns a `gymnasium.Env`, or a
            `gymnasium.Env`, of which `vector` makes deep copies.

    Attributes:
        name: the id, or the class's name.
        observation_space, action_space: a `Box` or `Discrete`.
        time_limit: steps after which an episode is truncated; None where Gymnasium doesn't say.

    Raises:
        UnknownName: Gymnasium knows no environment of that id.
        SpaceError: a space that agents can't act in or observe (MultiDiscrete, MultiBinary, Text, Graph, a box of
            actions without bounds).
    """

    def __init__(self, source: str | Callable[[], Any] | Any):
        self.source = source
        self._lent = False
        env = self._make()
        flat = _flattened(env)
        self.name: str = source if isinstance(source, str) else type(env.unwrapped).__name__
        self.observation_space: Space = convert.observation_space(flat.observation_space, self.name)
        self.action_space: Space = convert.action_space(flat.action_space, self.name)
        self.time_limit: int | None = env.spec.max_episode_steps if env.spec is not None else None
        if env is not source:
            env.close()

    def with_options(self, episode_length: int | None, action_repeat: int) -> GymnasiumEnv:
        """The same environment with a time limit (in repeated steps) and each action taken several times."""
        if episode_length is None and action_repeat == 1:
            return self

        def make() -> Any:
            from gymnasium.wrappers import TimeLimit

            made = self._make()
            env = _repeated(copy.deepcopy(made) if made is self.source else made, action_repeat)
            return env if episode_length is None else TimeLimit(env, episode_length)

        return GymnasiumEnv(make)

    def vector(self, n_envs: int, seed: int) -> GymnasiumVector:
        """Make `n_envs` copies that step together; copy i is seeded with `seed + i`.

        Raises:
            EnvironmentFault: the instance given can't be copied, and more than one is needed.
        """
        if not hasattr(self.source, "reset") or isinstance(self.source, type):
            return GymnasiumVector(self, [self._make() for _ in range(n_envs)], seed)
        try:
            return GymnasiumVector(self, [copy.deepcopy(self.source) for _ in range(n_envs)], seed)
        except Exception as error:
            if n_envs > 1 or self._lent:
                raise EnvironmentFault(
                    f"{self.name}: n_envs={n_envs} more of this instance are needed, but it can't be copied ({error}). "
                    "Give a function that makes the environment instead of an instance."
                ) from error
        self._lent = True
        return GymnasiumVector(self, [self.source], seed)

    def _make(self) -> Any:
        if isinstance(self.source, str):
            return _by_id(self.source)
        return self.source if hasattr(self.source, "reset") and not isinstance(self.source, type) else self.source()


class GymnasiumVector:
    """`n_envs` environments that step together and start over by themselves. Made by `GymnasiumEnv.vector`.

    Args:
        env: what the copies are copies of.
        copies: one `gymnasium.Env` each.
        seed: copy i is seeded with `seed + i` at the first `reset`.

    Attributes:
        n_envs: number of copies.
    """

    def __init__(self, env: GymnasiumEnv, copies: list[Any], seed: int):
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        self.n_envs = len(copies)
        self._seed: int | None = seed
        self._dtype = env.observation_space.dtype
        makers: list[Any] = [functools.partial(_flattened, copy) for copy in copies]
        self._vector: Any = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self._first_action = _first(self._vector.single_action_space)
        self._first_obs = _first(self._vector.single_observation_space)

    def reset(self) -> np.ndarray:
        """Start an episode in every copy; returns observations (n_envs, ...). The first call seeds the copies."""
        obs, _ = self._vector.reset(seed=self._seed)
        self._seed = None
        return self._converted(obs)

    def step(self, action: np.ndarray) -> HostStep:
        """Take one action in each copy.

        Args:
            action: (n_envs, ...) in the units of the action space.
        """
        action = np.asarray(action, self._vector.single_action_space.dtype) + self._first_action
        obs, reward, terminated, truncated, info = self._vector.step(action)
        obs = self._converted(obs)
        final_obs = obs
        ended = terminated | truncated
        if ended.any():
            final_obs = obs.copy()
            final_obs[ended] = self._converted(np.stack(list(info["final_obs"][ended])))
        return HostStep(obs, final_obs, reward.astype(np.float32), terminated, truncated)

    def close(self) -> None:
        """Free what the copies hold (windows, simulators)."""
        self._vector.close()

    def _converted(self, obs: np.ndarray) -> np.ndarray:
        return (obs - self._first_obs if self._first_obs else obs).astype(self._dtype)


def _first(space: Any) -> int:
    """Return what Gymnasium counts a discrete space from; 0 for a box."""
    from gymnasium import spaces

    return int(space.start) if isinstance(space, spaces.Discrete) else 0


def _repeated(env: Any, n: int) -> Any:
    """Take each action `n` times and sum the rewards; the first end of the episode stops the repeats."""
    import gymnasium

    class Repeated(gymnasium.Wrapper):
        def step(self, action: Any) -> Any:
            total = 0.0
            for _ in range(n):
                obs, reward, terminated, truncated, info = self.env.step(action)
                total += float(reward)
                if terminated or truncated:
                    break
            return obs, total, terminated, truncated, info

    return Repeated(env) if n > 1 else env


def _flattened(env: Any) -> Any:
    from gymnasium import spaces
    from gymnasium.wrappers import FlattenObservation

    return FlattenObservation(env) if isinstance(env.observation_space, spaces.Dict | spaces.Tuple) else env


def _by_id(name: str) -> Any:
    import gymnasium

    try:
        return gymnasium.make(name)
    except (gymnasium.error.UnregisteredEnv, ModuleNotFoundError) as error:
        hint = did_you_mean(name, gymnasium.registry)
        raise UnknownName(f"unknown Gymnasium environment {name!r}.{hint} Gymnasium says: {error}") from error
    except gymnasium.error.DependencyNotInstalled as error:
        raise UnknownName(f"Gymnasium environment {name!r} needs a package that isn't installed: {error}") from error
