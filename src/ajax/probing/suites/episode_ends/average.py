"""Episode ends of agents for the average reward, in a box: ASAC and RVISAC."""

from __future__ import annotations

import dataclasses

from ajax.probing import Actor, Case, Estimator, Problem, Spec
from ajax.probing.suites.boxes import BOX, box_case
from ajax.probing.suites.episode_ends.boxes import ENDINGS, MIDDLE
from ajax.probing.suites.presets import REFERENCE, make
from ajax.probing.suites.readings import Calibrated

AVERAGE = Estimator(average=True, temperature=0.2)
VALUES = {
    "ASAC": AVERAGE,
    "RVISAC": dataclasses.replace(AVERAGE, cut="reset", reference=REFERENCE),
}
# what an entropy counts is the value chains' to ask: here its mistakes would lie too near to the right answers
MISTAKES = (
    *(m for m in ENDINGS if "entropy" not in m),
    "gain not subtracted",
    "bootstrap dropped where the task is reset",
)

# Every episode is one step, cut at s1 or ended there: a bootstrap from s0 beyond the end costs.
TWO_ENDS = Spec.of(
    "two ends in a box", lambda s, region: (1 - s, 1.0 * s, s == 1), n_states=2, start=(0.5, 0.5), limit=1, box=BOX
)


def ends(agent: str, calibrated: Calibrated) -> Case:
    """A time limit on what doesn't pay, and a termination that does."""
    problem, places = Problem(TWO_ENDS, VALUES[agent], Actor()), ((0, MIDDLE), (1, MIDDLE))
    id, title = f"p6-{agent}", f"{agent}, two ends"
    return box_case(id, title, make(agent), problem, q=places, mistakes=MISTAKES, calibrated=calibrated)


CASES = (
    ends(
        "ASAC",
        Calibrated(12_000, (0.071, 0.04), "12000, the only budget tried; worst error of 64 seeds 0.035; cert 32/32"),
    ),
    ends(
        "RVISAC",
        Calibrated(
            12_000, (0.027, 0.054), "smallest budget of 12000, 24000; worst error of 64 seeds 0.027; cert 32/32"
        ),
    ),
)
