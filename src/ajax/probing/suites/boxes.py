"""How the cases with actions in a box are put together. They share one box, and so an agent's compiled program."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ajax.core.spaces import Box
from ajax.probing import Case, Problem, Query, answers, ask
from ajax.probing.query import LEAST
from ajax.probing.subjects import Subject, Trained, readings
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

BOX = Box.of([-1.5], [3.0])
"""It overhangs [-1, 1], by more above than below."""


def box_case(
    id: str,
    title: str,
    subject: Subject,
    problem: Problem,
    *,
    q: Sequence[tuple[int, float]] = (),
    acts: Sequence[int] = (),
    mistakes: Sequence[str] | None = None,
    apart: float = 2 * LEAST,
    calibrated: Calibrated = UNCALIBRATED,
) -> Case:
    """Return a case that reads Q at (state, action) pairs, and the deterministic action in states.

    Actions are in the box's units, of one dimension. Of `mistakes` (None: all there are), those are asked for that
    show: their answers lie at least `apart` from the right one.
    """
    spec = problem.spec

    def found(trained: Trained) -> np.ndarray:
        columns = []
        if q:
            columns.append(trained.q(spec.obs[[s for s, _ in q]], np.array([[a] for _, a in q])))
        if acts:
            columns.append(trained.act(spec.obs[list(acts)])[..., 0])
        return np.concatenate(columns, 1)

    queries = (
        *(_ask(f"Q(s{s}, a={a:g})", problem, lambda x, s=s, a=a: x.q(s, a), mistakes, apart) for s, a in q),
        *(_ask(f"action(s{s})", problem, lambda x, s=s: x.action[s, 0], mistakes, apart) for s in acts),
    )
    return Case(id, queries, readings(subject, spec, found), title=title, **calibrated._asdict())


def _ask(
    name: str, problem: Problem, read: Callable[..., float], mistakes: Sequence[str] | None, apart: float
) -> Query:
    if mistakes is None:
        return ask(name, problem, read, apart=apart)

    def shows(mistake: str) -> bool:
        try:
            found = answers(problem, read, [mistake])
        except RuntimeError:  # it leaves the reading alone, or has no fixed point
            return False
        return abs(found[mistake] - found["right"]) >= apart

    return ask(name, problem, read, list(filter(shows, mistakes)))
