"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from ajax.probing.suites.value_chains import average, boxes, commanded, dagger, discrete, linear, offline, soft

FILES = (average, discrete, boxes, linear, dagger, offline, soft, commanded)
CASES = {case.id: case for file in FILES for case in file.CASES}

ANSWER_DIGEST = "0bf00a5fca78"
