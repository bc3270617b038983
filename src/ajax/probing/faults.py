"""Planted faults: a probe that has never caught a bug has not shown that it can.

A fault is one edit of the source. It is planted in a scratch copy of the repository, never in the checkout; the tests
that should notice run there, with the compile cache off; a fault that none of them notices has survived.
"""

from __future__ import annotations

import concurrent.futures
import csv
import dataclasses
import hashlib
import json
import os
import queue
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Literal

from ajax.core.errors import ConfigError, unknown_name
from ajax.probing.copies import PACKAGE, SECONDS, Copy

MEMORY = 3.0  # GiB that one run of probes is taken to need

Status = Literal["caught", "survived", "broken", "timed out"]


@dataclasses.dataclass(frozen=True)
class Fault:
    """One edit, and the tests that notice it.

    Attributes:
        id: unique over all catalogues.
        path: the file, under src/ajax.
        old: text that occurs exactly once in it.
        new: what replaces it.
        catches: the pytest nodes that fail with the fault planted, relative to the folder of tests.
        mistake: the named mistake that a probe should report; empty where none fits.
    """

    id: str
    path: str
    old: str
    new: str
    catches: tuple[str, ...]
    mistake: str = ""

    def applied(self, source: str) -> str:
        """Return the file's text with the fault planted.

        Raises:
            RuntimeError: `old` doesn't occur exactly once, or the edit changes nothing.
        """
        count = source.count(self.old)
        if count != 1 or self.old == self.new:
            why = f"its old text occurs {count} times" if count != 1 else "it changes nothing"
            raise RuntimeError(f"fault {self.id!r} can't be planted in {self.path}: {why}; update its line")
        return source.replace(self.old, self.new)

    def digest(self, root: Path, tests: str) -> str:
        """Return a hash of the fault, the file that it changes and the tests' own: what a result stays valid for."""
        text = json.dumps(dataclasses.asdict(self)) + (root / PACKAGE / self.path).read_text()
        for place in sorted({root / tests / node.partition("::")[0] for node in self.catches}):
            text += "".join(file.read_text() for file in sorted(place.rglob("*.py")) or [place])
        return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclasses.dataclass(frozen=True)
class Result:
    """What planting a fault came to.

    Attributes:
        id: the fault's.
        status: whether a listed node failed; "broken" if all that did raised a RuntimeError: a precondition of a test
            doesn't hold, so that it judged nothing.
        nodes: the nodes that failed, separated by blanks.
        silent: the listed nodes that passed all the same.
        named: the mistakes that the failing probes' messages named, separated by " | ".
        right: "yes" if the fault's own mistake is among them, "no" if not, empty if it has none.
        seconds: wall time of the tests.
        digest: see `Fault.digest`.
    """

    id: str
    status: Status
    nodes: str
    silent: str
    named: str
    right: str
    seconds: float
    digest: str


def load_catalogue(folder: str | Path) -> dict[str, Fault]:
    """Return the faults of every `*.jsonl` in a folder, by id.

    Raises:
        ConfigError: two faults have one id.
    """
    faults: dict[str, Fault] = {}
    for file in sorted(Path(folder).glob("*.jsonl")):
        for line in filter(str.strip, file.read_text().splitlines()):
            fields = json.loads(line)
            fault = Fault(**{**fields, "catches": tuple(fields["catches"])})
            if fault.id in faults:
                raise ConfigError(
                    f"{file.name}: there is another fault {fault.id!r}; ids are unique over all catalogues."
                )
            faults[fault.id] = fault
    return faults


def plant(fault: Fault, place: Copy, tests: str, seconds: float = SECONDS, first: bool = False) -> Result:
    """Plant a fault in a copy, run its nodes, take it out again, and return what came of it.

    Args:
        fault: the fault.
        place: the copy.
        tests: folder that the nodes are relative to, inside the copy.
        seconds: after which the run is stopped.
        first: whether to stop at the first node that fails.

    Raises:
        RuntimeError: the fault can't be planted, or pytest finds none of its nodes.
    """
    source, digest = place.read(fault.path), fault.digest(place.folder, tests)
    place.write(fault.path, fault.applied(source))
    began = time.perf_counter()
    try:
        outcomes = place.run([f"{tests}/{node}" for node in fault.catches], seconds, first)
    finally:
        place.write(fault.path, source)
    spent = round(time.perf_counter() - began, 1)
    if outcomes is None:
        return Result(fault.id, "timed out", "", "", "", "", spent, digest)
    failed = [node for node, (bad, _) in outcomes.items() if bad]
    broken = [node for node in failed if outcomes[node][1].startswith("RuntimeError")]
    silent = [node for node, (bad, _) in outcomes.items() if not bad]
    named = list(dict.fromkeys(name for _, message in outcomes.values() for name in _named(message)))
    right = "" if not fault.mistake else "yes" if fault.mistake in named else "no"
    status: Status = "survived" if not failed else "broken" if failed == broken else "caught"
    return Result(fault.id, status, " ".join(failed), " ".join(silent), " | ".join(named), right, spent, digest)


