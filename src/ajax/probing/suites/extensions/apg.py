"""The phases that APG folds: a term in its loss, rewards that it differentiates, and what comes after an update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ajax.probing import Case, Query, Spec, parabola
from ajax.probing.subjects import readings
from ajax.probing.suites.bookkeeping import discrete as bookkeeping
from ajax.probing.suites.bookkeeping.apg import boxed
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.exact import exact_case, train
from ajax.probing.suites.extensions.discrete import counts
from ajax.probing.suites.extensions.known import Counter, Drawn
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

LOW, HIGH = -1.5, 3.0
OWN, TO = 1.875, -0.5  # where the rewards' own peak lies, in the box: 0.5 in agent units; where extensions draw to
STEEPNESS = 1 / (0.5 * (HIGH - LOW)) ** 2  # the peak's, so that it is 1 in agent units
PEAK = Spec.of(
    "a peak in a box",
    lambda s, region: (1, 0.0, True),
    n_states=2,
    box=BOX,
    quadratic=lambda s: parabola(OWN, 0.0, STEEPNESS) if s == 0 else (0.0, 0.0, 0.0),
)


def at(action: float) -> float:
    """An action in agent units, in the box."""
    return LOW + (action + 1) / 2 * (HIGH - LOW)


def drawn(id: str, title: str, drawn: Drawn, wrong: dict[str, float], calibrated: Calibrated = UNCALIBRATED) -> Case:
    """Drawn as heavily as by the rewards' own peak, the best action lies half of the way between the two."""
    query = Query("action", at((0.5 + TO) / 2), {"actions read in agent units": (0.5 + TO) / 2, **wrong})
    subject = make("APG", stochastic=False, extensions=(drawn,))
    found = readings(subject, PEAK, lambda trained: trained.act(PEAK.obs[:1])[..., 0])
    return Case(id, (query,), found, title=title, **calibrated._asdict())


def counted(budget: int, seeds: Sequence[int]) -> Any:
    """A run with a `Counter`."""
    return train(make("APG", bookkeeping.SIZES).agent, boxed(bookkeeping.WALK), budget, seeds, extensions=(Counter(),))


CERTIFIED = Calibrated(2_000, (0.02,), "smallest budget of 2000, 4000; worst error of 64 seeds 0.000; cert 32/32")
CASES = (
    drawn(
        "p3-APG-actor",
        "APG, actor_loss",
        Drawn(loss=TO, loss_weight=1.0),
        {"actor_loss is ignored": OWN, "actor_loss with the wrong sign": HIGH, "actor_loss alone": at(TO)},
        CERTIFIED,
    ),
    drawn(
        "p3-APG-reward",
        "APG, reward",
        Drawn(reward_to=TO, reward_weight=1.0),
        {"what reward returns is not differentiated": OWN, "what reward returns alone": at(TO)},
        CERTIFIED,
    ),
    exact_case("p3c-APG", "APG, post_update", bookkeeping.ROLLOUT_STEPS, counted, counts(36)),
)
