"""Tables of what was measured: for the terminal (rich) and for the documentation (markdown)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from benchmarks.runner import Try

OURS, LIMIT = "Ajax", "limit"


@dataclass(frozen=True)
class Line:
    """One line of a table.

    Attributes:
        title: what is compared, with its unit.
        row: name of the row that it comes from.
        value: the number in a try, None if it has none.
        more_is_better: whether the largest number wins.
    """

    title: str
    row: str
    value: Callable[[Try], float | None]
    more_is_better: bool = False


def wall(t: Try) -> float:
    """Seconds from the process's start to its end."""
    return t.wall


def cpu(t: Try) -> float:
    """Processor seconds of the whole process."""
    return t.cpu


def peak(t: Try) -> float | None:
    """Peak memory in MB."""
    return t.peak_mb


def result(name: str) -> Callable[[Try], float | None]:
    """A number that the script printed, or the median of several."""

    def value(t: Try) -> float | None:
        number = t.result.get(name)
        return median(number) if isinstance(number, list) else number

    return value


LINES = (
    Line("import an agent, s", "import", result("seconds")),
    Line("process start to a trained PPO, cold, s", "newcomer", wall),
    Line("the same, compile cache warm, s", "newcomer, warm cache", wall),
    Line("its mean return", "newcomer", result("return"), True),
    Line("PPO trace and compile, 1 seed, s", "PPO, 1 seed", result("ready")),
    Line("PPO trace and compile, 8 seeds, s", "PPO, 8 seeds", result("ready")),
    *(Line(f"PPO steps/s, {n}", f"PPO, {n}", result("rates"), True) for n in ("1 seed", "8 seeds", "64 seeds")),
    *(Line(f"PQN steps/s, {n}", f"PQN, {n}", result("rates"), True) for n in ("1 seed", "4 seeds")),
    *(
        Line(f"{agent} updates/s, {n}", f"{agent}, {n}", result("rates"), True)
        for agent in ("DQN", "SAC", "TD3", "REDQ", "CrossQ")
        for n in ("1 seed", "4 seeds")
    ),
    *(Line(f"PPO peak memory, {n}, MB", f"PPO, {n}", peak) for n in ("1 seed", "8 seeds", "64 seeds")),
    Line("DQN peak memory, 1 seed, MB", "DQN, 1 seed", peak),
    Line("SAC peak memory, 1 seed, MB", "SAC, 1 seed", peak),
)
"""What a user waits for."""

CPU_LINES = (
    Line("process start to a trained PPO, cold, processor s", "newcomer", cpu),
    Line("the same, compile cache warm, processor s", "newcomer, warm cache", cpu),
    *(
        Line(f"{name} steps per processor s", f"{name}, one thread", result("cpu_rates"), True)
        for name in ("PPO", "PQN")
    ),
    *(
        Line(f"{name} updates per processor s", f"{name}, one thread", result("cpu_rates"), True)
        for name in ("DQN", "SAC", "TD3", "REDQ", "CrossQ")
    ),
)
"""The same work in processor time. Rates are those of one seed with a pool of one thread: a second one spends its time
waiting for work."""


def table(lines: Sequence[Line], tries: Sequence[Try], libraries: Sequence[str]) -> list[list[str]]:
    """Cells of a table, a header first: the median over tries with the best, and Ajax beside the best peer.

    Lines that nothing was measured for are left out.
    """
    rows = [["", *libraries, "Ajax : best peer"]]
    for line in lines:
        values = {name: _values(line, tries, name) for name in libraries}
        if any(values.values()):
            rows.append([line.title, *(_cell(v, line) for v in values.values()), _ratio(values, line)])
    return rows


def _values(line: Line, tries: Sequence[Try], library: str) -> list[float]:
    values = [line.value(t) for t in tries if t.row == line.row and t.library == library and not t.error]
    return [value for value in values if value is not None]


def _cell(values: list[float], line: Line) -> str:
    if not values:
        return "-"
    best = max(values) if line.more_is_better else min(values)
    return f"{_number(median(values))} ({_number(best)})" if len(values) > 1 else _number(values[0])


def _ratio(values: dict[str, list[float]], line: Line) -> str:
    """The median over tries of our number divided by the best peer's in the same try."""
    peers = [v for name, v in values.items() if name not in (OURS, LIMIT) and v]
    if not peers or not values.get(OURS):
        return "-"
    best = max if line.more_is_better else min
    pairs = zip(values[OURS], zip(*peers, strict=False), strict=False)
    return f"{median(ours / best(theirs) for ours, theirs in pairs):.2f}"


def _number(x: float) -> str:
    return f"{x:,.0f}" if abs(x) >= 100 else f"{x:.3g}"


def shares(tries: Sequence[Try]) -> list[str]:
    """What share of Ajax's step the matrix products are, one sentence an agent."""
    sentences = []
    for agent in ("PPO", "PQN", "DQN", "SAC", "TD3", "REDQ", "CrossQ"):
        line = Line("", f"{agent}, one thread", result("cpu_rates"))
        ours, limit = (_values(line, tries, name) for name in (OURS, LIMIT))
        if ours and limit:
            sentences.append(f"{agent}: {median(ours) / median(limit):.0%} of the step is its matrix products.")
    return sentences


def markdown(rows: list[list[str]]) -> str:
    """A table in markdown."""
    lines = [" | ".join(row) for row in rows]
    lines.insert(1, " | ".join(["---"] * len(rows[0])))
    return "\n".join(f"| {line} |" for line in lines)


def rich_table(rows: list[list[str]], title: str) -> Any:
    """A table for the terminal."""
    from rich.table import Table

    grid = Table(title=title, title_justify="left")
    for i, name in enumerate(rows[0]):
        grid.add_column(name, justify="left" if i == 0 else "right")
    for row in rows[1:]:
        grid.add_row(*row)
    return grid


def busy(tries: Sequence[Try]) -> str:
    """How busy others kept the machine meanwhile, as a sentence."""
    others = [t.others for t in tries if t.others is not None]
    if not others:
        return "How busy the machine was is not known here."
    return (
        f"Other processes kept {median(others):.2f} cores busy in the median measurement, {max(others):.2f} in the"
        f" worst."
    )
