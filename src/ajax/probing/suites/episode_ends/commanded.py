"""Episode ends of UDRL: an episode is whole whether the task ended it or a time limit did."""

from __future__ import annotations

from ajax.probing import Spec
from ajax.probing.suites.segments import segment_case

# The first action leads to s1, where the task ends; the others to s2, which a time limit cuts. Both pay 1.
ENDS = Spec.of(
    "two kinds of end",
    lambda s, a: (1 if a == 0 else 2, 0.0, False) if s == 0 else (s, 1.0, s == 1),
    n_states=3,
    n_actions=3,
    limit=2,
)

CASES = (
    segment_case(
        "p6-UDRL",
        "UDRL, two kinds of end",
        ENDS,
        [(0, (1.0, 2.0)), (1, (1.0, 1.0)), (2, (1.0, 1.0)), (0, (2.0, 4.0)), (2, (2.0, 3.0))],
    ),
)
