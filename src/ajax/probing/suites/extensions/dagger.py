"""The phases that DAgger folds: a term in its loss, and what comes after an update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ajax.probing.suites.bookkeeping.boxes import ROWS, STEPS, UPDATES
from ajax.probing.suites.exact import exact_case, train
from ajax.probing.suites.experts import Listed
from ajax.probing.suites.extensions.boxes import ONE_STEP
from ajax.probing.suites.extensions.discrete import counts
from ajax.probing.suites.extensions.known import Counter, Drawn
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.taught import HIGH, taught_case, to_box

TAUGHT, TO = 0.5, -0.5  # agent units


def counted(budget: int, seeds: Sequence[int]) -> Any:
    """A run with a `Counter`."""
    return train(make("DAgger").agent, ONE_STEP, budget, seeds, extensions=(Counter(),))


CASES = (
    taught_case(
        "p3-DAgger-actor",
        "DAgger, actor_loss",
        ONE_STEP,
        Listed(actions=(to_box(TAUGHT), 0.0), discrete=False),
        (to_box((TAUGHT + TO) / 2),),
        {
            "actor_loss is ignored": (to_box(TAUGHT),),
            "actor_loss with the wrong sign": (HIGH,),
            "actor_loss alone": (to_box(TO),),
        },
        Calibrated(2_000, (0.02,), "2000, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
        extensions=(Drawn(loss=TO, loss_weight=1.0),),
    ),
    exact_case("p3c-DAgger", "DAgger, post_update", STEPS, counted, counts(UPDATES, warmup=ROWS - UPDATES)),
)
