"""Memory: a recurrent agent acts on what its episode showed it, and restarts at the episode's end."""

from ajax.probing.suites.memory import facts

CASES = {case.id: case for case in facts.CASES}

ANSWER_DIGEST = "0d5a483a5a2b"
