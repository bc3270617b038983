"""What UDRL learns from on a chain: the actions that segments begin with, under returns and horizons."""

from __future__ import annotations

from ajax.probing import Spec
from ajax.probing.suites.segments import segment_case

# s0: the first action pays 1 and ends the task; the others lead to s1, the last one for a reward of 1.
# s1: the task ends, and all actions but the second pay 1.
CHAIN = Spec.of(
    "one step or two",
    lambda s, a: ((2, 1.0, True) if a == 0 else (1, a - 1.0, False)) if s == 0 else (2, float(a != 1), True),
    n_states=3,
    n_actions=3,
)
READ = [
    (0, (1.0, 1.0)),
    (0, (0.0, 1.0)),
    (0, (1.0, 2.0)),
    (0, (2.0, 2.0)),
    (1, (0.0, 1.0)),
    (1, (1.0, 1.0)),
    (1, (2.0, 1.0)),
]

CASES = (
    segment_case("p0-UDRL", "UDRL, one step or two", CHAIN, READ),
    segment_case("p0t-UDRL", "UDRL, segments that end anywhere", CHAIN, READ, trailing=False),
)
