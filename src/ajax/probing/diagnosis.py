"""Which named mistake failing seeds are closest to, and the sentence that says so."""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.probing.mistakes import MISTAKES
from ajax.probing.query import Case, Query

SPREAD = 0.005  # readings are never thought to be less noisy than this
NEAR = 0.2  # of the way from a wrong answer to the right one: that near to it, readings are said to be at it
CLEARLY = 0.5  # a mistake this much nearer, over all queries, than every other answer is named all the same


@dataclasses.dataclass(frozen=True)
class Diagnosis:
    """What the failing seeds of a case resemble.

    Attributes:
        mistakes: the closest named mistake, and those whose answers can't be told from its own; empty if the case
            names none.
        near: whether the failing readings really lie at its answers: within their noise, the tolerances, or a fifth of
            the way to the right answers (training may stop short of a fixed point); or half as far from them, over
            all queries, as from the right answers and from every other mistake's.
        agree: failing seeds whose own closest answer is one of `mistakes`.
        failing: failing seeds.
    """

    mistakes: tuple[str, ...]
    near: bool
    agree: int
    failing: int


def diagnose(case: Case, readings: np.ndarray) -> Diagnosis:
    """Return what failing seeds resemble.

    Every mistake predicts all queries at once (the right answer where it doesn't show), so a mistake that would show in
    a reading that is right can't be the cause. Distances are in tolerances. Where a mistake's answer diverges, readings
    are at it that lie beyond all other answers by as much as these span.

    Args:
        case: the case.
        readings: (failing seeds, queries).
    """
    names = sorted({name for query in case.queries for name in query.wrong})
    judged = [i for i, query in enumerate(case.queries) if query.kind != "margin" or query.wrong]
    predicted = np.array([[case.queries[i].wrong.get(name, case.queries[i].right) for i in judged] for name in names])
    right = np.array([case.queries[i].right for i in judged])
    readings = readings[:, judged]
    finite = readings[np.all(np.isfinite(readings), axis=1)]
    nothing = Diagnosis((), False, 0, len(readings))
    if not names or not len(finite):
        return nothing
    centre, noise = np.median(finite, axis=0), np.maximum(_spread(finite), SPREAD)
    predicted = _met(predicted, right, centre)
    comparable = np.all(np.isfinite(predicted), axis=1)
    names, predicted = [name for name, kept in zip(names, comparable, strict=True) if kept], predicted[comparable]
    if not names:
        return nothing
    scale = np.maximum([case.tolerances[i] for i in judged], SPREAD)

    def distances(rows: np.ndarray, answers: np.ndarray) -> np.ndarray:  # (rows, answers)
        return np.sqrt(np.mean(((rows[:, None] - answers) / scale) ** 2, axis=-1))

    *away, from_right = distances(centre[None], np.vstack([predicted, right]))[0]
    closest = int(np.argmin(away))
    alike = np.all(np.abs(predicted - predicted[closest]) <= noise, axis=1)
    order = [closest, *(int(i) for i in np.flatnonzero(alike) if i != closest)]
    reach = np.max([scale, noise, NEAR * np.abs(predicted[closest] - right)], axis=0)
    clearly = away[closest] <= CLEARLY * min([from_right, *np.array(away)[~alike]])
    near = bool(clearly or np.all(np.abs(centre - predicted[closest]) <= reach))
    agree = int(alike[distances(finite, predicted).argmin(axis=1)].sum())
    return Diagnosis(tuple(names[i] for i in order), near, agree, len(readings))


def explain(case: Case, readings: np.ndarray) -> str:
    """Return the failure's text: the reading that is furthest off with the diagnosis, then the others that fail.

    Args:
        case: the case.
        readings: (seeds, queries), right seeds included.
    """
    wrong = ~case.right_seeds(readings)
    columns = list(zip(case.queries, readings.T, case.tolerances, strict=True))
    failing = [(i, ~query.within(column, tolerance)) for i, (query, column, tolerance) in enumerate(columns)]
    failing = [(i, seeds) for i, seeds in failing if seeds.any()]

    def off(item: tuple[int, np.ndarray]) -> tuple[int, float]:
        query, column, tolerance = columns[item[0]]
        errors = np.nan_to_num(np.abs(column[item[1]] - query.right), nan=np.inf)
        return int(item[1].sum()), float(np.median(errors)) / max(tolerance, SPREAD)

    failing.sort(key=off, reverse=True)

    def line(i: int, seeds: np.ndarray) -> str:
        query, column, tolerance = columns[i]
        count = f"{seeds.sum()} of {len(seeds)} seeds"
        if query.kind == "margin":
            sign = "above" if query.right > 0 else "below"
            bound = np.sign(query.right) * tolerance
            return f"{query.name}: {count} read {_number(column[seeds], query)}; right is {sign} {bound:.2f}"
        return f"{query.name}: {count} read {_number(column[seeds], query)}; right {_answer(query.right, query)}"

    first, *others = failing
    head = f"{case.heading}, {line(*first)}; {_sentence(case, diagnose(case, readings[wrong]), first[0])}"
    return "\n".join([head, *(f"  also {line(*item)}" for item in others)])


def _sentence(case: Case, found: Diagnosis, shown: int) -> str:
    if not found.mistakes:
        return "no named mistake to compare with"
    query = case.queries[shown]

    def answer(name: str) -> str:
        return _answer(query.wrong.get(name, query.right), query)

    first, *alike = found.mistakes
    if not found.near:
        return f"no named mistake is near; the nearest is {first} ({answer(first)})"
    listed = " or ".join(f"{name} ({answer(name)})" for name in (first, *alike))
    places = list(dict.fromkeys(MISTAKES[name].look for name in (first, *alike) if name in MISTAKES))
    look = f"; look at {', or at '.join(places)}" if places else ""
    return f"closest named mistake: {listed}, {found.agree} of {found.failing} agree{look}"


def _met(predicted: np.ndarray, right: np.ndarray, centre: np.ndarray) -> np.ndarray:
    """Return the answers (mistakes, queries), a diverging one as `centre` where that lies far beyond the others."""
    known = np.vstack([right, np.where(np.isfinite(predicted), predicted, right)])
    low, high = known.min(0), known.max(0)
    beyond = (centre < low - (high - low)) | (centre > high + (high - low))
    return np.where(~np.isfinite(predicted) & beyond, centre, predicted)


def _spread(readings: np.ndarray) -> np.ndarray:
    """Return the standard deviation over seeds, from the median deviation, which a stray seed can't move."""
    return 1.4826 * np.median(np.abs(readings - np.median(readings, axis=0)), axis=0)


def _number(readings: np.ndarray, query: Query) -> str:
    """Return `0.40 +- 0.01` for the readings of failing seeds, or what they are when they aren't numbers."""
    finite = readings[np.isfinite(readings)]
    if not len(finite):
        return "values that are not finite"
    lost = f" ({len(readings) - len(finite)} not finite)" if len(finite) < len(readings) else ""
    if np.all(finite == finite[0]) and query.kind == "exact":
        return f"{_answer(finite[0], query)}{lost}"
    return f"{np.median(finite):.2f} +- {_spread(finite):.2f}{lost}"


def _answer(value: float, query: Query) -> str:
    if np.isinf(value):
        return "diverges"
    return f"{value:g}" if query.kind == "exact" else f"{value:.2f}"
