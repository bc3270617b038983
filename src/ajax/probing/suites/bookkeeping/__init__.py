"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from ajax.probing.suites.bookkeeping import apg, avg, boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *avg.CASES, *apg.CASES)}

ANSWER_DIGEST = "0d4d9c800ab0"
