"""The deterministic action at either edge of, and inside, a box that overhangs [-1, 1] unequally, in its own units."""

from ajax.probing.suites.action_box import commanded, dagger, offline, peaks

CASES = {case.id: case for case in (*offline.CASES, *peaks.CASES, *dagger.CASES, *commanded.CASES)}

ANSWER_DIGEST = "eb51b858527e"
