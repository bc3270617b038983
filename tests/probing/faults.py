"""`python -m tests.probing.faults DIR ID...`: plants faults of `faults/*.jsonl` in a copy under DIR."""

from __future__ import annotations

import sys
from pathlib import Path

from ajax.probing.faults import main

HERE = Path(__file__).parent

if __name__ == "__main__":
    main(sys.argv[1:], HERE.parents[1], HERE / "faults", "tests/probing")
