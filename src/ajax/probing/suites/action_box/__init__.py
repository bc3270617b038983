"""The deterministic action at either edge of, and inside, a box that overhangs [-1, 1] unequally, in its own units."""

from ajax.probing.suites.action_box import peaks

CASES = {case.id: case for case in (*peaks.CASES,)}

ANSWER_DIGEST = "d9810ea6a804"
