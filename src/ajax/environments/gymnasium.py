"""Environments of Gymnasium (https://gymnasium.farama.org): stepped on the host, several at once, in NumPy."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ajax.core.errors import EnvironmentFault
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
    float32, bytes stay bytes. Discrete observations become one-hot vectors; discrete actions count from 0 whatever
    their `start`.

    Args:
        source: an id ("CartPole-v1"), a class or function without arguments that returns a `gymnasium.Env`, or a
            `gymnasium.Env`, of which `vector` makes deep copies.
        episode_length: truncate after so many steps (of the repeated kind); None leaves the environment's own limit.
        action_repeat: take each action so many times and sum the rewards.

    Attributes:
        name: the id, or the class's name.
        observation_space, action_space: a `Box` or `Discrete`.
        time_limit: steps after which an episode is truncated; None where Gymnasium doesn't say.

    Raises:
        UnknownName: Gymnasium knows no environment of that id.
        SpaceError: a space that agents can't act in or observe (MultiDiscrete, MultiBinary, Text, Graph, a box of
            actions without bounds).
    """

    def __init__(
        self, source: str | Callable[[], Any] | Any, episode_length: int | None = None, action_repeat: int = 1
    ):
        from ajax.environments.gymnasium_tools import flattened, make_one

        self.source = source
        self._episode_length, self._action_repeat = episode_length, action_repeat
        env = make_one(source)
        self._given, self._lent = env is source, False
        flat = flattened(env)
        self.name: str = source if isinstance(source, str) else type(env.unwrapped).__name__
        self.observation_space: Space = convert.observation_space(flat.observation_space, self.name)
        self.action_space: Space = convert.action_space(flat.action_space, self.name)
        own_limit = env.spec.max_episode_steps if env.spec is not None else None
        limits = [episode_length, None if own_limit is None else math.ceil(own_limit / action_repeat)]
        self.time_limit: int | None = min((limit for limit in limits if limit is not None), default=None)
        if not self._given:
            env.close()

    def with_options(self, episode_length: int | None, action_repeat: int) -> GymnasiumEnv:
        """Return the same environment with a time limit, and each action taken several times; see the class."""
        return GymnasiumEnv(self.source, episode_length, action_repeat)

    def vector(self, n_envs: int, seed: int) -> GymnasiumVector:
        """Make `n_envs` copies that step together; copy i is seeded with `seed + i`.

        Raises:
            EnvironmentFault: the instance given can't be copied, and another one is needed.
        """
        return GymnasiumVector(self, [self._prepared(env) for env in self._copies(n_envs)], seed)

    def _copies(self, n: int) -> list[Any]:
        from ajax.environments.gymnasium_tools import make_one

        if not self._given:
            return [make_one(self.source) for _ in range(n)]
        try:
            return [copy.deepcopy(self.source) for _ in range(n)]
        except Exception as error:  # whatever the user's objects raise when copied
            if n > 1 or self._lent:
                raise EnvironmentFault(
                    f"{self.name}: n_envs={n} more of this instance are needed, but it can't be copied ({error}). "
                    "Give a function that makes the environment instead of an instance."
                ) from error
        self._lent = True
        return [self.source]

    def _prepared(self, env: Any) -> Any:
        from gymnasium.wrappers import TimeLimit

        from ajax.environments.gymnasium_tools import ActionRepeat, flattened

        env = flattened(env)
        if self._action_repeat > 1:
            env = ActionRepeat(env, self._action_repeat)
        return env if self._episode_length is None else TimeLimit(env, self._episode_length)


class GymnasiumVector:
    """`n_envs` environments that step together and start over by themselves. Made by `GymnasiumEnv.vector`.

    Args:
        env: what the copies are copies of.
        copies: one `gymnasium.Env` each, with its wrappers.
        seed: copy i is seeded with `seed + i` at the first `reset`.

    Attributes:
        n_envs: number of copies.
    """

    def __init__(self, env: GymnasiumEnv, copies: list[Any], seed: int):
        from gymnasium.vector import AutoresetMode, SyncVectorEnv

        from ajax.environments.gymnasium_tools import first_element

        self.n_envs = len(copies)
        self._seed: int | None = seed
        self._dtype = env.observation_space.dtype
        makers: list[Any] = [lambda env=env: env for env in copies]
        self._vector: Any = SyncVectorEnv(makers, autoreset_mode=AutoresetMode.SAME_STEP)
        self._first_action = first_element(self._vector.single_action_space)

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

    def render(self) -> np.ndarray:
        """Return a picture of the first copy, (height, width, 3) uint8, if it was made with `"rgb_array"`."""
        return self._vector.render()[0]

    def close(self) -> None:
        """Free what the copies hold (windows, simulators)."""
        self._vector.close()

    def _converted(self, obs: np.ndarray) -> np.ndarray:
        return obs.astype(self._dtype, copy=False)
