"""Every phase that an agent folds, through extensions of known effect."""

from ajax.probing.suites.extensions import discrete

CASES = {case.id: case for case in (*discrete.CASES,)}

ANSWER_DIGEST = "e228f06d9833"
