"""Every phase that an agent folds, through extensions of known effect."""

from ajax.probing.suites.extensions import boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES)}

ANSWER_DIGEST = "b2b6bcd1f3e2"
