"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from ajax.probing.suites.value_chains import boxes, discrete, soft

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES, *soft.CASES)}

ANSWER_DIGEST = "459a43e97cce"
