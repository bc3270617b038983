"""The user's own environment: made a pytree where it isn't one, and checked against the protocol without running it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
from flax import struct

from ajax.core.errors import EnvironmentFault, SpaceError
from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.base import Env, Step
from ajax.environments.convert import check_bounded


@struct.dataclass
class Static:
    """Holds an environment that isn't a pytree as a static part of the compiled program, compared by `==`.

    Attributes:
        env: the environment object.
    """

    env: Any = struct.field(pytree_node=False)

    @property
    def observation_space(self) -> Space:
        """The held environment's."""
        return self.env.observation_space

    @property
    def action_space(self) -> Space:
        """The held environment's."""
        return self.env.action_space

    def reset(self, key: jax.Array) -> tuple[Any, Any]:
        """Start an episode; returns `(state, observation)`."""
        return self.env.reset(key)

    def step(self, key: jax.Array, state: Any, action: jax.Array) -> tuple[Any, Step]:
        """Take `action` in `state`; returns `(next state, Step)`."""
        return self.env.step(key, state, action)


def as_env(env: Any) -> Env:
    """Return `env` as a pytree that keeps the `Env` protocol: itself where it is one, else held in `Static`.

    Shapes and dtypes are read by tracing `reset` and `step`; nothing is executed. `check_env` looks further.

    Raises:
        EnvironmentFault: a member is missing, or a shape or dtype differs from what is declared.
        SpaceError: a space isn't a `Box` or `Discrete`, or the action box has no bounds.
    """
    members = ("observation_space", "action_space", "reset", "step")
    missing = [member for member in members if not hasattr(env, member)]
    if missing:
        raise EnvironmentFault(
            f"{_name(env)} has no {' and no '.join(missing)}. An environment has the members {', '.join(members)}: "
            "see ajax.environments.Env."
        )
    env = hold(env)
    faults = declared_faults(env)
    if faults:
        raise EnvironmentFault(f"{_name(env)}: {' '.join(faults)} `ajax check-env` looks further.")
    return env


def hold(env: Any) -> Any:
    """Return `env` itself where it is a pytree, else held in `Static`.

    Raises:
        EnvironmentFault: the object can't be hashed.
    """
    if not jax.tree_util.all_leaves([env]):
        return env
    try:
        hash(env)
    except TypeError:
        raise EnvironmentFault(
            f"{_name(env)} can't be hashed, which a static part of a compiled program must be. Define `__hash__` "
            "beside `__eq__`, or declare the class with flax.struct.dataclass."
        ) from None
    return Static(env)


def declared_faults(env: Env) -> list[str]:
    """Return what `env` declares or returns that breaks the protocol, one sentence each, from tracing alone.

    Raises:
        SpaceError: a space isn't a `Box` or `Discrete`, or the action box has no bounds.
    """
    name = _name(env)
    for role, space in (("observation", env.observation_space), ("action", env.action_space)):
        if not isinstance(space, Box | Discrete):
            raise SpaceError(f"{name}: the {role}_space is {space!r}; it must be an ajax Box or Discrete.")
    if isinstance(env.action_space, Box):
        check_bounded(env.action_space, name)
    for leaf in jax.tree.leaves(env):
        if not isinstance(leaf, jax.Array | np.ndarray | np.generic | int | float):
            return [f"holds {_name(leaf)}, which isn't an array or a pytree; pass it through `as_env` first."]

    key = jax.eval_shape(lambda: jax.random.key(0))
    reset = jax.eval_shape(env.reset, key)
    if not (isinstance(reset, tuple) and len(reset) == 2):
        return [f"`reset` returns {_shown(reset)}; it must return (state, observation)."]
    state, obs = reset
    declared = env.observation_space.shape, env.observation_space.dtype
    faults = _array_faults("the observation of `reset`", obs, *declared)

    action = jax.ShapeDtypeStruct(env.action_space.shape, np.dtype(env.action_space.dtype))
    stepped = jax.eval_shape(env.step, key, state, action)
    if not (isinstance(stepped, tuple) and len(stepped) == 2 and isinstance(stepped[1], Step)):
        return [*faults, f"`step` returns {_shown(stepped)}; it must return (state, ajax.environments.Step)."]
    next_state, step = stepped
    faults += _array_faults("the observation of `step`", step.obs, *declared)
    faults += _array_faults("the reward", step.reward, (), "float32")
    faults += _array_faults("`terminated`", step.terminated, (), "bool")
    faults += _array_faults("`truncated`", step.truncated, (), "bool")
    before, after = (jax.tree.map(lambda x: (x.shape, str(x.dtype)), tree) for tree in (state, next_state))
    if before != after:
        faults.append(f"`step` changes the state's structure, shapes or dtypes: from {before} to {after}.")
    return faults


def _array_faults(what: str, array: Any, shape: tuple[int, ...], dtype: str) -> list[str]:
    if not hasattr(array, "shape"):
        return [f"{what} is {_shown(array)}; it must be one array of shape {shape} and dtype {dtype}."]
    faults = []
    if tuple(array.shape) != tuple(shape):
        faults.append(f"{what} has shape {tuple(array.shape)}; it must have {tuple(shape)}.")
    if str(array.dtype) != dtype:
        faults.append(f"{what} has dtype {array.dtype}; it must have {dtype}.")
    return faults


def _shown(value: Any) -> str:
    return f"{type(value).__name__} of {len(value)}" if isinstance(value, tuple) else type(value).__name__


def _name(env: Any) -> str:
    return type(env.env if isinstance(env, Static) else env).__name__
