"""Episode ends for APG: no derivative passes them, and the horizon ends in the middle of some episodes.

Rollouts of three steps, episodes of two: the first rollout holds a whole episode and the first step of another, the
second that one's second step and a whole episode. Of the three first steps, one has its horizon end right behind it,
and the other two are followed by a step that counts `GAMMA`. At the best action the two rollouts pull in opposite
directions, and a limit of the gradient's norm would cut the stronger pull: there is none.
"""

from __future__ import annotations

import dataclasses

from ajax.probing import Case
from ajax.probing.suites.linear import GAMMA, SYSTEM, linear_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated


def shares(*first: float, behind: tuple[float, ...]) -> tuple[float, float]:
    """What the second step weighs at the first: the weights `behind` it, over those of the first steps."""
    return sum(behind) / sum(first), 0.0


WRONG = {
    "horizon's end not felt": (GAMMA, 0.0),
    "discount goes on over an episode's end": shares(1.0, GAMMA**2, GAMMA, behind=(GAMMA, GAMMA**2)),
    "no discount": shares(1.0, 1.0, 1.0, behind=(1.0, 1.0)),
    "no derivative through the transition": (0.0, 0.0),
}


def ends(id: str, title: str, terminates: bool, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """Episodes that end in one way; what is learned is the same in both."""
    return linear_case(
        id,
        title,
        make("APG", {"rollout.n_steps": 3, "max_grad_norm": None}, stochastic=False),
        dataclasses.replace(SYSTEM, terminates=terminates),
        shares(1.0, 1.0, 1.0, behind=(GAMMA, GAMMA)),
        WRONG,
        calibrated,
    )


CERTIFIED = Calibrated(6_000, (0.02, 0.02), "smallest budget of 6000, 12000; worst error of 64 seeds 0.000; cert 32/32")
CASES = (
    ends("p6-APG", "APG, terminations within the horizon", True, CERTIFIED),
    ends("p6b-APG", "APG, time limits within the horizon", False, CERTIFIED),
)
