"""Cases of agents that learn from an expert: the action in states for which the expert's is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ajax.core.hooks import Extension
from ajax.probing import Case, Query, Spec
from ajax.probing.subjects import readings
from ajax.probing.suites.experts import Listed
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

LOW, HIGH = -1.5, 3.0
APART = 0.05  # of the box: a mistake that changes less is not asked for


def to_units(action: float) -> float:
    """An action of the box in agent units."""
    return 2 * (action - LOW) / (HIGH - LOW) - 1


def to_box(units: float) -> float:
    """An action in agent units in the box, which it is clipped to."""
    return LOW + (min(max(units, -1.0), 1.0) + 1) / 2 * (HIGH - LOW)


def taught_case(
    id: str,
    title: str,
    spec: Spec,
    expert: Listed,
    right: Sequence[float],
    wrong: Mapping[str, Sequence[float]] | None = None,
    calibrated: Calibrated = UNCALIBRATED,
    extensions: tuple[Extension, ...] = (),
) -> Case:
    """Return a case that reads the action in the first states of a Spec with a box.

    Args:
        id, title, spec, expert: who is taught, where and by whom.
        right: the answer in each state.
        wrong: answers under named mistakes, beside those of every case.
        calibrated, extensions: as for other cases.
    """

    def query(s: int) -> Query:
        found = {
            "labels in the environment's units": to_box(right[s]),
            "actions read in agent units": to_units(right[s]),
            "labels with the wrong sign": to_box(-to_units(right[s])),
            **{mistake: answers[s] for mistake, answers in (wrong or {}).items()},
        }
        return Query(f"action(s{s})", right[s], {name: x for name, x in found.items() if abs(x - right[s]) > APART})

    read = readings(
        make("DAgger", expert=expert, extensions=extensions), spec, lambda t: t.act(spec.obs[: len(right)])[..., 0]
    )
    return Case(id, tuple(map(query, range(len(right)))), read, title=title, **calibrated._asdict())


def mean(actions: Sequence[float]) -> list[float]:
    """What is learned where labels and states don't belong together: about their mean in each state."""
    return [float(np.mean(actions))] * len(actions)
