"""A run that is saved, restored and resumed equals the run that was never interrupted, bit for bit."""

from ajax.probing.suites.split_run import discrete

CASES = {case.id: case for case in (*discrete.CASES,)}

ANSWER_DIGEST = "7939998232ce"
