"""`python -m benchmarks`: measure Ajax beside other libraries, print tables, keep every try."""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

from rich.console import Console

from benchmarks import machine, report
from benchmarks.environments import LIBRARIES, ROOT, install, versions
from benchmarks.runner import Row, Try, run

AGENTS = ("PQN", "DQN", "SAC", "TD3", "REDQ", "CrossQ")
ROWS = (
    Row("import", "import"),
    Row("newcomer", "newcomer"),
    Row("newcomer, warm cache", "newcomer", cache=True),
    *(Row(f"PPO, {n} seed{'s' * (n > 1)}", "ppo", n) for n in (1, 8, 64)),
    *(
        Row(f"{name}, {n} seed{'s' * (n > 1)}", name.lower(), n)
        for name in AGENTS
        for n in (1, 4)
    ),
    *(Row(f"{name}, one thread", name.lower(), one_thread=True) for name in ("PPO", *AGENTS)),
)  # fmt: skip
QUICK = ("import", "newcomer", "PPO, 1 seed", "PPO, 8 seeds", "PPO, one thread")


def main() -> None:
    """Parse the command line, measure, report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--tries", type=int, default=3, help="how often each measurement is taken")
    parser.add_argument("--quick", action="store_true", help=f"one try of these alone: {'; '.join(QUICK)}")
    parser.add_argument("--only", default="", help="measurements, such as ppo,import")
    parser.add_argument("--libraries", default="", help="libraries, such as Ajax,rejax")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    parser.add_argument("--show", type=Path, help="print the tables of an earlier results file, and measure nothing")
    args = parser.parse_args()
    if args.show:
        data = json.loads(args.show.read_text())
        return show([Try(**t) for t in data["tries"]])

    wanted = [name.strip().lower() for name in args.only.split(",") if name.strip()]
    allowed = [row for row in ROWS if not args.quick or row.name in QUICK]
    rows = [row for row in allowed if not wanted or row.measurement in wanted]
    if not rows:
        known = ", ".join(dict.fromkeys(row.measurement for row in allowed))
        parser.error(f"--only {args.only}: no such measurement{' with --quick' * args.quick}. Measurements: {known}.")
    names = [name.strip() for name in args.libraries.split(",") if name.strip()]
    measured = [library for library in LIBRARIES if library.measurements != ()]
    chosen = [library for library in measured if not names or library.name in names]
    if not chosen:
        known = ", ".join(library.name for library in measured)
        parser.error(f"--libraries {args.libraries}: none of these is measured. Libraries: {known}.")
    pythons = {library: python for library in chosen if (python := install(library))}

    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / f"{time.strftime('%Y%m%d-%H%M%S')}.json"
    about = machine.describe() | {"versions": {library.name: versions(pythons[library]) for library in pythons}}
    tries: list[Try] = []
    for done in run(rows, pythons, tries=1 if args.quick else args.tries):
        tries.append(done)
        print(describe(done), flush=True)
        path.write_text(json.dumps({"machine": about, "tries": [dataclasses.asdict(t) for t in tries]}, indent=1))
    show(tries)
    print(f"Every try: {path}")


def describe(t: Try) -> str:
    """One try as a line."""
    numbers = {k: round(report.result(k)(t) or 0.0, 3) for k in t.result}
    others = "" if t.others is None else f", others {t.others:.1f} cores"
    memory = "" if t.peak_mb is None else f", {t.peak_mb:5.0f} MB"
    text = f"{t.row:22s} {t.library:8s} {t.wall:6.1f} s, {t.cpu:6.1f} processor s{memory}{others}"
    return f"{text}: {t.error.splitlines()[-1] if t.error else numbers}"


def show(tries: list[Try]) -> None:
    """Print the tables, for the terminal and in markdown."""
    libraries = list(dict.fromkeys(t.library for t in tries))
    console = Console()
    for title, lines in (
        ("What a user waits for", report.LINES),
        ("In processor time, which a busy machine disturbs less", report.CPU_LINES),
    ):
        cells = report.table(lines, tries, libraries)
        if len(cells) > 1:
            console.print(report.rich_table(cells, f"{title}: median of the tries (best)"))
            print(report.markdown(cells))
    for sentence in [report.busy(tries), *report.shares(tries)]:
        print(sentence)
    for t in tries:
        if t.error:
            print(f"{t.row} of {t.library} failed: {t.error}")


if __name__ == "__main__":
    main()
