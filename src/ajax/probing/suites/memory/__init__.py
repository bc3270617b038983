"""Memory: a recurrent agent acts on what its episode showed it, and restarts at the episode's end."""

from ajax.probing.suites.memory import facts, recall

CASES = {case.id: case for file in (facts, recall) for case in file.CASES}

ANSWER_DIGEST = "042d38ce1970"
