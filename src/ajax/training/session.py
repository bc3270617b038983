"""The host's loop: chunk after chunk until the next evaluation, log line or checkpoint. The same for every engine."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ajax.core.errors import CheckpointError, ConfigError
from ajax.logging import checkpoint
from ajax.logging.backends import Logger
from ajax.logging.folder import RunFolder
from ajax.logging.progress import Progress
from ajax.training.chunk import Report
from ajax.training.evaluate import Evaluation
from ajax.training.history import Interval, Row, first_fault
from ajax.training.interrupts import Interrupts
from ajax.training.plan import Plan, check_count
from ajax.training.result import Result

CHUNK_SECONDS = 0.5
"""How long a chunk should take: short enough that progress moves and Ctrl-C is heard."""

SHARE_OF_SAVING = 20.0
"""A checkpoint is followed by at least this many times the time that it took."""


class Session:
    """A training under way: the lanes, where they stand, and what was measured.

    Attributes:
        tick, seconds: how far it is, and the time that it took.
        target: environment steps last asked for.
        history: a row an evaluation.
        stopped: lane: why it stopped before the end.
        interrupted: number of the signal that cut training short, 0 if none did.
        since: what was measured since the last row.

    Args:
        plan: what is trained.
        lanes: an engine, `Lanes` or `HostLanes`.
    """

    def __init__(self, plan: Plan, lanes: Any):
        self.plan, self.lanes = plan, lanes
        self.tick, self.seconds = 0, 0.0
        self.history: list[Row] = []
        self.stopped: dict[int, str] = {}
        self._warned: set[int] = set()
        self.target = plan.steps
        self.interrupted = 0
        self.since = Interval(lanes.n)
        self.folder: RunFolder | None = None
        self.loggers: tuple[Logger, ...] = ()
        self.checkpoint_seconds, self._save_at = np.inf, np.inf

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

    def begin(self, start: Session | None = None) -> None:
        """Make the runs from their seeds, with the networks of the runs of `start`, and pretrain them.

        Raises:
            EnvironmentFault: the environment's first observation or step is not finite.
            ConfigError, CapabilityError: the extensions can't work together, or `start` does not fit.
        """
        self.lanes.begin().check(self.plan.env_name)
        if start is not None:
            self.adopt(start)
        if self.plan.extensions:
            self.lanes.compile(self.plan.episodes)  # what is wrong with a stack shows here, before it trains
            self.lanes.pretrain()

    def adopt(self, other: Session) -> None:
        """Replace every agent's first state by the same lane's of another session, and what normalizes observations.

        Raises:
            ConfigError: the two don't train as many runs, or their agents don't hold the same arrays.
        """
        if self.lanes.n != other.lanes.n:
            raise ConfigError(f"start holds {other.lanes.n} runs, and {self.lanes.n} are to be trained: give as many.")
        ours, theirs = self.lanes.tree(), other.lanes.tree()
        adopted = ours.replace(agent=theirs.agent, statistics=ours.statistics.replace(obs=theirs.statistics.obs))
        if _form(adopted) != _form(ours):
            given, wanted = (f"{type(s.plan.agents[0]).__name__} on {s.plan.env_name}" for s in (other, self))
            raise ConfigError(
                f"start is a {given}, whose arrays are not those of this {wanted}. Both need the same agent, networks,"
                " spaces and normalization of observations."
            )
        self.lanes.load(adopted)

    def train_to(self, steps: int, *, progress: bool = True) -> Result:
        """Train until `steps` environment steps in all, or until interrupted.

        Raises:
            ConfigError: `steps` is less than was already taken, or the dataset to learn from is missing.
        """
        self.require_dataset()
        last = self._last_tick(steps)
        began = time.monotonic() - self.seconds
        self.target, self.interrupted, n = steps, 0, 1
        total = last * self.plan.steps_per_tick
        with Interrupts() as interrupts, Progress(total, self.plan.title, start=self.step, enabled=progress) as bar:
            with bar.phase("compiling"):
                self.lanes.compile(self.plan.episodes)
            self._log(f"training {self.plan.title} from step {self.step:,} to {total:,}")
            self._save_soon()
            while self.tick < last and len(self.stopped) < self.lanes.n and not interrupts.asked:
                n = min(n, self._next_stop(last) - self.tick)
                start = time.monotonic()
                report = self.lanes.advance(self.tick, n, self._active())
                took = time.monotonic() - start
                self.tick += n
                self._absorb(report, n)
                self.seconds = time.monotonic() - began
                if self._is_report(last):
                    self._report(bar)
                else:
                    bar.update(self.step)
                if self.folder and time.monotonic() > self._save_at:
                    self.save()
                n = max(1, min(8 * n, int(n * CHUNK_SECONDS / max(took, 1e-4))))
            self.interrupted = interrupts.asked if self.tick < last else 0
        self._finish()
        return Result(self)

    def require_dataset(self) -> None:
        """Refuse to train a run that was opened only to be looked at.

        Raises:
            ConfigError: it learns from a dataset, which was not given.
        """
        if self.plan.offline and self.lanes.task.dataset is None:
            raise ConfigError(
                "this run learns from a dataset, which a results folder does not hold. Resume it from"
                " Python: ajax.resume(folder, dataset=...)."
            )

    def _last_tick(self, steps: int) -> int:
        check_count("steps", steps, 1)
        if steps // self.plan.steps_per_tick < self.tick:
            raise ConfigError(f"steps={steps}: the run has taken {self.step:,} already. Ask for more.")
        return steps // self.plan.steps_per_tick

    def _active(self) -> np.ndarray:
        return np.array([i not in self.stopped for i in range(self.lanes.n)])

    def _reports(self, tick: int) -> int:
        """How many reports are due by a tick: `evaluations` of them, evenly spread over the steps first asked for."""
        return tick * self.plan.evaluations // (self.plan.steps // self.plan.steps_per_tick)

    def _is_report(self, last: int) -> bool:
        due = self._reports(self.tick) > self._reports(self.tick - 1)
        return due or self.tick == last or len(self.stopped) == self.lanes.n

    def _next_stop(self, last: int) -> int:
        """The next tick at which something other than ticks happens."""
        ticks = self.plan.steps // self.plan.steps_per_tick
        report = -(-(self._reports(self.tick) + 1) * ticks // self.plan.evaluations)
        stops = [last, report] + ([self.lanes.warmup] if self.tick < self.lanes.warmup else [])
        return min(stop for stop in stops if stop > self.tick)

    def _absorb(self, report: Report, n: int) -> None:
        self.since.add(report, n, self._active())
        healthy = self.lanes.healthy()
        for lane in range(self.lanes.n):
            if lane in self.stopped or lane in self._warned:
                continue
            fault = first_fault(report, lane, healthy[lane], self.plan.steps_per_tick)
            if fault is None:
                continue
            text = f"{self.plan.names[lane]}: {fault}"
            self._warned.add(lane)
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
            metrics |= {f"evaluation/{name}": np.asarray(x, np.float64) for name, x in outcome.metrics.items()}
        returns, lengths = np.where(active, returns, np.nan), np.where(active, lengths, np.nan)
        row = Row(self.step, self.seconds, returns, lengths, metrics)
        self.history.append(row)
        self.since = Interval(n)
        for lane, line in enumerate(self._lines(row)):
            if self.folder:
                self.folder.append(line)
            for logger in self.loggers:
                prefix = f"{line['label']}/" if line["label"] else ""
                numbers = {prefix + k: v for k, v in line.items() if k not in ("step", "seed", "label")}
                logger.log(self.step, numbers, self.plan.seeds[lane])
        mean = self._mean_return()
        bar.update(self.step, mean)
        self._log(f"step {self.step:,}: " + ("no return yet" if mean is None else f"mean return {mean:.2f}"))

    def _mean_return(self) -> float | None:
        """Of the last report; None where no episode ended."""
        returns = self.history[-1].returns
        return None if np.isnan(returns).all() else float(np.nanmean(returns))

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
        began = time.monotonic()
        try:
            checkpoint.save(self.folder.path / "checkpoints", self.lanes.tree(), self.meta(), step=self.step)
        except CheckpointError as error:
            if str(error) not in self.folder.problems:
                self.folder.problems.append(str(error))
                self._log(str(error))
                warnings.warn(str(error), RuntimeWarning)
        self._save_soon(time.monotonic() - began)

    def _save_soon(self, took: float = 0.0) -> None:
        """Let the next checkpoint be written in due time: a large replay's must not take most of the run."""
        self._save_at = time.monotonic() + max(self.checkpoint_seconds, SHARE_OF_SAVING * took)

    def meta(self) -> dict[str, Any]:
        """What a checkpoint holds beside the runs, as JSON values."""
        return {
            "tick": self.tick,
            "target": self.target,
            "seconds": self.seconds,
            "history": [row.to_json() for row in self.history],
            "stopped": [[lane, text] for lane, text in self.stopped.items()],
            "since": self.since.to_json(),
        }

    def restore(self, tree: Any, meta: dict[str, Any]) -> None:
        """Take over a checkpoint's runs and history."""
        self.lanes.load(tree)
        self.tick, self.target, self.seconds = meta["tick"], meta["target"], meta["seconds"]
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


def _form(tree: Any) -> tuple[Any, list[tuple]]:
    """What two trees share that can stand for one another: their structure, and their arrays' shapes and dtypes."""
    leaves, structure = jax.tree.flatten(tree)
    return structure, [(leaf.shape, leaf.dtype) for leaf in leaves]
