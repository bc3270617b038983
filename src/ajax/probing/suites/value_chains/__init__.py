"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from ajax.probing.suites.value_chains import boxes, discrete, linear, offline, soft

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *linear.CASES, *offline.CASES, *soft.CASES)}

ANSWER_DIGEST = "a5b7b4b84270"
