"""What other libraries' environments declare and return, in Ajax's terms.

gymnax's and Gymnasium's spaces agree in names and attributes, so one function reads both.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.errors import SpaceError
from ajax.core.spaces import Box, Discrete, Space

_LARGEST = float(np.finfo(np.float32).max)

_ADVICE = {
    "MultiDiscrete": "List its combinations as one Discrete space in a wrapper.",
    "MultiBinary": "List its combinations as one Discrete space in a wrapper.",
    "Dict": "Flatten it: `ajax.environments.FlattenObservation`, or `gymnasium.wrappers.FlattenObservation`.",
    "Tuple": "Flatten it: `ajax.environments.FlattenObservation`, or `gymnasium.wrappers.FlattenObservation`.",
    "Text": "Encode it as a Box of numbers in a wrapper.",
    "Graph": "Encode it as a Box of fixed shape in a wrapper.",
    "Sequence": "Pad it to a Box of fixed shape in a wrapper.",
}


def observation_space(space: Any, env: str) -> Space:
    """Return an observation space of gymnax or Gymnasium as a `Box` or `Discrete`.

    Bytes (images) stay uint8; every other box becomes float32. Bounds at float32's largest number mean "none".

    Args:
        space: the space to read.
        env: name of the environment, for messages.

    Raises:
        SpaceError: the space is of another kind.
    """
    if _kind(space) == "Discrete":
        return Discrete(int(space.n))
    if _kind(space) == "Box":
        dtype = "uint8" if np.dtype(space.dtype) == np.uint8 else "float32"
        return Box.of(_bound(space.low), _bound(space.high), tuple(space.shape), dtype)
    raise _refusal("observation", space, env)


def action_space(space: Any, env: str) -> Space:
    """Return an action space of gymnax or Gymnasium as a bounded float32 `Box` or a `Discrete`.

    Args:
        space: the space to read.
        env: name of the environment, for messages.

    Raises:
        SpaceError: the space is of another kind, a box without bounds, or a box of integers.
    """
    if _kind(space) == "Discrete":
        return Discrete(int(space.n))
    if _kind(space) != "Box":
        raise _refusal("action", space, env)
    if not np.issubdtype(np.dtype(space.dtype), np.floating):
        raise SpaceError(
            f"{env}: the action space {space} is a box of {np.dtype(space.dtype).name}; agents act in boxes of floats "
            "or in Discrete. List the actions as one Discrete space in a wrapper."
        )
    box = Box.of(_bound(space.low), _bound(space.high), tuple(space.shape))
    check_bounded(box, env)
    return box


def check_bounded(box: Box, env: str) -> None:
    """Check that an action box has finite bounds, which the map from [-1, 1] needs.

    Raises:
        SpaceError: a bound is infinite, or the upper bound isn't above the lower.
    """
    if not box.bounded:
        raise SpaceError(
            f"{env}: the action box {box} has infinite bounds; agents act in [-1, 1], which is mapped onto the box. "
            "Give the box finite bounds (Gymnasium: `gymnasium.wrappers.RescaleAction`)."
        )
    if not np.all(np.asarray(box.low) < np.asarray(box.high)):
        raise SpaceError(f"{env}: the action box {box} has an upper bound that isn't above its lower bound.")


def strong(state: Any) -> Any:
    """Give every leaf a definite dtype: a Python 0 at reset and an array later would not be one loop's carry."""
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.result_type(x)), state)


def _kind(space: Any) -> str:
    kinds = [cls.__name__ for cls in type(space).__mro__]
    return next((kind for kind in kinds if kind in ("Box", "Discrete") or kind in _ADVICE), kinds[0])


def _bound(bound: Any) -> np.ndarray:
    bound = np.asarray(bound, np.float64)
    return np.where(np.abs(bound) >= _LARGEST, np.copysign(np.inf, bound), bound)


def _refusal(role: str, space: Any, env: str) -> SpaceError:
    kind = _kind(space)
    advice = _ADVICE.get(kind, "Turn it into one of these in a wrapper.")
    return SpaceError(f"{env}: the {role} space is {kind} ({space}); it must be a Box or Discrete. {advice}")
