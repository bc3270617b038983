"""The deterministic action at either edge of, and inside, a box that overhangs [-1, 1] unequally, in its own units."""

from ajax.probing.suites.action_box import ppo

CASES = {case.id: case for case in (*ppo.CASES,)}

ANSWER_DIGEST = "4a16ad879746"
