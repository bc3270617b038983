"""How the cases with discrete actions are put together: which values are read, and their computed answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ajax.probing import Case, Problem, Query, ask
from ajax.probing.subjects import Subject, Trained, readings


class Calibrated(NamedTuple):
    """What calibration found: environment steps, one tolerance per query, and how they were certified."""

    budget: int = 0
    tolerances: tuple[float, ...] = ()
    note: str = ""


UNCALIBRATED = Calibrated()


def q_case(
    id: str,
    title: str,
    subject: Subject,
    problem: Problem,
    read: Sequence[tuple[int, int]],
    calibrated: Calibrated = UNCALIBRATED,
    more: Sequence[Query] = (),
) -> Case:
    """Return a case that reads Q at (state, action) pairs, and for each of `more` the greedy action at the last one."""

    def found(trained: Trained) -> np.ndarray:
        q = trained.q(problem.spec.obs)
        values = np.stack([q[:, s, a] for s, a in read], 1)
        return _with_greedy(values, trained, problem, [read[-1][0]] * len(more))

    queries = (*(ask(f"Q(s{s}, a={a})", problem, lambda x, s=s, a=a: x.q[s, a]) for s, a in read), *more)
    return Case(id, queries, readings(subject, problem.spec, found), title=title, **calibrated._asdict())


def v_case(
    id: str,
    title: str,
    subject: Subject,
    problem: Problem,
    read: Sequence[int],
    calibrated: Calibrated = UNCALIBRATED,
    more: Sequence[Query] = (),
) -> Case:
    """Return a case that reads V at states, and for each query of `more` the greedy action at its last state."""

    def found(trained: Trained) -> np.ndarray:
        values = trained.v(problem.spec.obs)[:, list(read)]
        return _with_greedy(values, trained, problem, [read[-1]] * len(more))

    queries = (*(ask(f"V(s{s})", problem, lambda x, s=s: x.v[s]) for s in read), *more)
    return Case(id, queries, readings(subject, problem.spec, found), title=title, **calibrated._asdict())


def _with_greedy(values: np.ndarray, trained: Trained, problem: Problem, states: list[int]) -> np.ndarray:
    """Add the greedy actions in `states` as columns; one who is asked for none needs no `act`."""
    return np.concatenate([values, trained.act(problem.spec.obs)[:, states]], 1) if states else values
