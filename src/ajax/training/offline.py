"""The offline tick: a round of updates on a dataset. A step is an update; no environment is stepped."""

from __future__ import annotations

from typing import Any

import jax

from ajax.core.keys import stream
from ajax.core.learn import Metrics
from ajax.core.records import Batch, Clock
from ajax.training import off_policy
from ajax.training.run import Finished, Run, Task

FOLDS = off_policy.FOLDS - {"act", "record"}
"""The phases of extensions that this loop folds: no environment is stepped."""


def steps_per_tick(agent: Any) -> int:
    """Updates in one tick, which offline training counts as its steps."""
    return agent.replay.updates


updates_per_tick = steps_per_tick


def warmup_ticks(agent: Any) -> int:
    """Ticks that only collect: none."""
    return 0


def init_store(agent: Any, row: Batch) -> tuple:
    """Nothing of the run's own: the dataset is the task's."""
    return ()


def tick(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics, Finished]:
    """`replay.updates` updates on samples of the dataset."""
    run = run.replace(store=task.dataset)
    run, metrics = off_policy.learn_from(agent, task, run, stream(key, "learn"), clock, True)
    return run.replace(store=()), metrics, Finished.none()
