"""A library for the benchmark's tests: measures nothing, says what it was asked."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks import child


def count(seeds: int) -> dict:
    """How many files the compile cache holds; adds one."""
    folder = Path(os.environ["AJAX_COMPILE_CACHE"])
    found = len(list(folder.iterdir()))
    (folder / str(found)).touch()
    return {"found": found}


def fail(seeds: int) -> dict:
    """A measurement that goes wrong."""
    raise RuntimeError("out of cheese")


if __name__ == "__main__":
    child.main(
        {
            "echo": lambda seeds: {"seeds": seeds, "threads": os.environ.get("NPROC", ""), "rates": [1.0, 3.0, 2.0]},
            "environment": lambda seeds: dict(os.environ),
            "count": count,
            "fail": fail,
        }
    )