def plant_all(
    faults: Iterable[Fault],
    root: Path,
    scratch: Path,
    tests: str,
    results: Path,
    *,
    workers: int | None = None,
    cache: Path | None = None,
    first: bool = False,
    again: bool = True,
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Plant faults side by side, each in a copy of its own, and return their results in order.

    Args:
        faults: what to plant.
        root: the repository.
        scratch: folder of the copies.
        tests: folder that nodes are relative to.
        results: a CSV file; a fault whose result it holds, for this source and these tests, is not run again.
        workers: how many at once; by default as many as the CPUs and three quarters of the free memory allow.
        cache: see `Copy`.
        first: whether each stops at the first node that fails.
        again: whether what was not caught is run again all the same: probes change in other files than the tests'.
        done: called with each new result.
    """
    faults = list(faults)
    known = {result.id: result for result in read_results(results) if result.status == "caught" or not again}
    known = {f.id: known[f.id] for f in faults if f.id in known and known[f.id].digest == f.digest(root, tests)}
    waiting = [fault for fault in faults if fault.id not in known]
    workers = min(workers or _workers(), len(waiting))
    copies = [Copy(root, scratch / f"copy-{i}", cache) for i in range(workers)]
    free: queue.Queue[Copy] = queue.Queue()
    for one_copy in copies:
        one_copy.check_import()
        free.put(one_copy)

    def one(fault: Fault) -> Result:
        place = free.get()
        try:
            return plant(fault, place, tests, first=first)
        finally:
            free.put(place)

    pool = concurrent.futures.ThreadPoolExecutor(max(workers, 1))
    try:
        for future in concurrent.futures.as_completed([pool.submit(one, fault) for fault in waiting]):
            result = future.result()
            known[result.id] = result
            _append(results, result)
            done(result)
    finally:
        pool.shutdown(cancel_futures=True)
        for one_copy in copies:
            one_copy.close()
    return [known[fault.id] for fault in faults]


def read_results(path: Path) -> list[Result]:
    """Return the results in a CSV file, the last one of each fault; none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        rows = {row["id"]: row for row in csv.DictReader(file)}
    return [Result(**{**row, "seconds": float(row["seconds"])}) for row in rows.values()]  # type: ignore[arg-type]


def report(results: Sequence[Result]) -> str:
    """Return what was caught, how often the right mistake was named, and what survived."""
    caught = [result for result in results if result.status == "caught"]
    judged = [result for result in caught if result.right]
    right = sum(result.right == "yes" for result in judged)
    lines = [f"{len(caught)} of {len(results)} faults caught; {right} of {len(judged)} named rightly"]
    lines += [f"  {result.id}: {result.status}" for result in results if result.status != "caught"]
    lines += [f"  {result.id}: named {result.named or 'nothing'}" for result in judged if result.right == "no"]
    lines += [f"  {result.id}: not noticed by {result.silent}" for result in caught if result.silent]
    return "\n".join(lines)


def table(faults: Iterable[Fault], results: Iterable[Result]) -> str:
    """Return a Markdown table of faults: the mistake, whether and by which probes it was caught, what they named."""
    by_id = {result.id: result for result in results}
    lines = [
        "| Fault | File | Mistake | Outcome | Caught by | Named | Seconds |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for fault in faults:
        result = by_id[fault.id]
        nodes = ", ".join(f"`{node.partition('[')[2].rstrip(']') or node}`" for node in result.nodes.split())
        named = result.named.replace(" | ", "; ")
        cells = (fault.id, fault.path, fault.mistake, result.status, nodes, named, f"{result.seconds:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(
    arguments: Sequence[str], root: Path, catalogue: Path, tests: str, workers: int | None = None
) -> dict[str, Status]:
    """Run `DIR ID...`: plant faults of a catalogue (all without ids), print and return their statuses.

    DIR holds the copies, and the results as `results.csv` and `results.md`.

    Raises:
        UnknownName: the catalogue has no such fault.
    """
    if not arguments:
        raise ConfigError("give a scratch folder, then the ids of faults (all without ids).")
    scratch, ids = Path(arguments[0]).resolve(), arguments[1:]
    known = load_catalogue(catalogue)
    for name in ids:
        if name not in known:
            raise unknown_name("fault", name, known)
    chosen = [known[name] for name in ids or known]
    scratch.mkdir(parents=True, exist_ok=True)

    def show(result: Result) -> None:
        print(result.id, result.status, result.named, flush=True)

    results = plant_all(chosen, root, scratch, tests, scratch / "results.csv", workers=workers, done=show)
    (scratch / "results.md").write_text(table(chosen, results) + "\n")
    print(report(results))
    statuses = {result.id: result.status for result in results}
    print(statuses)
    return statuses


def _named(message: str) -> list[str]:
    """Return the mistakes that a failure's message names."""
    found = re.search(r"closest named mistake: (.*?), \d+ of \d+ agree", message, re.DOTALL)
    return re.findall(r"(?:^|\) or )(.*?) \((?=(?:-?[\d.e+-]+|diverges)\)(?: or |$))", found.group(1)) if found else []


def _append(path: Path, result: Result) -> None:
    fields = [field.name for field in dataclasses.fields(Result)]
    fresh = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if fresh:
            writer.writeheader()
        writer.writerow(dataclasses.asdict(result))


def _workers() -> int:
    """Return how many runs fit in the free memory and on the CPUs, at least one."""
    free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(os.cpu_count() or 1, int(0.75 * free / MEMORY)))
