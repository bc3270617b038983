"""Episode ends with actions in a box: SAC and TD3. No action matters, but for SAC's entropy."""

from __future__ import annotations

import dataclasses

from ajax.probing import Actor, Case, Estimator, Problem, Spec
from ajax.probing.suites.boxes import BOX, box_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

GAMMA = 0.7
REWARD = 0.3  # for ever, it is worth 1
MIDDLE = 0.75  # of the box

VALUES = {"SAC": Estimator(gamma=GAMMA, temperature=0.2), "TD3": Estimator(gamma=GAMMA)}
ACTORS = {"SAC": Actor(), "TD3": Actor(stochastic=False)}

# s0 and s1 stay where they are, cut after one step; s2 ends the task and shows s1, so that a bootstrap there pays.
ENDS = Spec.of(
    "three ends",
    lambda s, region: (1, 0.0, True) if s == 2 else (s, REWARD * s, False),
    n_states=3,
    start=(1 / 3, 1 / 3, 1 / 3),
    limit=1,
    box=BOX,
)
# Both rewards are one deviation, 3, from 0: scaled once they are -1 and 1, twice -1/3 and 1/3.
TWO = Spec.of("two rewards", lambda s, region: (s, 6.0 * s - 3.0, True), n_states=2, start=(0.5, 0.5), box=BOX)
LOOP = Spec.of("loop", lambda s, region: (0, REWARD, False), n_states=1, limit=5, stagger=5, box=BOX)


def ends(agent: str, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """A time limit on a state that pays and on one that doesn't, and a termination."""
    problem = Problem(ENDS, VALUES[agent], ACTORS[agent])
    places = tuple((s, MIDDLE) for s in range(1 if agent == "SAC" else 0, 3))  # in s0 SAC has its entropy alone
    return box_case(f"p6-{agent}", f"{agent}, three ends", make(agent), problem, q=places, calibrated=calibrated)


def loop(agent: str, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """A loop cut after five steps, in environments out of step."""
    problem = Problem(LOOP, VALUES[agent], ACTORS[agent])
    title = f"{agent}, loop of five, out of step"
    return box_case(f"p6b-{agent}", title, make(agent), problem, q=((0, MIDDLE),), calibrated=calibrated)


def scaled(agent: str, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """Rewards divided by their deviation, 3."""
    estimator = dataclasses.replace(VALUES[agent], reward_scale=1 / 3)
    problem = Problem(TWO, estimator, ACTORS[agent])
    subject, places = make(agent, normalize_rewards=True), ((0, MIDDLE), (1, MIDDLE))
    return box_case(f"p5-{agent}", f"{agent}, normalized rewards", subject, problem, q=places, calibrated=calibrated)


CERTIFIED = "smallest budget of 1000, 2000; worst error of 64 seeds within half the tolerance; cert 32/32"

CASES = (
    ends("TD3", Calibrated(2_000, (0.062, 0.084, 0.02), CERTIFIED)),
    ends("SAC"),
)
