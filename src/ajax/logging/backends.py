"""Experiment trackers that a run may write its metrics to besides `progress.csv`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ajax.core.errors import CapabilityError


class Logger(Protocol):
    """Where the metrics of a run go. The driver calls `log` at each evaluation and `close` at the end."""

    def log(self, step: int, metrics: dict[str, float], seed: int | None = None) -> None:
        """Write metrics of `step` environment steps: those of one seed, or with None those of the whole run."""
        ...

    def close(self) -> None:
        """Write what is still in memory."""
        ...


class TensorBoardLogger:
    """Writes TensorBoard event files: the run's into `folder`, each seed's into a subfolder `seed_<i>`.

    Raises:
        CapabilityError: the extra `tensorboard` isn't installed.
    """

    def __init__(self, folder: str | Path):
        try:
            from tensorboardX import SummaryWriter
        except ImportError as error:
            raise _missing("TensorBoardLogger", "tensorboard") from error
        self._folder = Path(folder)
        self._open = SummaryWriter
        self._writers: dict[int | None, Any] = {}

    def log(self, step: int, metrics: dict[str, float], seed: int | None = None) -> None:
        """See `Logger`."""
        if seed not in self._writers:
            folder = self._folder if seed is None else self._folder / f"seed_{seed}"
            self._writers[seed] = self._open(str(folder))
        for name, value in metrics.items():
            self._writers[seed].add_scalar(name, value, step)

    def close(self) -> None:
        """See `Logger`."""
        for writer in self._writers.values():
            writer.close()


class WandbLogger:
    """Writes one Weights & Biases run; a seed's metrics are named `seed_<i>/<metric>`.

    Args:
        project: the project's name.
        name: the run's name; one is made up by default.
        config: what the run was started with, shown beside it.
        folder: where files go until they are uploaded; holds `wandb/`.
        offline: upload nothing; `wandb sync` does so later.

    Raises:
        CapabilityError: the extra `wandb` isn't installed.
    """

    def __init__(
        self,
        project: str,
        *,
        name: str | None = None,
        config: dict[str, Any] | None = None,
        folder: str | Path = ".",
        offline: bool = False,
    ):
        try:
            import wandb
        except ImportError as error:
            raise _missing("WandbLogger", "wandb") from error
        self._run = wandb.init(
            project=project, name=name, config=config, dir=str(folder), mode="offline" if offline else "online"
        )
        # Its own step counter may not go back and would merge calls; ours is a metric that the others are drawn over.
        self._run.define_metric("step")
        self._run.define_metric("*", step_metric="step")

    def log(self, step: int, metrics: dict[str, float], seed: int | None = None) -> None:
        """See `Logger`."""
        prefix = "" if seed is None else f"seed_{seed}/"
        self._run.log({"step": step, **{prefix + name: value for name, value in metrics.items()}})

    def close(self) -> None:
        """See `Logger`."""
        self._run.finish()


def _missing(name: str, extra: str) -> CapabilityError:
    return CapabilityError(f"{name} needs an extra: pip install 'ajax-agents[{extra}]'.")
