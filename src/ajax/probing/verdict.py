"""The two-stage verdict: eight seeds, and eight more only where the first eight leave doubt."""

from __future__ import annotations

import dataclasses
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


def judge(case: Case) -> Verdict:
    """Train the case's seeds and return the verdict.

    A case passes when at least 7 of seeds 0-7 are right, fails when at most 4 are; between, seeds 8-15 are trained too
    and 13 of the 16 must be right. An exact case must be right on two seeds.

    Raises:
        RuntimeError: a precondition is broken: no tolerances, readings of another shape.
    """
    if case.exact:
        return _verdict(case, EXACT, case.read(EXACT), len(EXACT))
    readings = case.read(FIRST)
    right = int(case.right_seeds(readings).sum())
    if right >= PASS or right <= FAIL:
        return _verdict(case, FIRST, readings, PASS)
    return _verdict(case, [*FIRST, *SECOND], np.concatenate([readings, case.read(SECOND)]), PASS_BOTH)


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
