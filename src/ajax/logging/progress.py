"""What a run shows while it goes: a bar on a terminal, one line an evaluation elsewhere."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task
from rich.progress import Progress as Bar
from rich.text import Text

_WINDOW = 20  # updates over which the speed is taken


class Progress:
    """Shows a run's steps, steps per second, return and time left.

        with Progress(200_000, "PPO on CartPole-v1, 8 seeds") as progress:
            with progress.phase("compiling"):
                ...
            progress.update(10_000, return_=21.5)

    Args:
        total: environment steps at the end.
        title: what runs; one line.
        start: environment steps already taken, where a run is resumed.
        enabled: whether to show anything at all.
        console: where to; standard error by default, so that what a program prints stays clean.
        clock: returns seconds.
    """

    def __init__(
        self,
        total: int,
        title: str,
        *,
        start: int = 0,
        enabled: bool = True,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._total = total
        self._title = title
        self._console = console or Console(stderr=True)
        self._enabled = enabled
        self._clock = clock
        self._marks = deque([(clock(), start)], maxlen=_WINDOW)
        self._return: float | None = None
        self._phase: tuple[str, float] | None = None
        self._bar = Bar(
            BarColumn(bar_width=20),
            _Live(self._status),
            console=self._console,
            disable=not (enabled and self._console.is_terminal),
        )
        self._task = self._bar.add_task(title, total=total, completed=start)

    def __enter__(self) -> Self:
        self._print(self._title)
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Say what goes on instead of steps, such as "compiling". Its time counts neither as speed nor as time left."""
        begin = self._clock()
        self._phase = name, begin
        try:
            yield
        finally:
            self._phase = None
            took = self._clock() - begin
            self._marks = deque([(when + took, step) for when, step in self._marks], maxlen=_WINDOW)
            self._print(f"{name} {took:.1f} s")

    def update(self, step: int, return_: float | None = None) -> None:
        """Show `step` environment steps so far and, after an evaluation, its return (mean over seeds)."""
        self._marks.append((self._clock(), step))
        self._bar.update(self._task, completed=step)
        if return_ is not None:
            self._return = return_
            if not self._console.is_terminal:
                self._print(self._status())

    def _print(self, line: str) -> None:
        if self._enabled:
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def _status(self) -> str:
        (first_time, first_step), (last_time, step) = self._marks[0], self._marks[-1]
        parts = [f"{_short(step)}/{_short(self._total)} steps"]
        if self._phase:
            name, begin = self._phase
            return f"{parts[0]}, {name} {self._clock() - begin:.1f} s"
        speed = (step - first_step) / (last_time - first_time) if last_time > first_time else 0.0
        if speed > 0:
            parts.append(f"{_short(speed)} steps/s")
        if self._return is not None:
            parts.append(f"return {self._return:.4g}")
        if speed > 0 and step < self._total:
            minutes, seconds = divmod(round((self._total - step) / speed), 60)
            parts.append(f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d} left")
        return ", ".join(parts)


class _Live(ProgressColumn):
    """A column whose text is asked for at every refresh."""

    def __init__(self, text: Callable[[], str]):
        super().__init__()
        self._text = text

    def render(self, task: Task) -> Text:
        return Text(self._text(), no_wrap=True)


def _short(number: float) -> str:
    """Return a count to three digits: 950, 1.5k, 120k, 3.25M."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{float(f'{number / unit:.3g}'):g}{name}"
    return f"{number:.0f}"
