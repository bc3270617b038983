"""What an agent counts, logs, stores, draws and executes, exactly, on two seeds."""

from ajax.probing.suites.bookkeeping import avg, boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *avg.CASES)}

ANSWER_DIGEST = "ba2ac9d54602"
