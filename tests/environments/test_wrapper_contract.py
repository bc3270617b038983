"""What every wrapper owes: it survives copies, and each step raises the flags that the step inside raised.

A wrapper is a class of `ajax.environments` that holds another environment; a new one fails until `BUILD` makes it.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from collections.abc import Callable
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ajax.environments
from ajax import DQN
from ajax.environments.gymnasium_tools import ActionRepeat as GymnasiumActionRepeat
from ajax.environments.gymnax import GymnaxEnv
from ajax.environments.user import Static
from ajax.environments.wrappers import ActionRepeat, FlattenObservation, TimeLimit
from ajax.training.driver import make_task
from ajax.training.normalise import Normalize
from ajax.training.plan import Plan
from tests.environments.identity_env import TERMINATES_AT, TRUNCATES_AT, IdentityEnv

KEY = jax.random.key(0)
FOREVER = 10**6

BUILD: dict[type, tuple[Callable[[Any], Any], int, int]] = {
    # a wrapper around an environment: how often it repeats an action, and its own time limit
    TimeLimit: (lambda env: TimeLimit(env, 4), 1, 4),
    ActionRepeat: (lambda env: ActionRepeat(env, 2), 2, FOREVER),
    FlattenObservation: (FlattenObservation, 1, FOREVER),
    Static: (Static, 1, FOREVER),
}
"""Wrappers of JAX environments. `GymnasiumActionRepeat`, which wraps on the host, has tests of its own below."""

STACKS = [(repeat, length) for repeat in (1, 2, 3) for length in (None, 1, 2, 3, 4, 9)]
"""Options of `train` that wrap an environment: `action_repeat` and `episode_length`."""


def wrappers() -> set[type]:
    """Every class of `ajax.environments` that holds an environment and steps."""
    modules = [
        importlib.import_module(f"ajax.environments.{module.name}")
        for module in pkgutil.iter_modules(ajax.environments.__path__)
    ]
    return {
        cls
        for module in modules
        for cls in vars(module).values()
        if inspect.isclass(cls)
        and cls.__module__ == module.__name__
        and hasattr(cls, "step")
        and (issubclass(cls, gymnasium.Wrapper) or "env" in {f.name for f in fields(cls)})
    }


def fields(cls: type) -> tuple:
    return dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ()


def expected(c: int, repeat: int, limit: int) -> list[tuple[bool, bool]]:
    """The flags (terminated, truncated) of each step of the identity task's episode of this sign, to its end."""
    t, flags = 0, []
    while not flags or not any(flags[-1]):
        for _ in range(repeat):
            t += 1
            terminated, truncated = c > 0 and t >= TERMINATES_AT, c < 0 and t >= TRUNCATES_AT
            if terminated or truncated:
                break
        flags.append((terminated, truncated or len(flags) + 1 >= limit))
    return flags


def episode(env: Any, seed: int) -> tuple[int, list[tuple[bool, bool]]]:
    """The sign of an episode, and the flags of its steps to the end."""
    state, obs = env.reset(jax.random.key(seed))
    flags: list[tuple[bool, bool]] = []
    while not flags or not any(flags[-1]):
        state, step = env.step(KEY, state, jnp.int32(1))
        flags.append((bool(step.terminated), bool(step.truncated)))
    return int(obs[1]), flags


def check_flags(env: Any, repeat: int, limit: int) -> None:
    """Both kinds of episode raise what they should."""
    episodes = [episode(env, seed) for seed in range(4)]
    assert {c for c, _ in episodes} == {-1, 1}
    for c, flags in episodes:
        assert flags == expected(c, repeat, limit)


def test_every_wrapper_has_a_builder():
    assert wrappers() == {*BUILD, GymnasiumActionRepeat}


@pytest.mark.parametrize("wrapper", BUILD, ids=lambda cls: cls.__name__)
def test_each_step_raises_the_flags_of_the_step_inside(wrapper):
    build, repeat, limit = BUILD[wrapper]
    check_flags(build(IdentityEnv()), repeat, limit)


@pytest.mark.parametrize(("repeat", "length"), STACKS)
def test_the_stacks_that_training_builds_raise_them_too(repeat, length):
    plan = Plan(
        agents=(DQN(),), seeds=(0,), labels=("",), env_id=None, env_name="", steps=100, horizon=100, evaluations=1,
        episodes=0, limit=1, normalize=Normalize(), on_nan="stop", episode_length=length, action_repeat=repeat,
    )  # fmt: skip
    check_flags(make_task(plan, IdentityEnv()).env, repeat, length or FOREVER)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
@pytest.mark.parametrize("wrapper", BUILD, ids=lambda cls: cls.__name__)
def test_it_survives_copies_which_compile_nothing(wrapper, duplicate):
    env = BUILD[wrapper][0](GymnaxEnv.of("CartPole-v1"))
    traces = []

    @jax.jit
    def two_steps(env):
        traces.append(1)
        state, _ = env.reset(KEY)
        return [env.step(KEY, state, jnp.int32(a))[1] for a in (0, 1)]

    copied = duplicate(env)
    jax.tree.map(np.testing.assert_array_equal, two_steps(env), two_steps(copied))
    assert len(traces) == 1 and copied.action_space == env.action_space
    assert copied.observation_space == env.observation_space


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_the_wrapper_on_the_host_survives_copies_and_keeps_the_end(duplicate):
    env = duplicate(GymnasiumActionRepeat(gymnasium.make("CartPole-v1", max_episode_steps=7), 3))
    env.reset(seed=0)
    flags = [env.step(i % 2)[2:4] for i in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
