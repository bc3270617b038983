"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from ajax.probing.suites.value_chains import boxes, discrete

CASES = {case.id: case for case in (*discrete.CASES, *boxes.CASES)}

ANSWER_DIGEST = "03ae26593ffb"
