"""Every phase that an agent folds, through extensions of known effect."""

from ajax.probing.suites.extensions import apg, boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *apg.CASES)}

ANSWER_DIGEST = "4a4351243b0e"
