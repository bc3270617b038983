"""A query's picture: the seeds as dots on a number line, the right answer's band, the wrong answers as labelled lines.

Inline SVG, drawn by hand: a report must open anywhere, without a script or a plotting library.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence

import numpy as np

from ajax.probing.query import Query

WIDTH, PAD, RADIUS = 720, 28, 4.5  # pixels
LABEL, GLYPH, BOLD = 15, 6.1, 6.9  # height of a label's row, width of a character (a bold one), in pixels
SHOWN = 7  # wrong answers drawn; the others are listed in words

STYLE = """
.probe text { font: 12px ui-sans-serif, system-ui, sans-serif; fill: var(--muted);
  paint-order: stroke; stroke: var(--card); stroke-width: 5px; stroke-linejoin: round }
.probe text.tick { font-size: 11px } .probe .axis { stroke: var(--line) }
.probe .band { fill: var(--right); opacity: .16 } .probe .right { stroke: var(--right); stroke-width: 2 }
.probe text.right-label { fill: var(--right); font-weight: 600 }
.probe .wrong { stroke: var(--muted); stroke-dasharray: 3 3 }
.probe .named { stroke: var(--wrong); stroke-width: 1.5 }
.probe text.named-label { fill: var(--wrong); font-weight: 600 }
.probe .dot { stroke: var(--card); stroke-width: 1 }
.probe .hit { fill: var(--hit) } .probe .miss { fill: var(--wrong) }
"""


def picture(
    query: Query, tolerance: float, seeds: Sequence[int], readings: np.ndarray, named: Sequence[str] = ()
) -> str:
    """Return the SVG of one query.

    Args:
        query: what was read.
        tolerance: how far from right a reading may lie (the least margin, for a margin).
        seeds: the seeds, for the dots' titles.
        readings: (seeds,) what they read.
        named: the mistakes that the diagnosis names: drawn in the failures' color.
    """
    finite = readings[np.isfinite(readings)]
    lines = _nearest(query, finite, named)
    low, high = _range(query, tolerance, finite, [value for _, value in lines])

    def x(value: float) -> float:
        return PAD + (value - low) / (high - low) * (WIDTH - 2 * PAD)

    dots = _swarm([x(value) for value in finite])
    top = 22.0  # room for the right answer's label
    base = top + 2 * RADIUS * max((level for level in dots), default=0) + 26  # the axis
    parts = [_band(query, tolerance, x, top, base)]
    rows: list[list[tuple[float, float]]] = []
    drawn = sorted(lines, key=lambda item: item[0] not in named)  # those named take the first rows of labels
    marks = [_wrong(name, value, x(value), base + 24, top, rows, name in named) for name, value in drawn]
    parts += [line for line, _ in reversed(marks)]
    parts.append(f'<line class="axis" x1="{PAD}" x2="{WIDTH - PAD}" y1="{base:.1f}" y2="{base:.1f}"/>')
    for value in _ticks(low, high):
        parts.append(f'<text class="tick" text-anchor="middle" x="{x(value):.1f}" y="{base + 14:.1f}">{value:g}</text>')
    parts += [label for _, label in marks]  # over every line
    within = query.within(readings, tolerance)
    shown = iter(zip(finite, dots, strict=True))
    lost = 0
    for seed, reading, right in zip(seeds, readings, within, strict=True):
        if not math.isfinite(reading):
            lost += 1
            continue
        value, level = next(shown)
        y = base - RADIUS - 2 - 2 * RADIUS * level
        kind = "hit" if right else "miss"
        title = f"<title>seed {seed}: {value:.4g}</title>"
        parts.append(f'<circle class="dot {kind}" cx="{x(value):.1f}" cy="{y:.1f}" r="{RADIUS}">{title}</circle>')
    if lost:
        label = f"{lost} not finite"
        parts.append(f'<text class="named-label" text-anchor="end" x="{WIDTH - 2}" y="{base - 8:.1f}">{label}</text>')
    height = base + 24 + LABEL * len(rows) + 4
    name = html.escape(f"{query.name}: {len(readings)} seeds, right answer {query.right:.4g}")
    return (
        f'<svg class="probe" viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{name}">'
        + "".join(parts)
        + "</svg>"
    )


def further(query: Query, readings: np.ndarray, named: Sequence[str] = ()) -> str:
    """Return the wrong answers that `picture` leaves out, in words; empty if it draws them all."""
    shown = {name for name, _ in _nearest(query, readings[np.isfinite(readings)], named)}
    rest = sorted((item for item in query.wrong.items() if item[0] not in shown), key=lambda item: item[1])
    return "; ".join(f"{name} ({'diverges' if math.isinf(value) else f'{value:.2f}'})" for name, value in rest)


def _nearest(query: Query, finite: np.ndarray, named: Sequence[str]) -> list[tuple[str, float]]:
    """Return the wrong answers to draw, by value: those named, then the nearest to the right answer or the readings."""
    near = [query.right, *([float(np.median(finite))] if len(finite) else [])]

    def rank(item: tuple[str, float]) -> tuple[bool, float]:
        return item[0] not in named, min(abs(item[1] - value) for value in near)

    drawable = sorted((item for item in query.wrong.items() if math.isfinite(item[1])), key=rank)
    return sorted(drawable[:SHOWN], key=lambda item: item[1])


def _range(query: Query, tolerance: float, finite: np.ndarray, wrong: list[float]) -> tuple[float, float]:
    edge = query.right - tolerance, query.right + tolerance
    if query.kind == "margin":
        edge = 0.0, np.sign(query.right) * 2 * tolerance
    points = [*edge, *finite.tolist(), *wrong]
    low, high = min(points), max(points)
    room = 0.04 * (high - low) or 1.0
    return low - room, high + room


def _band(query: Query, tolerance: float, x, top: float, base: float) -> str:
    """Return the right answer: a band, a line through it and its label."""
    if query.kind == "margin":
        bound = np.sign(query.right) * tolerance
        left, right = (x(bound), WIDTH - PAD) if query.right > 0 else (PAD, x(bound))
        at, label = x(bound), f"right {'above' if query.right > 0 else 'below'} {bound:.2f}"
    else:
        left, right = x(query.right - tolerance), x(query.right + tolerance)
        at = x(query.right)
        label = f"right {query.right:g}" if query.kind == "exact" else f"right {query.right:.2f} ± {tolerance:.3g}"
    anchor = "start" if at < 90 else "end" if at > WIDTH - 90 else "middle"
    return (
        f'<rect class="band" x="{left:.1f}" y="{top}" width="{max(right - left, 1):.1f}" height="{base - top:.1f}"/>'
        f'<line class="right" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{base:.1f}"/>'
        f'<text class="right-label" text-anchor="{anchor}" x="{at:.1f}" y="{top - 7}">{label}</text>'
    )


def _wrong(name: str, value: float, at: float, below: float, top: float, rows: list, named: bool) -> tuple[str, str]:
    """Return a wrong answer's line and its label; the label takes the first of the `rows` under the axis with room."""
    text = f"{name} ({value:.2f})" if value % 1 else f"{name} ({value:g})"
    wide = (BOLD if named else GLYPH) * len(text) + 12
    rightwards = at + wide < WIDTH
    span = (at, at + wide) if rightwards else (at - wide, at)
    row = next((i for i, taken in enumerate(rows) if all(span[1] < a or span[0] > b for a, b in taken)), len(rows))
    if row == len(rows):
        rows.append([])
    rows[row].append(span)
    y = below + LABEL * row + 10
    anchor, offset = ("start", 5) if rightwards else ("end", -5)
    kind = "named" if named else "wrong"
    line = f'<line class="{kind}" x1="{at:.1f}" x2="{at:.1f}" y1="{top}" y2="{y:.1f}"/>'
    place = f'text-anchor="{anchor}" x="{at + offset:.1f}" y="{y:.1f}"'
    return line, f'<text class="{kind}-label" {place}>{html.escape(text)}</text>'


def _swarm(places: Sequence[float]) -> list[int]:
    """Return a level for each dot so that no two overlap, low levels first."""
    levels = [0] * len(places)
    placed: list[tuple[float, int]] = []
    for i in np.argsort(places, kind="stable"):
        taken = {level for at, level in placed if abs(at - places[i]) < 2 * RADIUS}
        levels[i] = next(level for level in range(len(places)) if level not in taken)
        placed.append((places[i], levels[i]))
    return levels


def _ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers inside the range."""
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough)
    return [round(i * step, 10) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
