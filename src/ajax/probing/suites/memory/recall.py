"""The recall task: what an episode's first observation showed decides what each later step pays, and is not seen again.

Episodes are of three kinds. A and B show a cue, then the blank; N shows the blank from the start. So the blank alone
means N to who remembers nothing before it, and to who remembers the last episode it means that one. Each blank step
ends the task with a fixed probability, so that no count of steps tells where an episode begins; few episodes outlast a
burn-in, before which the replay's networks remembered by other parameters.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from ajax.networks.memory import GRU
from ajax.probing import Case, Estimator, Query, Spec
from ajax.probing.oracle import Solution, collect, solve, uniform_policy
from ajax.probing.query import LEAST
from ajax.probing.subjects import History, readings
from ajax.probing.suites.presets import DECAY, SMALL, make
from ajax.probing.suites.readings import Calibrated

VALUES = Estimator(gamma=0.7)
SOFT = Estimator(gamma=0.7, backup="soft", temperature=0.1)
CUE_A, CUE_B, AFTER_A, AFTER_B, ALONE = range(5)
LOOKS = np.eye(8)[[0, 1, 2, 2, 2]]
PAYS = {AFTER_A: 0.6, AFTER_B: 0.4, ALONE: 0.0}
BEST = {AFTER_A: 1, AFTER_B: 2, ALONE: 0}
ENDS = 0.6


def _step(s: int, action: int) -> Any:
    if s in PAYS:
        reward = PAYS[s] if action == BEST[s] else 0.0
        return [(ENDS, s, reward, True), (1 - ENDS, s, reward, False)]
    return {CUE_A: AFTER_A, CUE_B: AFTER_B}[s], 0.0, False


RECALL = Spec.of("recall", _step, n_states=5, n_actions=3, obs=LOOKS, start=(1 / 3, 1 / 3, 0, 0, 1 / 3))


def blind(spec: Spec) -> Spec:
    """The task of who can't tell the three blanks apart: each pays what they pay on average over the data."""
    blanks = [AFTER_A, AFTER_B, ALONE]
    share = collect(spec, uniform_policy(spec)).visits[blanks]
    reward = spec.reward.copy()
    reward[blanks] = np.tensordot(share / share.sum(), spec.reward[blanks], 1)[None]
    return dataclasses.replace(spec, name="recall, blind", reward=reward)


# the states of the last steps, and which of them begin an episode
MOMENTS = {
    "A, blank": ((ALONE, ALONE, CUE_A, AFTER_A), (0, 0, 1, 0)),
    "B, blank": ((ALONE, ALONE, CUE_B, AFTER_B), (0, 0, 1, 0)),
    "blank, after an episode of A": ((ALONE, ALONE, CUE_A, ALONE), (1, 0, 1, 1)),
}
NOW = [states[-1] for states, _ in MOMENTS.values()]
STATES, BEGINS = (np.array(steps).T for steps in zip(*MOMENTS.values(), strict=True))
HISTORY = History(LOOKS[STATES], BEGINS)
"""What the moments are asked at; what is left of an episode's beginning must be forgotten."""


def best(solution: Solution, state: int) -> float:
    """Q of the action that is right in a state."""
    return float(solution.q[state, BEST[state]])


def optimum(solution: Solution, state: int) -> float:
    """V of who takes what they think is the best action."""
    return float(solution.q[state].max())


def queries(letter: str, value: Callable[[Solution, int], float], values: Estimator = VALUES) -> tuple[Query, ...]:
    """One reading at each moment: the right answer and those of forgetful agents."""
    right, forgetful = solve(RECALL, values), solutions(values)
    found = []
    for state, name in zip(NOW, MOMENTS, strict=True):
        answer = value(right, state)
        wrong = {mistake: value(solution, state) for mistake, solution in forgetful.items()}
        shown = {mistake: x for mistake, x in wrong.items() if abs(x - answer) >= 2 * LEAST}
        found.append(Query(f"{letter}*({name})", answer, shown))
    return tuple(found)


def solutions(values: Estimator) -> dict[str, Solution]:
    """What forgetful agents think. One that never restarts may have learned more than one thing: `facts` names it."""
    return {
        "memory reset every step": solve(blind(RECALL), values),
        "next value without what came before": solve(RECALL, dataclasses.replace(values, seen_as=(ALONE,) * 5)),
    }


ALIKE = [NOW.index(AFTER_A), NOW.index(AFTER_B)]
"""The moments that only what came before tells apart."""


def greedy() -> tuple[Query, ...]:
    """The best actions at the two moments that look alike."""
    found = []
    for i in ALIKE:
        chosen = {mistake: int(solution.q[NOW[i]].argmax()) for mistake, solution in solutions(VALUES).items()}
        wrong = {mistake: action for mistake, action in chosen.items() if action != BEST[NOW[i]]}
        found.append(Query(f"greedy({list(MOMENTS)[i]})", BEST[NOW[i]], wrong))
    return tuple(found)


def dqn(calibrated: Calibrated) -> Case:
    """Q of the right action at every moment, and the best actions at the two that look alike."""

    def read(trained: Any) -> np.ndarray:
        q, act = trained.q(HISTORY), trained.act(HISTORY)
        return np.concatenate([q[:, range(len(NOW)), [BEST[s] for s in NOW]], act[:, ALIKE]], 1)

    torso = dataclasses.replace(SMALL, memory=GRU(size=16, length=4, burn_in=4))
    subject = make("DQN", {"torso": torso}, learning_rate=DECAY)
    found = readings(subject, RECALL, read)
    return Case("p0b-DQN", (*queries("Q", best), *greedy()), found, title="DQN, recall", **calibrated._asdict())


def ppo(calibrated: Calibrated) -> Case:
    """V at every moment, and the best actions at the two that look alike."""

    def read(trained: Any) -> np.ndarray:
        return np.concatenate([trained.v(HISTORY), trained.act(HISTORY)[:, ALIKE]], 1)

    torso = dataclasses.replace(SMALL, memory=GRU(size=16, length=8))
    subject = make("PPO", {"torso": torso}, learning_rate=DECAY)
    found = readings(subject, RECALL, read)
    return Case("p0b-PPO", (*queries("V", optimum), *greedy()), found, title="PPO, recall", **calibrated._asdict())


def sac(calibrated: Calibrated) -> Case:
    """Soft Q of the right action at every moment."""

    def read(trained: Any) -> np.ndarray:
        return trained.q(HISTORY, np.array([BEST[s] for s in NOW]))

    torso = dataclasses.replace(SMALL, memory=GRU(size=16, length=4, burn_in=4))
    subject = make("SAC", {"torso": torso}, alpha=SOFT.temperature, learning_rate=DECAY)
    found = readings(subject, RECALL, read)
    title = "SAC (discrete), recall"
    return Case("p0b-SAC-discrete", queries("Q", best, SOFT), found, title=title, **calibrated._asdict())


CASES = (
    dqn(
        Calibrated(
            16_000,
            (0.086, 0.057, 0.02, 0.02, 0.02),
            "smallest budget of 16000, 32000; worst error of 64 seeds 0.043; cert 32/32",
        )
    ),
    ppo(
        Calibrated(
            64_000,
            (0.083, 0.055, 0.022, 0.02, 0.02),
            "64000, the only budget tried; worst error of 64 seeds 0.041; cert 32/32",
        )
    ),
    sac(
        Calibrated(
            16_000, (0.069, 0.044, 0.021), "16000, the only budget tried; worst error of 64 seeds 0.034; cert 32/32"
        )
    ),
)
