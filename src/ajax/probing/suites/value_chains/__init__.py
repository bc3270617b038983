"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from ajax.probing.suites.value_chains import average, boxes, discrete, linear, offline, soft

CASES = {
    case.id: case
    for case in (*average.CASES, *discrete.CASES, *boxes.CASES, *linear.CASES, *offline.CASES, *soft.CASES)
}

ANSWER_DIGEST = "ec7f1e881086"
