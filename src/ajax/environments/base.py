"""The environment protocol: two pure functions and two spaces. No auto-reset: the training loop does that once."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import jax
from flax import struct

from ajax.core.spaces import Space


@struct.dataclass
class Step:
    """What one step of an environment led to.

    Attributes:
        obs: the observation that the action led to; at the end of an episode the *final* one, never the
            first of the next episode.
        reward: scalar, float32, in the environment's own units.
        terminated: scalar bool: the task itself ended here; the state has no future value.
        truncated: scalar bool: the episode was cut (a time limit); the state keeps its value.
        info: further arrays by name, for logging.
    """

    obs: Any
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    info: dict[str, jax.Array] = struct.field(default_factory=dict)


@runtime_checkable
class Env(Protocol):
    """What Ajax asks of a JAX environment. Any object with these members will do; no base class is needed.

    Attributes:
        observation_space: a `Box` or `Discrete`.
        action_space: a bounded `Box` of any bounds, or `Discrete`. `step` is given actions in these units.

    An environment whose parameters should be arguments of the compiled program (so that changing them
    compiles nothing) is a pytree: declare it with `flax.struct.dataclass`. Any other object is a static part
    of the program, compared by `==`.
    """

    observation_space: Space
    action_space: Space

    def reset(self, key: jax.Array) -> tuple[Any, Any]:
        """Start an episode; returns `(state, observation)`. Pure: the same key gives the same start."""
        ...

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(next state, Step)`. Pure, and never resets by itself."""
        ...
