"""The host's loop: chunk after chunk until the next evaluation, log line or checkpoint. The same for every engine."""

from __future__ import annotations

import dataclasses
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from ajax.core.errors import CheckpointError, ConfigError, EnvironmentFault
from ajax.logging import checkpoint
from ajax.logging.backends import Logger
from ajax.logging.folder import RunFolder
from ajax.logging.progress import Progress
from ajax.training.chunk import NEVER, Report, Sanity
from ajax.training.evaluate import Evaluation
from ajax.training.interrupts import Interrupts
from ajax.training.plan import Plan
from ajax.training.result import Result

CHUNK_SECONDS = 0.5
"""How long a chunk should take: short enough that progress moves and Ctrl-C is heard."""


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


class Session:
    """A training under way: the lanes, where they stand, and what was measured.

    Args:
        plan: what is trained.
        lanes: an engine, `Lanes` or `HostLanes`.
    """

    def __init__(self, plan: Plan, lanes: Any):
        self.plan, self.lanes = plan, lanes
        self.tick, self.seconds = 0, 0.0
        self.history: list[Row] = []
        self.stopped: dict[int, str] = {}
        self.interrupted = False
        self.since = Interval(lanes.n)
        self.folder: RunFolder | None = None
        self.loggers: tuple[Logger, ...] = ()
        self.checkpoint_seconds, self._saved_at = np.inf, -np.inf

    def record(self, folder: RunFolder | None, loggers: tuple[Logger, ...], checkpoint_seconds: float) -> None:
        """Write to a results folder and to loggers from here on, with a checkpoint at once.

        Args:
            folder: results folder, or None to keep everything in memory.
            loggers: further places that metrics go to.
            checkpoint_seconds: least time between two checkpoints.
        """
        self.folder, self.loggers, self.checkpoint_seconds = folder, loggers, checkpoint_seconds
        if folder:
            folder.rewrite(self.rows())
            self.save()

    @property
    def step(self) -> int:
        """Environment steps taken by each lane."""
        return self.tick * self.plan.steps_per_tick

    def begin(self) -> None:
        """Make the runs from their seeds.

        Raises:
            EnvironmentFault: the environment's first observation or step is not finite.
        """
        check_sanity(self.lanes.begin(), self.plan.env_name)

    def train_to(self, steps: int, *, progress: bool = True) -> Result:
        """Train until `steps` environment steps in all, or until interrupted.

        Raises:
            ConfigError: `steps` is less than a tick, or less than was already taken.
        """
        last = self._last_tick(steps)
        began = time.monotonic() - self.seconds
        self.interrupted, n = False, 1
        total = last * self.plan.steps_per_tick
        with Interrupts() as interrupts, Progress(total, self.plan.title, start=self.step, enabled=progress) as bar:
            with bar.phase("compiling"):
                self.lanes.compile(self.plan.episodes)
            self._log(f"training {self.plan.title} from step {self.step:,} to {total:,}")
            while self.tick < last and len(self.stopped) < self.lanes.n and not interrupts.asked:
                n = min(n, self._next_stop(last) - self.tick)
                start = time.monotonic()
                report = self.lanes.advance(self.tick, n, self._active())
                took = time.monotonic() - start
                self.tick += n
                self._absorb(report, n)
                self.seconds = time.monotonic() - began
                if self.tick == last or self._is_report(self.tick) or len(self.stopped) == self.lanes.n:
                    self._report(bar)
                else:
                    bar.update(self.step)
                n = max(1, min(8 * n, int(n * CHUNK_SECONDS / max(took, 1e-4))))
            self.interrupted = interrupts.asked and self.tick < last
        self._finish()
        return Result(self)

    def _last_tick(self, steps: int) -> int:
        per_tick = self.plan.steps_per_tick
        if steps < per_tick:
            agent = type(self.plan.agents[0]).__name__
            raise ConfigError(f"steps={steps}: {agent} takes {per_tick:,} environment steps at a time. Ask for more.")
        if steps // per_tick < self.tick:
            raise ConfigError(f"steps={steps:,}: the run has taken {self.step:,} already. Ask for more.")
        return steps // per_tick

    def _active(self) -> np.ndarray:
        return np.array([i not in self.stopped for i in range(self.lanes.n)])

    def _is_report(self, tick: int) -> bool:
        per_tick, every = self.plan.steps_per_tick, self.plan.every
        return tick * per_tick // every > (tick - 1) * per_tick // every

    def _next_stop(self, last: int) -> int:
        """The next tick at which something other than ticks happens."""
        per_tick, every = self.plan.steps_per_tick, self.plan.every
        report = -(-(self.step // every + 1) * every // per_tick)
        stops = [last, report] + ([self.lanes.warmup] if self.tick < self.lanes.warmup else [])
        return min(stop for stop in stops if stop > self.tick)

    def _absorb(self, report: Report, n: int) -> None:
        self.since.add(report, n)
        for lane in range(self.lanes.n):
            if lane in self.stopped:
                continue
            fault = first_fault(report, lane, self.plan.steps_per_tick)
            if fault is None:
                continue
            text = f"{self.plan.names[lane]}: {fault}"
            if self.plan.on_nan == "stop":
                self.stopped[lane] = fault
                text += " This run stops here; the others go on."
            self._log(text)
            warnings.warn(text, RuntimeWarning)

    def _report(self, bar: Progress) -> None:
        n, active = self.lanes.n, self._active()
        metrics = self.since.metrics()
        returns, lengths = metrics["train/return"], metrics["train/length"]
        if self.plan.episodes:
            outcome = self.evaluate(self.plan.episodes)
            returns, lengths = np.mean(outcome.returns, 1), np.mean(outcome.lengths, 1)
            metrics["evaluation/unfinished"] = 1.0 - np.mean(outcome.finished, 1)
        returns, lengths = np.where(active, returns, np.nan), np.where(active, lengths, np.nan)
        row = Row(self.step, self.seconds, returns, lengths, metrics)
        self.history.append(row)
        self.since = Interval(n)
        for lane, line in enumerate(self._lines(row)):
            if self.folder:
                self.folder.append(line)
            for logger in self.loggers:
                numbers = {k: v for k, v in line.items() if k not in ("step", "seed", "label")}
                logger.log(self.step, numbers, self.plan.seeds[lane])
        bar.update(self.step, self._mean_return())
        self._log(f"step {self.step:,}: mean return {self._mean_return():.2f}")
        if self.folder and time.monotonic() - self._saved_at >= self.checkpoint_seconds:
            self.save()

    def _mean_return(self) -> float | None:
        if not self.history or np.isnan(self.history[-1].returns).all():
            return None
        return float(np.nanmean(self.history[-1].returns))

    def _finish(self) -> None:
        if not self.folder:
            return
        self.save()
        if self.history:
            self.plot(self.folder.curve_path)
        if self.interrupted:
            self._log(f"interrupted at step {self.step:,}; go on with: ajax resume {self.folder.path}")
        else:
            self._log(f"done at step {self.step:,} after {self.seconds:.1f} s")

    def save(self) -> None:
        """Write a checkpoint. A failure (disk full) is reported and kept in `folder.problems`; training goes on."""
        assert self.folder is not None
        try:
            checkpoint.save(self.folder.path / "checkpoints", self.lanes.tree(), self.meta(), step=self.step)
        except CheckpointError as error:
            self.folder.problems.append(str(error))
            self._log(str(error))
            warnings.warn(str(error), RuntimeWarning)
        self._saved_at = time.monotonic()

    def meta(self) -> dict[str, Any]:
        """What a checkpoint holds beside the runs, as JSON values."""
        return {
            "tick": self.tick,
            "seconds": self.seconds,
            "history": [row.to_json() for row in self.history],
            "stopped": [[lane, text] for lane, text in self.stopped.items()],
            "since": self.since.to_json(),
        }

    def restore(self, tree: Any, meta: dict[str, Any]) -> None:
        """Take over a checkpoint's runs and history."""
        self.lanes.load(tree)
        self.tick, self.seconds = meta["tick"], meta["seconds"]
        self.history = [Row.from_json(row) for row in meta["history"]]
        self.stopped = dict(meta["stopped"])
        self.since = Interval.from_json(meta["since"])

    def evaluate(self, episodes: int) -> Evaluation:
        """Evaluate the runs as they stand; arrays (lanes, episodes)."""
        return self.lanes.evaluate(self.tick, episodes)

    def save_to(self, path: str | Path) -> Path:
        """Write a finished training to a results folder of its own."""
        with RunFolder(path) as folder:
            folder.write_config(self.plan.to_json())
            folder.rewrite(self.rows())
            checkpoint.save(folder.path / "checkpoints", self.lanes.tree(), self.meta(), step=self.step)
            if self.history:
                self.plot(folder.curve_path)
            return folder.path

    def rows(self) -> list[dict[str, Any]]:
        """History as one flat row an evaluation and lane."""
        return [line for row in self.history for line in self._lines(row)]

    def _lines(self, row: Row) -> list[dict[str, Any]]:
        return [
            {"step": row.step, "label": self.plan.labels[i], "seed": self.plan.seeds[i]}
            | {"return": float(row.returns[i]), "length": float(row.lengths[i]), "seconds": round(row.seconds, 2)}
            | {name: float(values[i]) for name, values in sorted(row.metrics.items())}
            for i in range(self.lanes.n)
        ]

    def curves(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Label: steps (evaluations,) and returns (seeds, evaluations); one label a value of a sweep."""
        steps = np.array([row.step for row in self.history])
        returns = np.stack([row.returns for row in self.history], 1)
        labels = np.array(self.plan.labels)
        return {label: (steps, returns[labels == label]) for label in dict.fromkeys(self.plan.labels)}

    def plot(self, path: Path) -> None:
        """Draw the learning curve to a file; a failure is reported like a checkpoint's."""
        from ajax.logging.plots import learning_curve

        try:
            learning_curve(self.curves(), path, title=self.plan.title)
        except OSError as error:
            text = f"the learning curve could not be written to {path}: {error.strerror or error}."
            warnings.warn(text, RuntimeWarning)
            if self.folder:
                self.folder.problems.append(text)

    def _log(self, text: str) -> None:
        if self.folder:
            self.folder.log(text)


class Interval:
    """Training metrics since the last report: sums over ticks, and over the episodes that ended."""

    def __init__(self, n: int):
        self.ticks = 0
        self.sums: dict[str, np.ndarray] = {}
        self.episodes = np.zeros((3, n))

    def add(self, report: Report, n: int) -> None:
        """Take in a chunk of `n` ticks."""
        if report.metrics:  # warm-up has none
            self.ticks += n
        for name, mean in report.metrics.items():
            self.sums[name] = self.sums.get(name, 0.0) + np.asarray(mean, np.float64) * n
        finished = report.finished
        self.episodes += np.stack([finished.count, finished.total_return, finished.total_length]).astype(np.float64)

    def metrics(self) -> dict[str, np.ndarray]:
        """Means over the interval; an episode mean is NaN where no episode ended."""
        count, returns, lengths = self.episodes
        with np.errstate(invalid="ignore", divide="ignore"):
            means = {"train/return": returns / count, "train/length": lengths / count, "train/episodes": count}
        return means | {name: total / self.ticks for name, total in self.sums.items()}

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


def first_fault(report: Report, lane: int, steps_per_tick: int) -> str | None:
    """Say which metric of a lane first was not finite, and when; None if all is well."""
    bad = {name: int(when[lane]) for name, when in report.first_bad.items()}
    first = min(bad.values(), default=NEVER)
    if first < NEVER:
        names = ", ".join(sorted(name for name, when in bad.items() if when == first))
        return f"{names} stopped being finite at step {(first + 1) * steps_per_tick:,}."
    return None if report.healthy[lane] else "a parameter of the agent is no longer finite."


def check_sanity(sanity: Sanity, env_name: str) -> None:
    """Refuse an environment whose first numbers are not finite.

    Raises:
        EnvironmentFault: naming what was not.
    """
    what = {"reset's observation": sanity.reset, "step's observation": sanity.obs, "step's reward": sanity.reward}
    bad = [name for name, fine in what.items() if not np.all(fine)]
    if bad:
        raise EnvironmentFault(
            f"{env_name}: {' and '.join(bad)} held NaN or infinity in the first step. Run `ajax check-env` on it."
        )
