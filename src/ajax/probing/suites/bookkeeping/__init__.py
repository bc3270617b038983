"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from ajax.probing.suites.bookkeeping import apg, avg, boxes, discrete, episodes

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *avg.CASES, *apg.CASES, *episodes.CASES)}

ANSWER_DIGEST = "a4a2491947c8"
