"""DAgger where its expert's action lies below the box, above it and in it: what is executed is learned."""

from __future__ import annotations

from ajax.probing.suites.experts import Listed
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.taught import HIGH, LOW, mean, taught_case
from ajax.probing.suites.value_chains.dagger import STATES

RIGHT = (LOW, HIGH, 0.6)
CASES = (
    taught_case(
        "box-DAgger",
        "DAgger, an expert beyond its box",
        STATES,
        Listed(actions=(-4.0, 5.0, 0.6, 0.0), discrete=False),
        RIGHT,
        {"labels of other states": mean(RIGHT), "labels clamped to [-1, 1]": (-1.0, 1.0, 0.6)},
        Calibrated(
            4_000, (0.056, 0.067, 0.02), "4000, the only budget tried; worst error of 64 seeds 0.033; cert 32/32"
        ),
    ),
)
