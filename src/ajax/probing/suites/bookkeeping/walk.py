"""A walk whose every step can be checked from what was stored: random starts and outcomes, and two kinds of end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.probing import Spec
from ajax.probing.suites.boxes import BOX

LIMIT = 4


def _step(state: int, region: int) -> list[tuple[float, int, float, bool]]:
    pays = region + 1.0
    if state == 2:
        return [(0.5, 3, pays, True), (0.5, 0, -pays, False)]
    return [(0.5, (state + 1) % 3, pays, False), (0.5, (state + 2) % 3, -pays, False)]


WALK = Spec.of(
    "walk",
    lambda s, region: [(1.0, 3, 0.0, True)] if s == 3 else _step(s, region),
    n_states=4,
    start=(0.5, 0.5, 0.0, 0.0),
    limit=LIMIT,
    box=BOX,
    edges=(0.75,),
    record=LIMIT,
)


def audit(run: Any, spec: Spec = WALK) -> dict[str, float]:
    """Return how many stored transitions break each rule of the walk, and what tells that draws are independent.

    Args:
        run: an off-policy `ajax.training.run.Run` on `spec`, with as many rows as its store has written.
        spec: the walk.
    """
    n = int(run.store.size)
    rows = run.store.rows
    now, after = (np.asarray(x)[:n] for x in (rows.now.obs, rows.next.obs))  # (rows, n_envs, features)
    action = np.asarray(rows.action)[:n, :, 0]
    reward, terminated, truncated = (np.asarray(x)[:n] for x in (rows.reward, rows.terminated, rows.truncated))
    state, to = now.argmax(-1), after.argmax(-1)
    seen = np.array_equal(now, spec.obs[state]) and np.array_equal(after, spec.obs[to])
    low, high = (float(np.ravel(bound)[0]) for bound in (BOX.low, BOX.high))
    executed = low + (action + 1) / 2 * (high - low)
    region = np.searchsorted(np.asarray(spec.edges), executed, side="right")
    match = spec.next_state[state, region] == to[..., None]  # (rows, n_envs, outcomes)
    match &= spec.probability[state, region] > 0
    outcome = match.argmax(-1)
    ended = (terminated > 0) | (truncated > 0)
    follows = np.where(ended[:-1], spec.start[state[1:]] > 0, state[1:] == to[:-1])
    clock = _clocks(ended)
    return {
        "observations that are not the task's own": float(not seen),
        "stored steps that the task can't take": float(np.sum(~match.any(-1))),
        "stored rewards that are wrong": float(np.sum(spec.reward[state, region, outcome] != reward)),
        "terminations that are wrong": float(np.sum(spec.terminated[state, region, outcome] != terminated)),
        "truncations that are wrong": float(np.sum((clock == spec.limit) != truncated)),
        "rows that don't follow the one before": float(np.sum(~follows)),
        "executed actions that were not stored": _unrecorded(run, executed),
        "actions shared by environments": _shared(state, action),
        "actions repeated in time": float(np.sum((action[1:] == action[:-1]) & (np.abs(action[1:]) < 1))),
        "outcomes differ between environments": _part(state, region, to, axis=1),
        "outcomes differ in time": _part(state, region, to, axis=0),
        "starts differ between environments": float(np.any(np.ptp(np.where(ended[:-1], state[1:], 0), axis=1))),
        "open returns that are wrong": _open(run.episode_return, reward, ended),
        "open lengths that are wrong": _open(run.episode_length, np.ones_like(reward), ended),
    }


def _clocks(ended: np.ndarray) -> np.ndarray:
    """Return (rows, n_envs) steps since the episode's start, this one included."""
    clock, now = np.zeros(ended.shape, int), np.zeros(ended.shape[1], int)
    for row, end in enumerate(ended):
        clock[row] = now = now + 1
        now = np.where(end, 0, now)
    return clock


def _unrecorded(run: Any, executed: np.ndarray) -> float:
    """Return how many actions that the environments received in their open episodes differ from those stored."""
    received, counts = np.asarray(run.env.executed)[..., 0], np.asarray(run.env.count)
    wrong = 0
    for env, count in enumerate(counts):
        stored = executed[len(executed) - count :, env]
        wrong += int(np.sum(~np.isclose(received[env, :count], stored, atol=1e-5)))
    return float(wrong)


def _shared(state: np.ndarray, action: np.ndarray) -> float:
    """Return how many pairs of environments did exactly the same in the same state at the same time."""
    inside = np.abs(action) < 1
    same = (action[:, :, None] == action[:, None]) & (state[:, :, None] == state[:, None]) & inside[:, :, None]
    return float((same.sum() - inside.sum()) / 2)


def _part(state: np.ndarray, region: np.ndarray, to: np.ndarray, axis: int) -> float:
    """Return whether, anywhere along an axis, one state and region led to different states."""
    lines = zip(*(np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in (state, region, to)), strict=True)
    for places, regions, ends in lines:
        for place in np.unique(places):
            for kind in (0, 1):
                found: Sequence[int] = ends[(places == place) & (regions == kind)]
                if len(np.unique(found)) > 1:
                    return 1.0
    return 0.0


def _open(kept: Any, step: np.ndarray, ended: np.ndarray) -> float:
    total = np.zeros(step.shape[1])
    for row, end in zip(step, ended, strict=True):
        total = np.where(end, 0.0, total + row)
    return float(np.sum(~np.isclose(total, np.asarray(kept))))
