"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from ajax.probing.suites.bookkeeping import discrete

CASES = {case.id: case for case in (*discrete.CASES,)}

ANSWER_DIGEST = "38b179ebdf59"
