"""Running cases and keeping what each came to."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Literal

from ajax.probing.query import Case
from ajax.probing.verdict import Verdict, judge

Status = Literal["passed", "failed", "error", "known defect", "defect gone"]


@dataclasses.dataclass(frozen=True, eq=False)
class Outcome:
    """What a case came to.

    Attributes:
        case: the case.
        verdict: its verdict; None where a precondition was broken.
        error: the broken precondition's text; empty otherwise.
        seconds: wall time.
    """

    case: Case
    verdict: Verdict | None
    error: str
    seconds: float

    @property
    def status(self) -> Status:
        """A case with a defect fails as expected, or passes and must lose its annotation."""
        if self.verdict is None:
            return "error"
        if self.case.defect:
            return "defect gone" if self.verdict.passed else "known defect"
        return "passed" if self.verdict.passed else "failed"

    @property
    def good(self) -> bool:
        """Whether nothing is to be done about it."""
        return self.status in ("passed", "known defect")

    @property
    def text(self) -> str:
        """What a person should read: the verdict's text, or the error."""
        if self.verdict is None:
            return f"{self.case.heading}: {self.error}"
        if self.status == "defect gone":
            return f"{self.case.heading}: the known defect is gone; remove defect={self.case.defect!r}"
        return self.verdict.text


def run(cases: Sequence[Case], workers: int = 1, done: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
    """Judge every case.

    Args:
        cases: what to judge.
        workers: cases judged at once, in threads: most of a case is compiling, which leaves other threads alone. More
            than one is for agents that share no state, such as Ajax's; PyTorch's random numbers are one stream.
        done: called in the calling thread with each outcome as it is known.

    Returns:
        The outcomes, in the cases' order.
    """
    with ThreadPoolExecutor(workers) as pool:
        futures = [pool.submit(_outcome, case) for case in cases]
        try:
            for future in as_completed(futures):
                done(future.result())
        except BaseException:  # what has not begun need not begin
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [future.result() for future in futures]


def _outcome(case: Case) -> Outcome:
    began, verdict, error = time.perf_counter(), None, ""
    try:
        verdict = judge(case)
    except RuntimeError as broken:
        error = str(broken)
    return Outcome(case, verdict, error, time.perf_counter() - began)
