"""UDRL's actions in a box that overhangs [-1, 1] unequally: what is executed, paid for and kept, exactly.

A step pays half of the action that the environment was given, so that rewards tell it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.core.spaces import to_box
from ajax.probing import Case, Spec
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.commanded import Uniform
from ajax.probing.suites.exact import Fact, exact_case, train
from ajax.probing.suites.presets import make

STEPS = 512
SLOPE = 0.5
PAID = Spec.of(
    "paid by the action", lambda s, region: (1, 0.0, True), n_states=2, box=BOX, quadratic=lambda s: (0.0, SLOPE, 0.0)
)
LOW, HIGH = (float(np.ravel(bound)[0]) for bound in (BOX.low, BOX.high))
UNMAPPED = {"actions not mapped onto the box": 0, "actions clamped to [-1, 1]": 0}


def trained(budget: int, seeds: Sequence[int]) -> Any:
    """A run whose actions are drawn uniformly."""
    return train(make("UDRL").agent, PAID, budget, seeds, extensions=(Uniform(),))


def kept(result: Any, lane: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the actions of the episodes that are kept, in the box's units, and what they paid."""
    store = result.run(lane).store
    whole = np.asarray(store.whole)
    return np.asarray(to_box(BOX, store.rows.action[whole, 0]))[:, 0], np.asarray(store.rows.reward)[whole, 0]


def told(result: Any, lane: int) -> Any:
    """Return whether an evaluation is paid for the action that the run tells for its first observation."""
    action = result.act(PAID.obs[:1], lane)[0, 0]
    return np.allclose(result.evaluate(2).returns[lane], SLOPE * action, atol=1e-4)


def facts() -> list[Fact]:
    """What was kept of actions, and what an evaluation does."""

    def paid(r: Any, lane: int) -> Any:
        action, reward = kept(r, lane)
        return np.allclose(reward, SLOPE * action, atol=1e-5)

    return [
        Fact("rewards are those of the actions kept", 1, UNMAPPED, paid),
        Fact(
            "actions reach both ends of the box",
            1,
            UNMAPPED,
            lambda r, lane: np.ptp(kept(r, lane)[1]) > 0.95 * SLOPE * (HIGH - LOW),
        ),
        Fact("an evaluation does what the run tells", 1, {"actions read in agent units": 0, **UNMAPPED}, told),
    ]


CASES: tuple[Case, ...] = (exact_case("box-UDRL", "UDRL, paid by the action", STEPS, trained, facts()),)
