"""Reports of probes: a table in the terminal, JUnit XML for continuous integration, and one self-contained page."""

from __future__ import annotations

import collections
import html as escape
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ajax.probing.picture import STYLE, further, picture
from ajax.probing.suite import Outcome, Status

if TYPE_CHECKING:
    from rich.table import Table

COLORS: dict[Status, str] = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold magenta",
    "known defect": "yellow",
    "defect gone": "bold yellow",
}
WORST_FIRST: tuple[Status, ...] = ("failed", "error", "defect gone", "known defect", "passed")


def summary(outcomes: Iterable[Outcome]) -> str:
    """Return one line: `3 passed, 1 failed; 41.0 s of compiling and training`, the cases' seconds added up."""
    outcomes = list(outcomes)
    counts = collections.Counter(outcome.status for outcome in outcomes)
    words = ", ".join(f"{counts[status]} {status}" for status in reversed(WORST_FIRST) if counts[status])
    return f"{words or 'no cases'}; {sum(outcome.seconds for outcome in outcomes):.1f} s of compiling and training"


def terminal(outcomes: Sequence[Outcome], title: str) -> Table:
    """Return a rich table: a row per case, and under a case that is not good, its text."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", caption=summary(outcomes), caption_justify="left", expand=True)
    table.add_column("case", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    table.add_column("reading", ratio=1)
    for outcome in outcomes:
        verdict = outcome.verdict
        seeds = "" if verdict is None else f"{verdict.right.sum()}/{len(verdict.seeds)}"
        text = outcome.case.heading if outcome.status == "passed" else outcome.text
        status = Text(outcome.status, COLORS[outcome.status])
        table.add_row(outcome.case.id, status, seeds, f"{outcome.seconds:.1f}", Text(text))
    return table


def junit(outcomes: Sequence[Outcome], path: str | Path, suite: str) -> None:
    """Write JUnit XML: failures carry the verdict's text, known defects are skipped tests."""
    counts = collections.Counter(outcome.status for outcome in outcomes)
    root = ET.Element(
        "testsuite",
        name=suite,
        tests=str(len(outcomes)),
        failures=str(counts["failed"] + counts["defect gone"]),
        errors=str(counts["error"]),
        skipped=str(counts["known defect"]),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
    )
    for outcome in outcomes:
        case = ET.SubElement(root, "testcase", classname=suite, name=outcome.case.id, time=f"{outcome.seconds:.3f}")
        if outcome.status == "error":
            ET.SubElement(case, "error", message=outcome.error)
        elif outcome.status == "known defect":
            ET.SubElement(case, "skipped", message=f"LIVE defect: {outcome.case.defect}")
        elif not outcome.good:
            ET.SubElement(case, "failure", message=outcome.text.splitlines()[0]).text = outcome.text
    ET.indent(root)
    ET.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def page(outcomes: Sequence[Outcome], path: str | Path, title: str) -> None:
    """Write one self-contained HTML page: what failed first, with a picture of every query."""
    counts = collections.Counter(outcome.status for outcome in outcomes)
    tiles = "".join(
        f'<div class="tile {status.replace(" ", "-")}"><b>{counts[status]}</b>{status}</div>'
        for status in reversed(WORST_FIRST)
        if counts[status] or status in ("passed", "failed")
    )
    ordered = sorted(outcomes, key=lambda outcome: WORST_FIRST.index(outcome.status))
    cards = "\n".join(_card(outcome) for outcome in ordered)
    Path(path).write_text(
        _PAGE.format(
            title=escape.escape(title),
            style=_STYLE + STYLE,
            tiles=tiles,
            seconds=f"{sum(outcome.seconds for outcome in outcomes):.1f}",
            cards=cards,
        ),
        encoding="utf-8",
    )


def _card(outcome: Outcome) -> str:
    case, verdict = outcome.case, outcome.verdict
    status = outcome.status.replace(" ", "-")
    opened = "" if outcome.status == "passed" else " open"
    facts = [f"{case.budget:,} environment steps", f"{outcome.seconds:.1f} s", *([case.note] if case.note else [])]
    if verdict is not None:
        facts.insert(0, f"{verdict.right.sum()} of {len(verdict.seeds)} seeds right")
    if case.defect:
        facts.append(f"known defect: {case.defect}")
    text = "" if outcome.status == "passed" else f'<p class="text">{escape.escape(outcome.text)}</p>'
    return (
        f'<details class="card {status}"{opened}><summary><span class="badge">{outcome.status}</span>'
        f"<b>{escape.escape(case.heading)}</b><code>{escape.escape(case.id)}</code></summary>"
        f'{text}<p class="facts">{escape.escape(" · ".join(facts))}</p>{_pictures(outcome)}</details>'
    )


