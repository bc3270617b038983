"""A run that is saved, restored and resumed equals the run that was never interrupted, bit for bit."""

from ajax.probing.suites.split_run import boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES)}

ANSWER_DIGEST = "94bc39589e9b"
