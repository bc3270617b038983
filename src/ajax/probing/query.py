"""Queries and cases: what a probe reads, the right answer, the wrong ones, and how close is close enough."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

import numpy as np

from ajax.probing.mistakes import Problem, answers

LEAST, MOST = 0.02, 0.1  # every calibrated tolerance of a value lies between these
LEAST_MARGIN = 0.25  # no margin that a query asks for is below this

Readings = Callable[[int, Sequence[int]], np.ndarray]
"""Given a budget (environment steps) and seeds, trains them and returns readings of shape (seeds, queries)."""


@dataclasses.dataclass(frozen=True)
class Query:
    """One number read off a trained agent.

    Attributes:
        name: as reports print it: `"Q(s0, a=2)"`.
        right: the answer of a correct agent; for a margin, any number of the right sign.
        wrong: the answer under each named mistake; a mistake that isn't here leaves the reading right.
        kind: `"value"` asks for `right` within a tolerance; `"margin"` for its sign, by a margin; `"exact"` for `right`
            itself (counters, flags).
    """

    name: str
    right: float
    wrong: Mapping[str, float] = dataclasses.field(default_factory=dict)
    kind: Literal["value", "margin", "exact"] = "value"

    @property
    def gap(self) -> float:
        """Distance from the right answer to the nearest wrong one; infinite if there is none."""
        return min((abs(value - self.right) for value in self.wrong.values()), default=math.inf)

    @property
    def cap(self) -> float:
        """The largest tolerance: half the gap, and at most `MOST`; none for a margin, 0 for an exact query."""
        if self.kind == "value":
            return min(MOST, self.gap / 2)
        return math.inf if self.kind == "margin" else 0.0

    def within(self, readings: np.ndarray, tolerance: float) -> np.ndarray:
        """Return which readings pass: booleans of the readings' shape."""
        if self.kind == "margin":
            return np.sign(self.right) * readings >= tolerance
        return np.abs(readings - self.right) <= tolerance

    def errors(self, readings: np.ndarray) -> np.ndarray:
        """Return how far each reading is off (for a margin, by how much it is met)."""
        return np.sign(self.right) * readings if self.kind == "margin" else np.abs(readings - self.right)


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """A probe: an agent on a problem, what is read, and what counts as right.

    Attributes:
        id: short and unique in its module: `"p0a-DQN"`.
        queries: what is read.
        readings: trains and reads (see `Readings`).
        budget: environment steps of training.
        tolerances: one per query, from calibration; empty until then.
        title: what reports call it: `"DQN, two-step chain"`; the id by default.
        note: how it was calibrated and certified.
        defect: the name of a known bug that makes it fail; tests then expect the failure, strictly.
    """

    id: str
    queries: tuple[Query, ...]
    readings: Readings
    budget: int
    tolerances: tuple[float, ...] = ()
    title: str = ""
    note: str = ""
    defect: str = ""

    def __post_init__(self):
        if not self.queries:
            raise RuntimeError(f"case {self.id!r} asks nothing")
        if self.exact and not self.tolerances:
            object.__setattr__(self, "tolerances", (0.0,) * len(self.queries))
        for query in self.queries:
            if not math.isfinite(query.right) or any(math.isnan(value) for value in query.wrong.values()):
                raise RuntimeError(f"case {self.id!r}: the answers of {query.name} are not numbers: {query}")
            if query.gap == 0:
                raise RuntimeError(f"case {self.id!r}: a wrong answer of {query.name} is the right one, {query.right}")
        if self.tolerances:
            self._check_tolerances()

    def _check_tolerances(self) -> None:
        if len(self.tolerances) != len(self.queries):
            raise RuntimeError(f"case {self.id!r}: {len(self.queries)} queries, {len(self.tolerances)} tolerances")
        for query, tolerance in zip(self.queries, self.tolerances, strict=True):
            least = {"value": 0.0, "margin": LEAST_MARGIN, "exact": 0.0}[query.kind]
            if not least <= tolerance <= query.cap + 1e-12:
                raise RuntimeError(
                    f"case {self.id!r}: the tolerance {tolerance} of {query.name} must lie in"
                    f" [{least}, {query.cap:.4g}]; its nearest wrong answer is {query.gap:.4g} away"
                )

    @property
    def exact(self) -> bool:
        """Whether every query is exact."""
        return all(query.kind == "exact" for query in self.queries)

    @property
    def heading(self) -> str:
        """The title, or the id without one."""
        return self.title or self.id

    def read(self, seeds: Sequence[int], budget: int | None = None) -> np.ndarray:
        """Train `seeds` and return their readings, (seeds, queries) float64.

        Raises:
            RuntimeError: the readings have another shape.
        """
        found = np.asarray(self.readings(self.budget if budget is None else budget, seeds), float)
        if found.shape != (len(seeds), len(self.queries)):
            raise RuntimeError(
                f"case {self.id!r}: readings have shape {found.shape}, expected {(len(seeds), len(self.queries))}"
                " (seeds, queries)"
            )
        return found

    def right_seeds(self, readings: np.ndarray) -> np.ndarray:
        """Return (seeds,) booleans: whether every reading of a seed passes.

        Raises:
            RuntimeError: the case has no tolerances yet.
        """
        if not self.tolerances:
            raise RuntimeError(f"case {self.id!r} is not calibrated: run its ladder, choose, then set the tolerances")
        columns = zip(self.queries, readings.T, self.tolerances, strict=True)
        return np.all([query.within(column, tolerance) for query, column, tolerance in columns], axis=0)


def ask(
    name: str,
    problem: Problem,
    read: Callable[..., float],
    mistakes: Iterable[str] | None = None,
    kind: Literal["value", "margin", "exact"] = "value",
    apart: float = 2 * LEAST,
) -> Query:
    """Return a query whose answers, right and wrong, are computed.

    Args:
        name: as reports print it.
        problem, read, mistakes: see `ajax.probing.mistakes.answers`.
        kind: see `Query`.
        apart: without a list of mistakes, those whose answers are nearer than this to the right one are left out: the
            reading can't show them.
    """
    found = answers(problem, read, mistakes)
    right = found.pop("right")
    shown = {key: value for key, value in found.items() if mistakes is not None or abs(value - right) >= apart}
    return Query(name, right, shown, kind)
