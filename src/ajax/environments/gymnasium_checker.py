"""The checks of a Gymnasium environment, which is run on the host."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ajax.core.errors import SpaceError
from ajax.core.spaces import Box
from ajax.environments import checks
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.environments.report import Fault, Report

N_RESETS = 32
N_STATES = 4


def check(env: Any, seeds: int, steps: int) -> Report:
    """Look for every fault of an environment of Gymnasium; see `ajax.environments.checker.check_env`."""
    name = env.name if isinstance(env, GymnasiumEnv) else type(env).__name__
    try:
        adapter = env if isinstance(env, GymnasiumEnv) else GymnasiumEnv(env)
    except SpaceError as error:
        return Report(name, (Fault(str(error), "its declaration", ""),))
    from ajax.environments.gymnasium_tools import make_one

    raw = make_one(adapter.source)
    faults = _call_faults(raw)
    if faults:
        return Report(name, tuple(faults))
    record, again = (_rollout(raw, seeds, steps) for _ in range(2))
    faults = checks.record_faults(record, adapter.observation_space, adapter.time_limit)
    if not all(np.array_equal(getattr(record, x), getattr(again, x), equal_nan=True) for x in ("obs", "reward")):
        sentence = "the same seed and actions gave different results the second time."
        faults.append(Fault(sentence, "reset", "Call `super().reset(seed=seed)` and draw from `self.np_random` alone."))
    if isinstance(adapter.action_space, Box):
        outcomes = _outcomes(raw, checks.edge_actions(adapter.action_space))
        faults += checks.action_faults(adapter.action_space, outcomes) if outcomes else []
    return Report(name, tuple(faults), seeds * steps, int(record.ended.sum()))


def _call_faults(env: Any) -> list[Fault]:
    """What is wrong with the form of what one `reset` and one `step` return."""
    reset = env.reset(seed=0)
    if not (isinstance(reset, tuple) and len(reset) == 2):
        return [Fault(f"it returns {type(reset).__name__}.", "reset", "Return (observation, info).")]
    faults = _form_faults(reset[0], env.observation_space, "reset")
    env.action_space.seed(0)
    step = env.step(env.action_space.sample())
    if not (isinstance(step, tuple) and len(step) == 5):
        shape = f"a tuple of {len(step)}" if isinstance(step, tuple) else type(step).__name__
        fix = "Return (observation, reward, terminated, truncated, info)."
        return [*faults, Fault(f"it returns {shape}.", "step", fix)]
    obs, reward, terminated, truncated, _ = step
    faults += _form_faults(obs, env.observation_space, "step")
    if np.ndim(reward) != 0 or not np.issubdtype(np.asarray(reward).dtype, np.number):
        sentence = f"the reward is {type(reward).__name__} of shape {np.shape(reward)}; it must be one number."
        faults.append(Fault(sentence, "step", "Return a float."))
    for flag, value in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(value, bool | np.bool_):
            faults.append(Fault(f"`{flag}` is {type(value).__name__}.", "step", "Return a bool."))
    return faults


def _form_faults(obs: Any, space: Any, where: str) -> list[Fault]:
    from gymnasium import spaces

    if not isinstance(space, spaces.Box):
        inside = space.contains(obs)
        return [] if inside else [Fault(f"the observation {obs!r} is not in {space}.", where, "Mend one of the two.")]
    faults = []
    if np.shape(obs) != space.shape:
        sentence = f"the observation has shape {np.shape(obs)}; the space says {space.shape}."
        faults.append(Fault(sentence, where, "Mend one of the two."))
    if np.asarray(obs).dtype != space.dtype:
        sentence = f"the observation has dtype {np.asarray(obs).dtype}; the space says {space.dtype}."
        faults.append(Fault(sentence, where, "Mend one of the two."))
    return faults


def _rollout(raw: Any, seeds: int, steps: int) -> checks.Record:
    from ajax.environments.gymnasium_tools import first_element, flattened

    flat = flattened(raw)
    copies = [_episodes(flat, seed, steps) for seed in range(seeds)]
    obs, reward, terminated, truncated = (np.stack(x, axis=1) for x in zip(*copies, strict=True))
    first = np.stack([flat.reset(seed=1000 + i)[0] for i in range(N_RESETS)])
    counted_from = first_element(flat.observation_space)
    return checks.Record(
        first_obs=first - counted_from,
        first_state=np.zeros((N_RESETS, 0)),
        obs=obs - counted_from,
        state=np.zeros((*reward.shape, 0)),
        reward=reward,
        terminated=terminated,
        truncated=truncated,
    )


def _episodes(env: Any, seed: int, steps: int) -> tuple[np.ndarray, ...]:
    env.action_space.seed(seed)
    env.reset(seed=seed)
    rows = []
    for _ in range(steps):
        obs, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        rows.append((np.array(obs), float(reward), bool(terminated), bool(truncated)))
        if terminated or truncated:
            env.reset()
    return tuple(np.stack(x) for x in zip(*rows, strict=True))


def _outcomes(raw: Any, actions: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What each of the edge actions led to from a few states; empty where the environment can't be copied."""
    from ajax.environments.gymnasium_tools import flattened

    outcomes: dict[str, list[np.ndarray]] = {name: [] for name in actions}
    for seed in range(N_STATES):
        raw.reset(seed=seed)
        try:
            copies = {name: flattened(copy.deepcopy(raw)) for name in outcomes}
        except Exception:
            return {}
        for name, action in actions.items():
            obs, reward, terminated, truncated, _ = copies[name].step(action.astype(raw.action_space.dtype))
            outcomes[name].append(np.concatenate([np.ravel(obs), [reward, terminated, truncated]]))
    return {name: np.stack(rows) for name, rows in outcomes.items()}
