"""Split runs with actions in a box: SAC with a tuned temperature, and TD3."""

from __future__ import annotations

from ajax.probing.suites.bookkeeping.walk import WALK
from ajax.probing.suites.presets import DECAY, make
from ajax.probing.suites.split_run.facts import split_case

# The seam lies after an odd number of updates, so that a delay that starts again shows.
STEPS, SHORT = 328, {"replay.warmup": 40}

CASES = (
    split_case("p4-SAC", "SAC, split run", make("SAC", SHORT, alpha_learning_rate=DECAY).agent, WALK, STEPS),
    split_case("p4-TD3", "TD3, split run", make("TD3", SHORT).agent, WALK, STEPS),
)
