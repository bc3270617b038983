"""Extensions with UDRL: `post_update`."""

from __future__ import annotations

from ajax.probing.suites.bookkeeping.episodes import SIZES, STEPS, WARMUP
from ajax.probing.suites.exact import exact_case
from ajax.probing.suites.extensions.discrete import counted, counts
from ajax.probing.suites.presets import make

COUNTED = make("UDRL", {**SIZES, "replay.warmup": WARMUP}).agent
CASES = (
    exact_case(
        "p3c-UDRL",
        "UDRL, post_update",
        STEPS,
        lambda budget, seeds: counted(COUNTED, budget, seeds),
        counts(60, warmup=6),
    ),
)
