"""APG on two steps of a linear system: what an action is worth to the step after it."""

from __future__ import annotations

from ajax.probing.suites.linear import GAMMA, SYSTEM, linear_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated

CASES = (
    linear_case(
        "p0a-APG",
        "APG, two steps of a linear system",
        make("APG", stochastic=False),
        SYSTEM,
        (GAMMA, 0.0),
        {
            "no discount": (1.0, 0.0),
            "discount squared": (GAMMA**2, 0.0),
            "no derivative through the transition": (0.0, 0.0),
        },
        Calibrated(4_000, (0.02, 0.02), "smallest budget of 4000, 8000; worst error of 64 seeds 0.000; cert 32/32"),
    ),
)
