"""What every library's script shares: which measurement to take, timing, and the line of JSON at the end.

Run as `python -m benchmarks.peers.NAME MEASUREMENT SEEDS` in that library's environment. Standard library only.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

Measurement = Callable[[int], dict[str, Any]]
"""Takes the number of seeds, returns what was measured."""

REPEATS = 4


def main(measurements: Mapping[str, Measurement]) -> None:
    """Take the measurement that the command line names and print it as the last line of standard output."""
    name, seeds = sys.argv[1], int(sys.argv[2])
    result = measurements[name](seeds)
    print(json.dumps(result), flush=True)


def seconds(function: Callable[[], Any]) -> float:
    """How long a call takes, in seconds."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def rates(function: Callable[[], Any], amount: float) -> dict[str, list[float]]:
    """How much a call does per second (`rates`) and per second of processor time (`cpu_rates`), once a repeat.

    Args:
        function: what is repeated.
        amount: steps or updates that one call does.
    """
    walls, cpus = [], []
    for _ in range(REPEATS):
        cpu = time.process_time()
        walls.append(amount / seconds(function))
        cpus.append(amount / (time.process_time() - cpu))
    return {"rates": walls, "cpu_rates": cpus}


def first_and_rates(function: Callable[[], Any], amount: float) -> dict[str, Any]:
    """As `rates`, with `ready`: what the first call took beyond the others, in seconds (compiling, mostly)."""
    first = seconds(function)
    measured = rates(function, amount)
    return {"ready": max(0.0, first - amount / max(measured["rates"])), **measured}


def jax_program(function: Callable, args: tuple, amount: float) -> dict[str, Any]:
    """Trace, compile and repeatedly run a JAX function that trains from its arguments.

    Args:
        function: not yet jitted.
        args: what it is called with.
        amount: steps or updates that one call does.

    Returns:
        `trace` and `compile` in seconds (their sum: `ready`), and what `rates` returns.
    """
    import jax

    start = time.perf_counter()
    lowered = jax.jit(function).lower(*args)
    traced = time.perf_counter()
    program = lowered.compile()
    compiled = time.perf_counter()
    jax.block_until_ready(program(*args))
    return {
        "trace": traced - start,
        "compile": compiled - traced,
        "ready": compiled - start,
        **rates(lambda: jax.block_until_ready(program(*args)), amount),
    }
