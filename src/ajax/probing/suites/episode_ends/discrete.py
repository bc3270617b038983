"""Episode ends with discrete actions: APO, DQN, PPO, PQN. Whatever the policy, the answers are the same."""

from __future__ import annotations

import dataclasses
from typing import Any

from ajax.core.schedules import Linear
from ajax.probing import Case, Estimator, Problem, Spec
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated, q_case, v_case

GAMMA = 0.7
REWARD = 0.3  # for ever, it is worth 1

DQN_VALUES = Estimator(gamma=GAMMA)
PPO_VALUES = Estimator(gamma=GAMMA, backup="policy", lam=0.95)
APO_VALUES = Estimator(average=True, backup="policy", lam=0.5)
PQN_VALUES = Estimator(gamma=GAMMA, lam=0.65)

# s0 and s1 stay where they are, cut after one step; s2 ends the task and shows s1, so that a bootstrap there pays.
ENDS = Spec.of(
    "three ends",
    lambda s, a: (1, 0.0, True) if s == 2 else (s, REWARD * s, False),
    n_states=3,
    n_actions=3,
    start=(1 / 3, 1 / 3, 1 / 3),
    limit=1,
)
# Every episode is one step, cut at s1 or ended there: a bootstrap from s0 beyond the end costs.
TWO_ENDS = Spec.of(
    "two ends", lambda s, a: (1 - s, 1.0 * s, s == 1), n_states=2, n_actions=3, start=(0.5, 0.5), limit=1
)
LOOP = Spec.of("loop", lambda s, a: (0, REWARD, False), n_states=1, n_actions=3, limit=5, stagger=5)
# Both rewards are one deviation, 3, from 0: scaled once they are -1 and 1, twice -1/3 and 1/3.
TWO = Spec.of("two rewards", lambda s, a: (s, 6.0 * s - 3.0, True), n_states=2, n_actions=3, start=(0.5, 0.5))
ENDLESS = Spec.of("endless loop", lambda s, a: (0, REWARD, False), n_states=1, n_actions=3)


UNHELD: dict[str, Any] = {"value_constraint": 0.0, "gain_rate": 0.03, "learning_rate": Linear(start=3e-3, end=0.0)}
SHORT: dict[str, Any] = {"rollout.n_steps": 2, "rollout.n_envs": 64}


def rollout_ends(agent: str, values: Estimator, calibrated: Calibrated) -> Case:
    """Rollouts of two steps end in the middle of an episode, which goes on."""
    right, id, title = Problem(ENDLESS, values), f"p6c-{agent}", f"{agent}, ends of rollouts"
    # the mean of a rollout's two rows, whose targets are r + gamma ((1 - lambda) V + lambda r) and r
    gamma, lam = values.gamma, values.lam
    wrong = REWARD * (2 + gamma * lam) / (2 - gamma * (1 - lam))
    subject = make(agent, SHORT, gamma=values.gamma)
    if agent == "PPO":
        case = v_case(id, title, subject, right, (0,), calibrated)
    else:
        case = q_case(id, title, subject, right, ((0, 1),), calibrated)
    query = dataclasses.replace(
        case.queries[0], wrong={**case.queries[0].wrong, "rollout's end taken as a termination": wrong}
    )
    return dataclasses.replace(case, queries=(query,))


CASES = (
    v_case(
        "p6-APO",
        "APO, two ends",
        # a terminal state's value is 0: the constraint, which is for tasks without one, would hold another to it
        make("APO", UNHELD),
        Problem(TWO_ENDS, APO_VALUES),
        (0, 1),
        Calibrated(20_480, (0.055, 0.028), "20480, the only budget tried; worst error of 64 seeds 0.027; cert 32/32"),
    ),
    q_case(
        "p6-DQN",
        "DQN, three ends",
        make("DQN"),
        Problem(ENDS, DQN_VALUES),
        ((0, 1), (1, 1), (2, 1)),
        Calibrated(2_000, (0.02,) * 3, "smallest budget of 1000, 2000; worst error of 64 seeds 0.001; cert 32/32"),
    ),
    q_case(
        "p6b-DQN",
        "DQN, loop of five, out of step",
        make("DQN"),
        Problem(LOOP, DQN_VALUES),
        ((0, 1),),
        Calibrated(1_000, (0.07,), "smallest budget of 1000, 2000; worst error of 64 seeds 0.035; cert 32/32"),
    ),
    q_case(
        "p5-DQN",
        "DQN, normalized rewards",
        make("DQN", normalize_rewards=True),
        Problem(TWO, dataclasses.replace(DQN_VALUES, reward_scale=1 / 3)),
        ((0, 1), (1, 1)),
        Calibrated(1_000, (0.02,) * 2, "smallest budget of 1000, 2000; worst error of 64 seeds 0.003; cert 32/32"),
    ),
    v_case(
        "p6-PPO",
        "PPO, three ends",
        make("PPO"),
        Problem(ENDS, PPO_VALUES),
        (0, 1, 2),
        Calibrated(5_120, (0.02,) * 3, "smallest budget of 5120, 10240; worst error of 64 seeds 0.005; cert 32/32"),
    ),
    v_case(
        "p6b-PPO",
        "PPO, loop of five, out of step",
        make("PPO"),
        Problem(LOOP, PPO_VALUES),
        (0,),
        Calibrated(5_120, (0.02,), "smallest budget of 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    rollout_ends(
        "PPO",
        dataclasses.replace(PPO_VALUES, gamma=0.8),  # at 0.7 the mistake's answer is that of 1 - discount
        Calibrated(5_120, (0.02,), "smallest budget of 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    v_case(
        "p5-PPO",
        "PPO, normalized rewards",
        make("PPO", normalize_rewards=True),
        Problem(TWO, dataclasses.replace(PPO_VALUES, reward_scale=1 / 3)),
        (0, 1),
        Calibrated(5_120, (0.02,) * 2, "smallest budget of 5120, 10240; worst error of 64 seeds 0.001; cert 32/32"),
    ),
    q_case(
        "p6-PQN",
        "PQN, three ends",
        make("PQN"),
        Problem(ENDS, PQN_VALUES),
        ((0, 1), (1, 1), (2, 1)),
        Calibrated(5_120, (0.02,) * 3, "smallest budget of 2560, 5120; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    q_case(
        "p6b-PQN",
        "PQN, loop of five, out of step",
        make("PQN"),
        Problem(LOOP, PQN_VALUES),
        ((0, 1),),
        Calibrated(2_560, (0.02,), "smallest budget of 2560, 5120; worst error of 64 seeds 0.002; cert 32/32"),
    ),
    rollout_ends(
        "PQN",
        PQN_VALUES,
        Calibrated(5_120, (0.02,), "5120, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
    ),
)
