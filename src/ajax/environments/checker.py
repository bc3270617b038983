"""Checks an environment for what would spoil training without crashing it, and says it in sentences."""

from __future__ import annotations

import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.errors import EnvironmentFault, SpaceError
from ajax.core.spaces import Box
from ajax.environments import checks, gymnasium_checker, registry
from ajax.environments.base import Env
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.environments.report import Fault, Report
from ajax.environments.user import Static, declared_faults, hold
from ajax.environments.wrappers import time_limit

MEMBERS = ("observation_space", "action_space", "reset", "step")
N_RESETS = 64


def check_env(env: Any, *, seeds: int = 8, steps: int = 300) -> Report:
    """Look for every fault of an environment.

    Random actions are taken in `seeds` copies for `steps` steps each. Looked for: shapes and dtypes other than
    declared; observations outside their bounds; observations or rewards that aren't finite; a missing final
    observation (the environment resets by itself); `terminated` and `truncated` merged into one; a function that isn't
    pure (same key, state and action, different result; attributes that change); an action box of which a part is
    ignored.

    Args:
        env: whatever `make` takes: a name, an `Env`, or an environment of Gymnasium.
        seeds: copies, at least 1.
        steps: steps of each copy; give more than the time limit, so that episodes end.

    Raises:
        UnknownName: no environment has that name.
    """
    name = registry.title(env)
    made_by = registry.libraries(type(env))
    if isinstance(env, str | type) or not hasattr(env, "step") or "gymnax" in made_by:
        try:
            env = registry.make(env)
        except (EnvironmentFault, SpaceError) as error:
            return Report(name, (Fault(str(error), "its declaration", ""),))
    if isinstance(env, GymnasiumEnv) or "gymnasium" in made_by:
        return gymnasium_checker.check(env, seeds, steps)
    return _check(env, name, seeds, steps)


def _check(env: Any, name: str, seeds: int, steps: int) -> Report:
    missing = [member for member in MEMBERS if not hasattr(env, member)]
    if missing:
        faults = [Fault(f"there is no `{member}`.", member, "See ajax.environments.Env.") for member in missing]
        return Report(name, tuple(faults))
    before = _attributes(env)
    try:
        env = hold(env)
        declared = [Fault(sentence, "step" if "step" in sentence else "reset", "") for sentence in declared_faults(env)]
    except (EnvironmentFault, SpaceError) as error:
        declared = [Fault(str(error), "its declaration", "")]
    except (jax.errors.JAXTypeError, jax.errors.JAXIndexError, TypeError) as error:
        line = str(error).splitlines()[0]
        fix = "Choose with jnp.where and jax.lax instead of `if`, `while` and NumPy."
        declared = [Fault(f"JAX can't trace it: {line}", "reset or step", fix)]
    if declared:
        return Report(name, tuple(declared))

    first, again = (_rollout(env, seeds, steps) for _ in range(2))
    record, states = first
    faults = checks.record_faults(record, env.observation_space, time_limit(env))
    faults += _impure(record, again[0])
    faults += [
        Fault(
            f"running the environment changes its attribute `{attribute}`.", "step", "Keep what changes in the state."
        )
        for attribute, value in _attributes(env).items()
        if attribute not in before or not _equal(before[attribute], value)
    ]
    if isinstance(env.action_space, Box):
        outcomes = _outcomes(env, checks.edge_actions(env.action_space), states, N_RESETS + seeds)
        faults += checks.action_faults(env.action_space, outcomes)
    return Report(name, tuple(faults), seeds * steps, int(record.ended.sum()))


def _rollout(env: Env, seeds: int, steps: int) -> tuple[checks.Record, Any]:
    """Return recorded episodes, and states: first ones and the copies' last. Compiles afresh at every call."""
    keys = jax.random.split(jax.random.key(0), seeds)

    def one_step(carry, key):
        state, t = carry
        key = jax.random.fold_in(key, t)
        act, move, restart = jax.random.split(key, 3)
        state, step = env.step(move, state, env.action_space.sample(act).astype(env.action_space.dtype))
        start, _ = env.reset(restart)
        ended = step.terminated | step.truncated
        seen = step.obs, _numbers(state), step.reward, step.terminated, step.truncated
        return (jax.tree.map(lambda new, old: jnp.where(ended, new, old), start, state), t + 1), seen

    def episodes(key):
        start, _ = env.reset(jax.random.fold_in(key, steps))
        (state, _), seen = jax.lax.scan(lambda carry, _: one_step(carry, key), (start, 0), None, steps)
        return state, seen

    last_state, seen = jax.jit(jax.vmap(episodes, out_axes=(0, 1)))(keys)
    first_state, first_obs = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.key(1), N_RESETS))
    first = np.asarray(first_obs), np.asarray(jax.vmap(_numbers)(first_state))
    states = jax.tree.map(lambda first, last: jnp.concatenate([first, last]), first_state, last_state)
    return checks.Record(*first, *map(np.asarray, seen)), states


def _numbers(state: Any) -> jax.Array:
    """The numbers of a state as one float32 vector; random keys are left out."""
    leaves = [x for x in jax.tree.leaves(state) if not jnp.issubdtype(jnp.asarray(x).dtype, jax.dtypes.prng_key)]
    return jnp.concatenate([jnp.zeros(0), *(jnp.ravel(x).astype(jnp.float32) for x in leaves)])


def _impure(first: checks.Record, again: checks.Record) -> list[Fault]:
    for where, what in (("reset", "first_obs"), ("step", "obs"), ("step", "reward"), ("step", "terminated")):
        a, b = getattr(first, what), getattr(again, what)
        if not np.array_equal(a, b, equal_nan=a.dtype != bool):
            sentence = "the same keys, states and actions gave different results the second time."
            return [Fault(sentence, where, "Draw from the key given; use no NumPy randomness, clock or global.")]
    return []


def _outcomes(env: Env, actions: dict[str, np.ndarray], states: Any, n_states: int) -> dict[str, np.ndarray]:
    keys = jax.random.split(jax.random.key(2), n_states)

    @jax.jit
    def outcome(action):
        state, step = jax.vmap(env.step, in_axes=(0, 0, None))(keys, states, action)
        return jax.vmap(_numbers)((state, step.obs, step.reward, step.terminated, step.truncated))

    return {name: np.asarray(outcome(action)) for name, action in actions.items()}


def _attributes(env: Any) -> dict[str, Any]:
    held = env.env if isinstance(env, Static) else env
    attributes = vars(held) if hasattr(held, "__dict__") else {}
    return {n: copy.deepcopy(v) if isinstance(v, list | dict | set | np.ndarray) else v for n, v in attributes.items()}


def _equal(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(b, jax.core.Tracer):
        return False
    return bool(np.array_equal(a, b) if isinstance(a, np.ndarray | jax.Array) else a == b)
