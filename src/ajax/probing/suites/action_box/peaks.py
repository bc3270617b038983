"""The best actions where the reward's peak lies below, above and in the box: TD3 and PPO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ajax.core.schedules import Linear
from ajax.probing import Actor, Case, Estimator, Problem, Spec, parabola
from ajax.probing.suites.boxes import BOX, box_case
from ajax.probing.suites.presets import DECAY, make
from ajax.probing.suites.readings import Calibrated


def bandit(inside: float, steepness: float) -> Spec:
    """Three states of one step, whose reward peaks below the box, above it, and at `inside`."""
    curves = (parabola(-3.5, 1.0, 0.2), parabola(5.0, 1.0, 0.2), parabola(inside, 1.0, steepness), (0.0, 0.0, 0.0))
    return Spec.of(
        "peaks below, above and in a box",
        lambda s, region: (3, 0.0, True),
        n_states=4,
        start=(1 / 3, 1 / 3, 1 / 3, 0.0),
        box=BOX,
        quadratic=lambda s: curves[s],
    )


MISTAKES = (
    "reward with the wrong sign",
    "actions clamped to [-1, 1]",
    "actions not mapped onto the box",
    "actions read in agent units",
)
BEYOND = ((1, 2.0),)  # Q there shows what the environment executes outside [-1, 1]


def peaks(
    id: str, title: str, spec: Spec, calibrated: Calibrated, *, q: Sequence[tuple[int, float]] = (), **overrides: Any
) -> Case:
    """The best action in each of the three states, and Q at `q`."""
    problem = Problem(spec, Estimator(gamma=0.7), Actor(stochastic=False))
    subject = make(id.split("-")[1], **overrides)
    return box_case(
        id, title, subject, problem, q=q, acts=(0, 1, 2), mistakes=MISTAKES, apart=0.2, calibrated=calibrated
    )


CASES = (
    peaks(
        "box-TD3",
        "TD3, peaks in a box",
        bandit(0.6, 1.0),
        Calibrated(
            12_000,
            (0.031, 0.02, 0.02, 0.065),
            "12000, the only budget tried on 64 seeds; worst error of 64 seeds 0.033; cert 32/32",
        ),
        q=BEYOND,
        actor_learning_rate=Linear(start=2e-3, end=1e-5),
        fields={"replay.warmup": 1_000},
    ),
    peaks(
        "box-PPO",
        "PPO, peaks in a box",
        bandit(1.8, 0.2),
        Calibrated(
            40_960, (0.02, 0.02, 0.028), "smallest budget of 20480, 40960; worst error of 64 seeds 0.014; cert 32/32"
        ),
        learning_rate=DECAY,
        entropy_coef=0.03,
    ),
)
