"""The two-stage verdict: eight seeds, and eight more only where the first eight leave doubt."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from ajax.probing.diagnosis import Diagnosis, diagnose, explain
from ajax.probing.query import Case

FIRST, SECOND = range(8), range(8, 16)  # the seeds of the two stages
EXACT = range(2)  # the seeds of an exact case
PASS, FAIL = 7, 4  # right seeds of the first stage from which it passes, up to which it fails
PASS_BOTH = 13  # right seeds of both stages together from which it passes


class ProbeFailure(AssertionError):
    """An agent's readings are wrong; the message says which, and which named mistake they are closest to."""


@dataclasses.dataclass(frozen=True, eq=False)
class Verdict:
    """What judging a case found.

    Attributes:
        case: the case.
        seeds: the seeds that were trained.
        readings: (seeds, queries).
        right: (seeds,) booleans.
        passed: whether the case passes.
        diagnosis: what the wrong seeds resemble; None when it passes.
    """

    case: Case
    seeds: tuple[int, ...]
    readings: np.ndarray
    right: np.ndarray
    passed: bool
    diagnosis: Diagnosis | None

    @property
    def text(self) -> str:
        """One line when it passes, the failure's text otherwise."""
        if self.passed:
            return f"{self.case.heading}: {self.right.sum()} of {len(self.seeds)} seeds right"
        return explain(self.case, self.readings)


def judge(case: Case, start: int = 0) -> Verdict:
    """Train the case's seeds and return the verdict.

    A case passes when at least 7 of seeds 0-7 are right, fails when at most 4 are; between, seeds 8-15 are trained too
    and 13 of the 16 must be right. An exact case must be right on two seeds.

    Args:
        case: the case.
        start: added to the seeds; other than 0 only where the verdict itself is tested.

    Raises:
        RuntimeError: a precondition is broken: no tolerances, readings of another shape.
    """
    exact, first, second = ([start + seed for seed in seeds] for seeds in (EXACT, FIRST, SECOND))
    if case.exact:
        return _verdict(case, exact, case.read(exact), len(exact))
    readings = case.read(first)
    right = int(case.right_seeds(readings).sum())
    if right >= PASS or right <= FAIL:
        return _verdict(case, first, readings, PASS)
    return _verdict(case, [*first, *second], np.concatenate([readings, case.read(second)]), PASS_BOTH)


def failure_rate(wrong: float) -> float:
    """Return how often a case fails of whose seeds a share `wrong` reads wrong, each by itself."""
    n, m = len(FIRST), len(SECOND)

    def chance(right: int, of: int) -> float:
        return math.comb(of, right) * (1 - wrong) ** right * wrong ** (of - right)

    def second(right: int) -> float:  # that the second stage fails after so many right ones
        return sum(chance(more, m) for more in range(m + 1) if right + more < PASS_BOTH)

    at_once = sum(chance(right, n) for right in range(FAIL + 1))
    return at_once + sum(chance(right, n) * second(right) for right in range(FAIL + 1, PASS))


def check(case: Case) -> Verdict:
    """Judge the case and return the verdict if it passes.

    Raises:
        ProbeFailure: the case fails.
        RuntimeError: a precondition is broken.
    """
    verdict = judge(case)
    if not verdict.passed:
        raise ProbeFailure(verdict.text)
    return verdict


def _verdict(case: Case, seeds: Sequence[int], readings: np.ndarray, needed: int) -> Verdict:
    right = case.right_seeds(readings)
    passed = int(right.sum()) >= needed
    return Verdict(case, tuple(seeds), readings, right, passed, None if passed else diagnose(case, readings[~right]))
