"""Every phase that an agent folds, through extensions of known effect."""

from ajax.probing.suites.extensions import apg, boxes, commanded, dagger, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *apg.CASES, *commanded.CASES, *dagger.CASES)}

ANSWER_DIGEST = "49f7bff78ec3"