def _pictures(outcome: Outcome) -> str:
    verdict = outcome.verdict
    if verdict is None:
        return ""
    found = verdict.diagnosis
    named = found.mistakes if found is not None and found.near else ()
    shown: dict[bool, list[str]] = {True: [], False: []}  # by whether some seed is wrong
    for query, tolerance, readings in zip(
        outcome.case.queries, outcome.case.tolerances, verdict.readings.T, strict=True
    ):
        wrong = int((~query.within(readings, tolerance)).sum())
        drawn, rest = picture(query, tolerance, verdict.seeds, readings, named), further(query, readings, named)
        count = f' <em class="count">{wrong} of {len(readings)} wrong</em>' if wrong else ""
        note = f'<p class="rest">not drawn: {escape.escape(rest)}</p>' if rest else ""
        name = escape.escape(query.name)
        shown[wrong > 0].append(f'<h3>{name}{count}</h3><div class="scroll">{drawn}</div>{note}')
    right = "".join(shown[False])
    if shown[True] and right:
        word = "reading" if len(shown[False]) == 1 else "readings"
        right = f'<details class="others"><summary>{len(shown[False])} {word} right</summary>{right}</details>'
    return "".join(shown[True]) + right


_STYLE = """
:root { --ink: #1c2230; --muted: #7b8494; --line: #c6ccd6; --back: #f4f6f9; --card: #fff; --right: #16804a;
  --wrong: #cf2146; --hit: #2563c9; --warn: #b7791f; color-scheme: light dark }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --muted: #949dad; --line: #465061; --back: #14181f;
  --card: #1d232d; --right: #4cc38a; --wrong: #ff6b86; --hit: #6ea3ff; --warn: #e0b252 } }
* { box-sizing: border-box }
body { margin: 0; background: var(--back); color: var(--ink); font: 15px/1.5 ui-sans-serif, system-ui, sans-serif }
main { max-width: 820px; margin: 0 auto; padding: 32px 16px 64px }
h1 { font-size: 24px; margin: 0 0 16px } h3 { font-size: 14px; margin: 18px 0 2px }
.tiles { display: flex; gap: 10px; flex-wrap: wrap; margin-bottom: 8px }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 8px 18px;
  color: var(--muted) }
.tile b { display: block; font-size: 26px; line-height: 1.2; color: var(--ink) }
.tile.passed b { color: var(--right) } .tile.failed b, .tile.error b { color: var(--wrong) }
.tile.known-defect b, .tile.defect-gone b { color: var(--warn) }
.legend, .facts, .rest { color: var(--muted); font-size: 13px; margin: 6px 0 }
.legend i { display: inline-block; width: 10px; height: 10px; border-radius: 50%; margin: 0 5px 0 14px }
.card { background: var(--card); border: 1px solid var(--line); border-left: 5px solid var(--right);
  border-radius: 10px; padding: 12px 18px; margin: 12px 0 }
.card.failed, .card.error { border-left-color: var(--wrong) }
.card.known-defect, .card.defect-gone { border-left-color: var(--warn) }
summary { cursor: pointer; list-style: none; display: flex; gap: 10px; align-items: baseline }
summary::-webkit-details-marker { display: none }
summary b { flex: 1 } code { color: var(--muted); font-size: 12px }
.badge { font-size: 12px; font-weight: 600; padding: 1px 9px; border-radius: 99px; color: var(--card);
  background: var(--right); white-space: nowrap }
.failed .badge, .error .badge { background: var(--wrong) }
.known-defect .badge, .defect-gone .badge { background: var(--warn) }
.count { color: var(--wrong); font-style: normal; font-weight: 400; margin-left: 8px }
.others > summary { color: var(--muted); font-size: 13px; margin-top: 14px }
.others > summary::before { content: "\\25B8" } .others[open] > summary::before { content: "\\25BE" }
.text { white-space: pre-wrap; margin: 12px 0 6px } .scroll { overflow-x: auto }
svg { width: 100%; min-width: 560px; height: auto; display: block }
"""

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>{style}</style></head><body><main>
<h1>{title}</h1>
<div class="tiles">{tiles}</div>
<p class="legend">{seconds} s of training. A dot is a seed's reading:
<i style="background: var(--hit)"></i>right<i style="background: var(--wrong)"></i>wrong.
The green band is the tolerance, never more than half way to a wrong answer; dashed lines are the answers of named
mistakes.</p>
{cards}
</main></body></html>
"""
