"""Episode ends for DAgger: they are nothing to the policy, and all to an expert that remembers its episode."""

from __future__ import annotations

from ajax.probing import Spec
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.experts import Counting
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.taught import taught_case

BY_STEP = (2.0, 0.2, -1.0)  # what the expert does at an episode's first steps
LAST = 2.6  # and beyond them
# Two steps, cut by a time limit, or from s2 two steps of which the second ends the task.
STEPS = Spec.of(
    "two steps, two ends",
    lambda s, region: {0: (1, 0.0, False), 1: (4, 0.0, False), 2: (3, 0.0, False)}.get(s, (4, 0.0, True)),
    n_states=5,
    start=(0.5, 0.0, 0.5, 0.0, 0.0),
    limit=2,
    box=BOX,
)
RIGHT = 2 * BY_STEP[:2]  # in s0 and s1, and in s2 and s3

CASES = (
    taught_case(
        "p6-DAgger",
        "DAgger, an expert that remembers its episode",
        STEPS,
        Counting(actions=(*BY_STEP, LAST), discrete=False),
        RIGHT,
        {"expert's memory never restarted": (LAST,) * 4, "expert's memory restarted every step": (BY_STEP[0],) * 4},
        Calibrated(4_000, (0.02,) * 4, "4000, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
    ),
)
