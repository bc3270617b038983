"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from ajax.probing.suites.bookkeeping import boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES)}

ANSWER_DIGEST = "3c37fb676f04"
