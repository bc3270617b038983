"""What is measured while a run trains: a row an evaluation, and the sums since the last one."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ajax.training.chunk import NEVER, Report


@dataclasses.dataclass
class Row:
    """One line of history: what was measured at `step`, each an array (lanes,)."""

    step: int
    seconds: float
    returns: np.ndarray
    lengths: np.ndarray
    metrics: dict[str, np.ndarray]

    def to_json(self) -> dict[str, Any]:
        """The row as JSON values."""
        arrays = {"returns": self.returns, "lengths": self.lengths, **self.metrics}
        return {"step": self.step, "seconds": self.seconds, "arrays": {k: v.tolist() for k, v in arrays.items()}}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Row:
        """The inverse of `to_json`."""
        arrays = {k: np.array(v, np.float64) for k, v in data["arrays"].items()}
        return cls(data["step"], data["seconds"], arrays.pop("returns"), arrays.pop("lengths"), arrays)


class Interval:
    """Training metrics since the last report: sums over ticks, and over the episodes that ended.

    Args:
        n: number of lanes.
    """

    def __init__(self, n: int):
        self.ticks = 0
        self.sums: dict[str, np.ndarray] = {}
        self.episodes = np.zeros((3, n))

    def add(self, report: Report, n: int, active: np.ndarray) -> None:
        """Take in a chunk of `n` ticks of the `active` (lanes,); nothing is known of the others."""

        def total(parts: Any) -> np.ndarray:
            return np.where(active, np.asarray(parts, np.float64).sum(-1), np.nan)

        if report.metrics:  # warm-up has none
            self.ticks += n
        for name, parts in report.metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + total(parts)
        finished = report.finished
        self.episodes += np.stack([total(x) for x in (finished.count, finished.total_return, finished.total_length)])

    def metrics(self) -> dict[str, np.ndarray]:
        """Means over the interval, rounded to float32; an episode mean is NaN where no episode ended."""
        count, returns, lengths = self.episodes
        with np.errstate(invalid="ignore", divide="ignore"):
            means = {"train/return": returns / count, "train/length": lengths / count, "train/episodes": count}
        means |= {name: total / self.ticks for name, total in self.sums.items()}
        return {name: mean.astype(np.float32).astype(np.float64) for name, mean in means.items()}

    def to_json(self) -> dict[str, Any]:
        """The sums as JSON values."""
        sums = {k: v.tolist() for k, v in self.sums.items()}
        return {"ticks": self.ticks, "sums": sums, "episodes": self.episodes.tolist()}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Interval:
        """The inverse of `to_json`."""
        interval = cls(0)
        interval.ticks, interval.episodes = data["ticks"], np.array(data["episodes"])
        interval.sums = {k: np.array(v) for k, v in data["sums"].items()}
        return interval


def first_fault(report: Report, lane: int, healthy: bool, steps_per_tick: int) -> str | None:
    """Say which metric of a lane first was not finite, and when; None if all is well.

    Args:
        report: of the chunk.
        lane: which.
        healthy: whether the numbers of its agent are finite at the chunk's end.
        steps_per_tick: environment steps in a tick.
    """
    bad = {name: int(when[lane]) for name, when in report.first_bad.items()}
    first = min(bad.values(), default=NEVER)
    if first < NEVER:
        names = ", ".join(sorted(name for name, when in bad.items() if when == first))
        return f"{names} stopped being finite at step {(first + 1) * steps_per_tick:,}."
    return None if healthy else "a parameter of the agent is no longer finite."
