"""Learning curves with Matplotlib, without its global state: figures are made and returned, no window opens."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ajax.logging.files import replacing
from ajax.logging.statistics import mean_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colors, told apart with any color vision; black is left for text and the threshold.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6BB1", "#7F7F7F")

Curve = tuple[np.ndarray, np.ndarray]
"""Environment steps (evaluations,), and returns (seeds, evaluations); nan where a seed failed."""


def learning_curve(
    curves: dict[str, Curve],
    path: str | Path | None = None,
    *,
    title: str = "",
    threshold: float | None = None,
) -> Figure:
    """Draw the mean return over seeds with its 95 % bootstrap interval, and every seed faintly.

    Args:
        curves: label -> (steps, returns).
        path: where to save, in the format of its ending (.png, .svg, .pdf); None saves nothing.
        title: above the axes.
        threshold: return to mark with a dashed line, such as the one at which the task counts as solved.

    Returns:
        The figure.

    Raises:
        ValueError: steps and returns of a curve don't fit.
        OSError: the file can't be written.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.2, 4.2), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    for i, (label, (steps, returns)) in enumerate(curves.items()):
        _draw(axes, label, np.asarray(steps, float), np.atleast_2d(np.asarray(returns, float)), COLORS[i % len(COLORS)])
    if threshold is not None:
        axes.axhline(threshold, color="0.25", linewidth=1, linestyle=(0, (4, 3)), label=f"threshold {threshold:g}")
    _dress(axes, title)
    if path is not None:
        _save(figure, Path(path))
    return figure


def _draw(axes: Axes, label: str, steps: np.ndarray, returns: np.ndarray, color: str) -> None:
    if returns.shape[1:] != steps.shape:
        raise ValueError(f"curve {label!r}: returns are {returns.shape}, but steps {steps.shape}.")
    n_seeds = len(returns)
    n_failed = int((~np.isfinite(returns[:, -1:])).sum())
    mean, low, high = mean_band(returns)
    # A single evaluation has no line: its points and interval are drawn as marks.
    marker = "o" if len(steps) == 1 else None
    if n_seeds > 1:
        axes.plot(
            steps, returns.T, color=color, alpha=min(0.25, 3 / n_seeds), linewidth=0.8, marker=marker, markersize=3
        )
        if marker:
            axes.vlines(steps, low, high, color=color, alpha=0.5, linewidth=3)
        axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
    seeds = f"{n_seeds} seed{'s' if n_seeds > 1 else ''}" + (f", {n_failed} failed" if n_failed else "")
    axes.plot(
        steps,
        mean,
        color=color,
        linewidth=2,
        marker=marker,
        markersize=7,
        label=f"{label} ({seeds})" if label else seeds,
    )


def _dress(axes: Axes, title: str) -> None:
    from matplotlib.ticker import EngFormatter

    axes.set_xlabel("environment steps")
    axes.set_ylabel("return")
    axes.set_title(title, loc="left", fontweight="bold", fontsize=11)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.margins(x=0.02)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("0.6")
    axes.tick_params(color="0.6", labelsize=9)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=True, framealpha=0.85, edgecolor="none", fontsize=9)


def _save(figure: Figure, path: Path) -> None:
    from matplotlib import rc_context

    kind = path.suffix.removeprefix(".") or "png"
    # The dates, versions and random names that Matplotlib would add make equal curves give unequal files.
    metadata = {"png": {"Software": None}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "ajax"}), replacing(path) as file:
        figure.savefig(file, format=kind, metadata=metadata)
