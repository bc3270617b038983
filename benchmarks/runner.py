"""Runs every measurement in a process of its own, the libraries in turn, and keeps every try."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.environments import ROOT, Library

TIMEOUT = 900.0
"""Seconds after which a measurement is given up."""

CACHES = ("JAX_COMPILATION_CACHE_DIR", "AJAX_COMPILE_CACHE", "AJAX_JAX_COMPILE_CACHE_DIR")
"""Environment variables that say where compiled programs are kept: JAX's, this library's, ajax-rl's."""


@dataclass(frozen=True)
class Row:
    """One line of the comparison.

    Attributes:
        name: what tables call it.
        measurement: what the scripts call it.
        seeds: seeds trained at once.
        cache: whether compiled programs are kept and found again: the process runs twice, the second one counts.
        one_thread: whether XLA gets a pool of one thread, so that processor time is work and never waiting.
    """

    name: str
    measurement: str
    seeds: int = 1
    cache: bool = False
    one_thread: bool = False


@dataclass(frozen=True)
class Try:
    """One measurement by one library.

    Attributes:
        row: name of the row.
        library: name of the library.
        wall: seconds from the process's start to its end.
        cpu: processor seconds that it used.
        peak_mb: its peak memory, None where unknown.
        others: cores that other processes kept busy meanwhile, None where unknown.
        result: what the script printed; empty if it failed.
        error: last lines of what went wrong, or empty.
    """

    row: str
    library: str
    wall: float
    cpu: float
    peak_mb: float | None
    others: float | None
    result: dict[str, Any]
    error: str = ""


def run(rows: Sequence[Row], libraries: dict[Library, Path], tries: int) -> Iterator[Try]:
    """Measure every row `tries` times, the libraries one after another within each: A B C, A B C, ..."""
    for row in rows:
        for _ in range(tries):
            for library, python in libraries.items():
                if library.takes(row.measurement, row.seeds):
                    yield measure(row, library, python)


def measure(row: Row, library: Library, python: Path) -> Try:
    """Take one measurement in a process of its own, with an empty compile cache unless the row says otherwise."""
    with tempfile.TemporaryDirectory() as folder:
        if row.cache:
            _process(row, library, python, folder)
        return _process(row, library, python, folder)


def _process(row: Row, library: Library, python: Path, cache: str) -> Try:
    # the first would make imports three times as long, and the other put this library's `ajax` before ajax-rl's
    unwanted = "PYTHONDONTWRITEBYTECODE", "PYTHONPATH"
    env = {k: v for k, v in os.environ.items() if k not in unwanted}
    if row.one_thread:
        env |= {"NPROC": "1", "OMP_NUM_THREADS": "1"}
    env |= {"JAX_PLATFORMS": "cpu", "PYTHONWARNINGS": "ignore"} | dict.fromkeys(CACHES, cache)
    command = [python, "-m", library.script, row.measurement, str(row.seeds)]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        busy, start = machine.busy_seconds(), time.perf_counter()
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=out, stderr=err)
        status, usage, peak = _wait(process, start + TIMEOUT)
        wall, busy_after = time.perf_counter() - start, machine.busy_seconds()
        cpu = usage.ru_utime + usage.ru_stime
        others = None if busy is None or busy_after is None else max(0.0, (busy_after - busy - cpu) / wall)
        out.seek(0), err.seek(0)
        lines = out.read().strip().splitlines()
        result = json.loads(lines[-1]) if status == 0 else {}
        error = "" if status == 0 else "\n".join(err.read().strip().splitlines()[-5:]) or f"status {status}"
    return Try(row.name, library.name, wall, cpu, peak, others, result, error)


def _wait(process: subprocess.Popen, deadline: float):
    """Wait for a process: its status, what it used and its peak memory in MB. Ends it at the deadline."""
    peak = None
    while True:
        peak = machine.peak_mb(process.pid) or peak
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode, usage, peak
        if time.perf_counter() > deadline:
            process.kill()
            deadline = float("inf")
        time.sleep(0.02)
