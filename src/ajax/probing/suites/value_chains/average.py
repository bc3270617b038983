"""Value chains of agents for the average reward, in a box: ASAC and RVISAC."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ajax.probing import Actor, Case, Estimator, Problem, Query, Spec, ask, parabola
from ajax.probing.query import LEAST
from ajax.probing.subjects import readings
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.presets import REFERENCE, make
from ajax.probing.suites.readings import Calibrated

TEMPERATURE = 0.8
SOFT = Estimator(average=True, temperature=TEMPERATURE)
RELATIVE = dataclasses.replace(SOFT, cut="reset", reference=REFERENCE)
BEST, OTHER = 1.8, 0.0  # the best action where one matters, and another


def episode(cost: float) -> Spec:
    """Two steps, the first of which pays 1 and the second, whose best action is 1.8, `cost` less."""
    return Spec.of(
        "two paid steps in a box",
        lambda s, region: (1, 1.0, False) if s == 0 else (2, 0.0, True),
        n_states=3,
        box=BOX,
        quadratic=lambda s: parabola(BEST, 1.0 - cost, 0.2) if s == 1 else (0.0, 0.0, 0.0),
    )


COST = 1.0  # of a termination: twice the mean reward of the steps that end nothing, which is half of what one pays


def asac_charged(calibrated: Calibrated) -> Case:
    """Values, the gain and the reset cost of episodes: a terminal state is worth 0, and ending there costs."""
    charged = {
        "reset cost left out": 0.0,
        "reset cost never estimated": 0.0,
        "reset cost counted twice": 2 * COST,
        "reset cost with the wrong sign": -COST,
    }
    problem = Problem(episode(COST), SOFT, Actor())
    others = {name: Problem(episode(cost), SOFT, Actor()).solve() for name, cost in charged.items()}

    def asked(name: str, read: Any, apart: float = 2 * LEAST) -> Query:
        query = ask(name, problem, read, apart=apart)
        more = {mistake: float(read(solution)) for mistake, solution in others.items()}
        shown = {mistake: value for mistake, value in more.items() if abs(value - query.right) >= 2 * LEAST}
        return dataclasses.replace(query, wrong={**query.wrong, **shown})

    queries = (
        # the difference: an error of the gain, which follows the replay's policies, counts once less in it
        asked("Q(s0, a=1.8) - Q(s1, a=0)", lambda x: x.q(0, BEST) - x.q(1, OTHER), 0.15),
        asked("Q(s1, a=0)", lambda x: x.q(1, OTHER), 0.15),
        asked("gain", lambda x: x.gain),
        Query("reset cost", COST, {"reset cost never estimated": 0.0}),
    )

    spec = episode(0.0)  # the agent charges the cost itself

    def read(trained: Any) -> np.ndarray:
        q = trained.q(spec.obs[:2], np.array([[BEST], [OTHER]]))
        return np.c_[q[:, 0] - q[:, 1], q[:, 1], trained.states.gain, trained.states.reset_cost]

    found = readings(make("ASAC", alpha=TEMPERATURE, reset_cost=2 * COST), spec, read)
    return Case("p0b-ASAC", queries, found, title="ASAC, a cost of resets", **calibrated._asdict())


# The same episodes, whose end shows where they went on, and not where they begin: a reset leads elsewhere.
RESETS = Spec.of(
    "two paid steps in a box, reset",
    lambda s, region: (1, 1.0, False) if s == 0 else (1, 0.0, True),
    n_states=2,
    box=BOX,
    quadratic=lambda s: parabola(BEST, 1.0, 0.2) if s == 1 else (0.0, 0.0, 0.0),
)


def rvisac_resets(calibrated: Calibrated) -> Case:
    """Values, whose constant the reference holds, the gain that it becomes, and the rate of resets."""
    problem = Problem(RESETS, RELATIVE, Actor())
    queries = (
        ask("Q(s0, a=1.8)", problem, lambda x: x.q(0, BEST)),
        ask("Q(s1, a=0)", problem, lambda x: x.q(1, OTHER)),
        ask("gain", problem, lambda x: x.gain),
        Query("resets per step", 0.5, {"terminations not counted": 0.0, "every step counted": 1.0}),
    )

    def read(trained: Any) -> np.ndarray:
        q = trained.q(RESETS.obs[:2], np.array([[BEST], [OTHER]]))
        return np.c_[q, trained.states.gain, trained.states.reset_rate]

    found = readings(make("RVISAC", alpha=TEMPERATURE), RESETS, read)
    return Case("p0b-RVISAC", queries, found, title="RVISAC, resets", **calibrated._asdict())


CASES = (
    asac_charged(
        Calibrated(
            6_000,
            (0.049, 0.075, 0.036, 0.038),
            "6000, the only budget tried; worst error of 64 seeds 0.037; cert 32/32",
        )
    ),
    rvisac_resets(
        Calibrated(
            24_000, (0.02, 0.027, 0.02, 0.02), "24000, the only budget tried; worst error of 64 seeds 0.013; cert 32/32"
        )
    ),
)
