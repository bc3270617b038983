"""What the adapter and the checker need of Gymnasium itself. Importing this module imports Gymnasium."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium import spaces
from gymnasium.wrappers import FlattenObservation

from ajax.core.errors import UnknownName, did_you_mean


class ActionRepeat(gymnasium.Wrapper):
    """Takes each action up to `n` times, until the episode ends, and sums the rewards.

    Args:
        env: the environment.
        n: inner steps per step, at least 1.
    """

    def __init__(self, env: gymnasium.Env, n: int):
        super().__init__(env)
        self.n = n

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take `action`; returns Gymnasium's five values, the reward summed."""
        total = 0.0
        for _ in range(self.n):
            obs, reward, terminated, truncated, info = self.env.step(action)
            total += float(reward)
            if terminated or truncated:
                break
        return obs, total, terminated, truncated, info


def make_one(source: str | Callable[[], Any] | gymnasium.Env) -> Any:
    """Return one `gymnasium.Env`: the instance given, what the class or function given makes, or that of an id.

    Raises:
        UnknownName: Gymnasium knows no environment of that id, or a package that it needs isn't installed.
    """
    if isinstance(source, gymnasium.Env):
        return source
    return _by_id(source) if isinstance(source, str) else source()


def flattened(env: Any) -> Any:
    """Return `env` with observations of `Dict`, `Tuple` and `Discrete` spaces as one vector, discrete parts one-hot."""
    composed = isinstance(env.observation_space, spaces.Dict | spaces.Tuple | spaces.Discrete)
    return FlattenObservation(env) if composed else env


def first_element(space: Any) -> int:
    """Return what Gymnasium counts a discrete space from; 0 for a box."""
    return int(space.start) if isinstance(space, spaces.Discrete) else 0


def _by_id(name: str) -> Any:
    try:
        return gymnasium.make(name)
    except gymnasium.error.DependencyNotInstalled as error:
        raise UnknownName(f"Gymnasium environment {name!r} needs a package that isn't installed: {error}") from error
    except (gymnasium.error.UnregisteredEnv, ModuleNotFoundError) as error:
        hint = did_you_mean(name, gymnasium.registry)
        raise UnknownName(f"unknown Gymnasium environment {name!r}.{hint} Gymnasium says: {error}") from error
