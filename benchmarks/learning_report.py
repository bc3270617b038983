"""The table and the picture of docs/learning.md, from the results of `benchmarks.learning`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ajax.logging.plots import COLORS
from ajax.logging.statistics import Estimate, bootstrap_interval
from benchmarks.environments import ROOT
from benchmarks.learning_rows import Row

DOCS = ROOT / "docs"
PAGE, PICTURE = DOCS / "learning.md", DOCS / "assets" / "learning.png"
BEGIN, END = "<!-- table: written by make learning -->\n", "<!-- end of the table -->"
HEAD = ("Agent", "Task", "Steps", "Ajax, 8 seeds", "s", "Other library, its seeds", "s", "Published")
OURS, THEIRS, QUOTED, DATA, TEACHER = COLORS[0], COLORS[1], "0.35", COLORS[2], COLORS[3]

Done = tuple[Row, dict[str, Any], dict[str, Any] | None]
"""A row, our result and the other library's; None where there is none."""


def done(results: list[tuple[Row, dict[str, Any] | None, dict[str, Any] | None]]) -> list[Done]:
    """The rows that we have a result of."""
    return [(row, ours, theirs) for row, ours, theirs in results if ours]


def write(results: list[tuple[Row, dict[str, Any] | None, dict[str, Any] | None]]) -> None:
    """Write the page's table and picture, and those of the agents' pages that show one; print the table."""
    rows = done(results)
    text = table(rows)
    print(text)
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + "\n" + text + "\n\n" + END + rest.partition(END)[2])
    picture(rows, PICTURE)
    for agent in sorted({type(row.agent).__name__.lower() for row, _, _ in rows}):
        own = PICTURE.with_suffix("") / f"{agent}.png"
        if f"{PICTURE.stem}/{own.name}" in (DOCS / "agents" / f"{agent}.md").read_text():
            own.parent.mkdir(exist_ok=True)
            picture([done for done in rows if type(done[0].agent).__name__.lower() == agent], own)


def table(rows: list[Done]) -> str:
    """The table in markdown: final returns, and processor seconds of one seed, compiling and evaluations included."""
    lines = [HEAD, ("---",) * len(HEAD)]
    for row, ours, theirs in rows:
        peer = f"{row.peer.library} ({len(theirs['final'])}): {estimate(theirs)}" if row.peer and theirs else ""
        quoted = ""
        if row.published:
            quoted = f"{row.published.value:g}" + (
                f" after {steps(row.published.steps)}" if row.published.steps else ""
            )
        if row.teacher is not None:
            teacher = f"{ours['teacher']:.0f}"
            quoted = (
                f"its data {ours['data']:.0f}, who made them {teacher}" if "data" in ours else f"its expert {teacher}"
            )
        agent, _, task = row.name.partition(" ")
        lines.append((agent, task, steps(row.steps), estimate(ours), cost(ours), peer, cost(theirs), quoted))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def estimate(result: dict[str, Any]) -> str:
    """Interquartile mean of the final returns with its interval."""
    e: Estimate = bootstrap_interval(np.array(result["final"]))
    interval = "" if np.isnan(e.low) else f" [{e.low:.0f}, {e.high:.0f}]"
    return f"{e.value:.0f}{interval}"


def cost(result: dict[str, Any] | None) -> str:
    """Processor seconds of a seed."""
    return f"{result['seconds'] / len(result['final']):.0f}" if result else ""


def steps(n: int) -> str:
    """100,000 as 100k."""
    return f"{n // 1000}k" if n < 1_000_000 else f"{n / 1e6:g}M"


def picture(rows: list[Done], path: Path) -> None:
    """Learning curves, a panel a row."""
    from matplotlib.figure import Figure

    columns = min(4, len(rows))
    height = -(-len(rows) // columns)
    figure = Figure(figsize=(max(6, 3 * columns), 2.5 * height + 0.6), dpi=110, layout="constrained")
    panels = np.atleast_1d(figure.subplots(height, columns, squeeze=False)).ravel()
    for axes, (row, ours, theirs) in zip(panels, rows, strict=False):
        _curve(axes, ours, OURS, "Ajax, 8 seeds")
        if theirs:
            _curve(axes, theirs, THEIRS, "the other library, 2 seeds")
        for value, color, style, label in (
            (row.published.value if row.published else None, QUOTED, (0, (4, 3)), "published by RL Zoo"),
            (ours.get("data"), DATA, (0, (1, 2)), "mean of the dataset"),
            (ours.get("teacher"), TEACHER, (0, (1, 1)), "the teacher"),
        ):
            if value is not None:
                axes.axhline(value, color=color, linewidth=1.2, linestyle=style, label=label)
        _dress(axes, row)
    for axes in panels[len(rows) :]:
        axes.set_visible(False)
    drawn = {line.get_label(): line for axes in panels for line in axes.get_lines()}  # only what there is
    figure.legend(
        handles=list(drawn.values()), loc="outside upper center", ncols=max(2, columns), frameon=False, fontsize=10
    )
    figure.supxlabel("environment steps (offline: updates)", fontsize=10)
    figure.supylabel("return", fontsize=10)
    figure.savefig(path, metadata={"Software": None})


def _curve(axes: Any, result: dict[str, Any], color: str, label: str) -> None:
    returns = np.array(result["returns"], float)
    estimates = [bootstrap_interval(column[np.isfinite(column)]) for column in returns.T]
    value, low, high = (np.array([getattr(e, name) for e in estimates]) for name in ("value", "low", "high"))
    axes.plot(result["steps"], value, color=color, linewidth=1.8, label=label)
    axes.fill_between(result["steps"], low, high, color=color, alpha=0.2, linewidth=0)


def _dress(axes: Any, row: Row) -> None:
    from matplotlib.ticker import EngFormatter, MaxNLocator

    axes.set_title(row.name, loc="left", fontsize=10, fontweight="bold")
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8, color="0.6")
    axes.margins(x=0.02)
