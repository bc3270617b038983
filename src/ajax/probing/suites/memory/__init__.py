"""Memory: a recurrent agent acts on what its episode showed it, and restarts at the episode's end."""

from ajax.probing.suites.memory import facts

CASES = {case.id: case for case in facts.CASES}

ANSWER_DIGEST = "86ce8d8eaadc"
