"""The stack at one step of the environments (`Stage`) and at one update (`hooks_of`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import jax

from ajax.core.errors import ConfigError
from ajax.core.hooks import Extension, Hooks, View
from ajax.core.keys import stream
from ajax.core.records import Batch, Clock, Inputs
from ajax.training.run import Run, Task


class Stage:
    """One step, folded through the stack in order.

    Attributes:
        each: what every extension keeps of each environment, as it stands.

    Args:
        agent, task, run: who acts; of the run, the agent's state and the extensions' are read.
        clock: where the run stands.
        key: of this step; every extension and phase gets one of its own.
        each: what they kept of each environment before this step.
        elapsed: steps since each episode's start (n,).
    """

    def __init__(self, agent: Any, task: Task, run: Run, clock: Clock, key: jax.Array, each: tuple, elapsed: jax.Array):
        self.agent, self.task, self.run, self.clock, self.key = agent, task, run, clock, key
        self.each, self.elapsed = each, elapsed

    def _views(self, phase: str, batch: Batch) -> Iterator[tuple[int, Extension, View]]:
        stack = tuple(zip(self.task.extensions, self.run.own, strict=True))
        for i, (extension, own) in enumerate(stack):
            if phase in extension.phases():
                key = stream(self.key, f"extension {i} {phase}")
                seen = {"each": self.each[i], "elapsed": self.elapsed, "spec": self.task.spec, "stack": stack}
                yield i, extension, View(self.agent, self.run.agent, batch, self.clock, key, own, **seen)

    def _keep(self, i: int, each: Any) -> None:
        self.each = (*self.each[:i], each, *self.each[i + 1 :])

    def act(self, phase: Literal["act", "eval_act", "execute"], x: Inputs, action: jax.Array) -> jax.Array:
        """Fold an action in agent units: what the agent is taken to have done, or what the environment is given."""
        batch: Any = Batch(x, action, *[None] * 4)  # type: ignore[arg-type]  # nothing else is known yet
        for i, extension, view in self._views(phase, batch):
            action, each = getattr(extension, phase)(action, view)
            self._keep(i, each)
        return action

    def record(self, row: Batch) -> dict[str, jax.Array]:
        """What the extensions keep of a raw transition (n_envs, ...), beside its own extras.

        Raises:
            ConfigError: two arrays of one name.
        """
        found: dict[str, jax.Array] = {}
        for i, extension, view in self._views("record", row):
            extras, each = extension.record(view)
            add_names(found, extras, f"{type(extension).__name__}.record", taken=row.extras)
            self._keep(i, each)
        return found


def hooks_of(agent: Any, task: Task, own: tuple, clock: Clock, key: jax.Array) -> Hooks:
    """The stack at one update, given the update's key."""
    spec = task.spec if task.extensions else None
    return Hooks(agent, task.extensions, own, clock, key, spec)


def add_names(found: dict[str, Any], new: dict[str, Any], where: str, taken: dict[str, Any] | None = None) -> None:
    """Add named values, none of whose names are taken.

    Raises:
        ConfigError: a name is, saying `where` it was given again.
    """
    twice = sorted(set(new) & ({*found} | {*(taken or ())}))
    if twice:
        raise ConfigError(f"{where} gives {', '.join(twice)}, a name that is taken. Give every name once in a stack.")
    found.update(new)
