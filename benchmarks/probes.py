"""`python -m benchmarks.probes [AGENT...]`: what the probes of an agent cost, cold, case by case."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import Any

import jax

COMPILING = "/jax/core/compile/"  # events of tracing, lowering and compiling
AGENTS = ("DQN", "PPO", "SAC", "TD3")


def main() -> None:
    """Measure each agent in processes with compile caches of their own: case by case, then by `ajax probe`."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.probes", description=__doc__)
    parser.add_argument("agents", nargs="*", default=AGENTS, help="agents of Ajax")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)  # in this process, as JSON lines
    args = parser.parse_args()
    if args.here:
        for row in cases(args.agents[0]):
            print(json.dumps(row), flush=True)
        return
    total = 0.0
    for agent in args.agents:
        rows = []
        for row in map(json.loads, cold("benchmarks.probes", "--here", agent)):
            rows.append(row)
            print(line(row), flush=True)
        sums = {key: sum(row[key] for row in rows) for key in ("wall", "processor", "compiling", "running")}
        print(line({"case": f"{agent}: {len(rows)} cases one by one", "status": "", **sums}))
        began = time.perf_counter()
        for _ in cold("ajax", "probe", agent):
            pass
        wall = time.perf_counter() - began
        total += wall
        print(f"`ajax probe {agent}`: {wall:.0f} s, start included", flush=True)
    print(f"{len(args.agents)} agents: {total:.0f} s on {os.cpu_count()} processors")


def cold(module: str, *args: str) -> Iterator[str]:
    """Yield the lines that `python -m module args...` prints in a fresh process with an empty compile cache."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "AJAX_COMPILE_CACHE": cache, "JAX_PLATFORMS": "cpu"}
        command = [sys.executable, "-m", module, *args]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None  # it is a pipe
            yield from process.stdout


def cases(agent: str) -> Iterator[dict[str, Any]]:
    """Judge every case of an agent and yield what each cost.

    Yields:
        `wall` and `processor` seconds; during `compiling` of the wall's the compiler was at work, during `running`
        it was not.
    """
    from ajax.probing import suite
    from ajax.probing.suites import cases as cases_of

    spans: list[tuple[float, float]] = []

    def note(event: str, seconds: float, **_: Any) -> None:
        if event.startswith(COMPILING):
            now = time.perf_counter()
            spans.append((now - seconds, now))

    jax.monitoring.register_event_duration_secs_listener(note)
    for case in cases_of(agent):
        spans.clear()
        began, cpu = time.perf_counter(), time.process_time()
        (outcome,) = suite.run([case])
        wall, compiling = time.perf_counter() - began, covered(spans)
        yield {
            "case": case.id,
            "status": outcome.status,
            "wall": wall,
            "processor": time.process_time() - cpu,
            "compiling": compiling,
            "running": wall - compiling,
        }


def covered(spans: list[tuple[float, float]]) -> float:
    """Return the seconds that at least one of the spans (begin, end) covers."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def line(row: dict[str, Any]) -> str:
    """One row as a line."""
    numbers = "".join(f"{name} {row[name]:6.1f} s  " for name in ("wall", "compiling", "running", "processor"))
    return f"{row['case']:36s}{numbers}{row['status']}"


if __name__ == "__main__":
    main()
