"""The recall task: what an episode's first observation showed decides which action pays later, and is not seen again.

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
from ajax.probing import Actor, Case, Estimator, Problem, Query, Spec, parabola
from ajax.probing.oracle import Solution
from ajax.probing.query import LEAST
from ajax.probing.subjects import History, readings
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.presets import DECAY, SMALL, SMOOTH, make
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

# in a box, what came before decides which action a blank pays most for
BOXED_BEST = {AFTER_A: 1.8, AFTER_B: -0.6, ALONE: 0.75}
BOXED = Spec.of(
    "recall in a box",
    lambda s, region: [(ENDS, s, 0.0, True), (1 - ENDS, s, 0.0, False)] if s in PAYS else _step(s, 0),
    n_states=5,
    obs=LOOKS,
    start=(1 / 3, 1 / 3, 0, 0, 1 / 3),
    box=BOX,
    quadratic=lambda s: parabola(BOXED_BEST[s], PAYS[s], 0.2) if s in PAYS else (0.0, 0.0, 0.0),
)


TASK = Problem(RECALL, VALUES)


def blind(spec: Spec) -> Spec:
    """The task of who can't tell the three blanks apart: each pays what they pay on average. All are as frequent."""
    blanks = [AFTER_A, AFTER_B, ALONE]
    reward, quadratic = spec.reward.copy(), spec.quadratic.copy()
    reward[blanks] = spec.reward[blanks].mean(0)
    quadratic[blanks] = spec.quadratic[blanks].mean(0)
    return dataclasses.replace(spec, name=f"{spec.name}, blind", reward=reward, quadratic=quadratic)


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
    return solution.q[state, BEST[state]]


def optimum(solution: Solution, state: int) -> float:
    """V of who takes what they think is the best action."""
    return solution.q[state].max()


def solutions(problem: Problem) -> dict[str, Any]:
    """What is right (""), and what forgetful agents think. One that never restarts is for `facts` to name."""
    unseen = dataclasses.replace(problem.estimator, seen_as=(ALONE,) * 5)
    problems = {
        "": problem,
        "memory reset every step": dataclasses.replace(problem, spec=blind(problem.spec)),
        "next value without what came before": dataclasses.replace(problem, estimator=unseen),
    }
    return {mistake: each.solve() for mistake, each in problems.items()}


def queries(name: str, value: Callable[[Any, int], float], problem: Problem) -> tuple[Query, ...]:
    """One reading at each moment, `value` of a solution and a state: the right answer and those of forgetful agents."""
    solved, found = solutions(problem), []
    for state, moment in zip(NOW, MOMENTS, strict=True):
        wrong = {mistake: float(value(solution, state)) for mistake, solution in solved.items()}
        right = wrong.pop("")
        shown = {mistake: x for mistake, x in wrong.items() if abs(x - right) >= 2 * LEAST}
        found.append(Query(f"{name}({moment})", right, shown))
    return tuple(found)


ALIKE = [NOW.index(AFTER_A), NOW.index(AFTER_B)]
"""The moments that only what came before tells apart."""


def greedy() -> tuple[Query, ...]:
    """The best actions at the two moments that look alike."""
    found = []
    for i in ALIKE:
        chosen = {mistake: int(solution.q[NOW[i]].argmax()) for mistake, solution in solutions(TASK).items()}
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
    return Case("p0b-DQN", (*queries("Q*", best, TASK), *greedy()), found, title="DQN, recall", **calibrated._asdict())


def ppo(calibrated: Calibrated) -> Case:
    """V at every moment, and the best actions at the two that look alike."""

    def read(trained: Any) -> np.ndarray:
        return np.concatenate([trained.v(HISTORY), trained.act(HISTORY)[:, ALIKE]], 1)

    torso = dataclasses.replace(SMALL, memory=GRU(size=16, length=8))
    subject = make("PPO", {"torso": torso}, learning_rate=DECAY)
    found = readings(subject, RECALL, read)
    return Case(
        "p0b-PPO", (*queries("V*", optimum, TASK), *greedy()), found, title="PPO, recall", **calibrated._asdict()
    )


def sac(calibrated: Calibrated) -> Case:
    """Soft Q of the right action at every moment."""

    def read(trained: Any) -> np.ndarray:
        return trained.q(HISTORY, np.array([BEST[s] for s in NOW]))

    torso = dataclasses.replace(SMALL, memory=GRU(size=16, length=4, burn_in=4))
    subject = make("SAC", {"torso": torso}, alpha=SOFT.temperature, learning_rate=DECAY)
    found = readings(subject, RECALL, read)
    title = "SAC (discrete), recall"
    return Case(
        "p0b-SAC-discrete", queries("Q*", best, Problem(RECALL, SOFT)), found, title=title, **calibrated._asdict()
    )


BOXES: dict[str, tuple[Estimator, Actor, dict[str, Any]]] = {
    "SAC": (Estimator(gamma=0.7, temperature=0.1), Actor(), {"alpha": 0.1}),
    "TD3": (VALUES, Actor(stochastic=False, noise=1.0, noise_clip=0.5), {"target_noise": 1.0}),
}
"""How agents in a box learn values, and what else they are given."""


def boxed(agent: str, calibrated: Calibrated) -> Case:
    """Q at every moment, of the action that is right there."""
    estimator, actor, given = BOXES[agent]
    subject = make(agent, {"torso": dataclasses.replace(SMOOTH, memory=GRU(size=16, length=4, burn_in=4))}, **given)

    def read(trained: Any) -> np.ndarray:
        return trained.q(HISTORY, np.array([[BOXED_BEST[s]] for s in NOW]))

    asked = queries("Q", lambda solution, s: solution.q(s, BOXED_BEST[s]), Problem(BOXED, estimator, actor))
    title = f"{agent}, recall in a box"
    return Case(f"p0b-{agent}", asked, readings(subject, BOXED, read), title=title, **calibrated._asdict())


CASES = (
    boxed(
        "SAC",
        Calibrated(
            16_000, (0.066, 0.051, 0.036), "16000, the only budget tried; worst error of 64 seeds 0.033; cert 32/32"
        ),
    ),
    boxed(
        "TD3",
        Calibrated(
            16_000, (0.057, 0.044, 0.041), "16000, the only budget tried; worst error of 64 seeds 0.028; cert 32/32"
        ),
    ),
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
