"""Every phase that an agent folds, through extensions of known effect."""

from ajax.probing.suites.extensions import apg, boxes, commanded, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *apg.CASES, *commanded.CASES)}

ANSWER_DIGEST = "2434e0cc1f0b"
