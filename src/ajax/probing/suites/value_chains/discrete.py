"""Value chains with discrete actions: APO, DQN, PPO and PQN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.core.schedules import Linear
from ajax.probing import Case, Estimator, Problem, Query, Spec, ask
from ajax.probing.subjects import readings
from ajax.probing.suites.exact import train
from ajax.probing.suites.presets import REPLAY, make
from ajax.probing.suites.readings import Calibrated, q_case, v_case

GAMMA = 0.7  # 0.49 squared, 0.3 from 1: all far apart
TEMPERATURE = 0.5  # weight of PPO's entropy bonus
ANNEALED = Linear(start=3e-3, end=0.0)  # at a fixed step size, what is drawn at random never settles

CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)
FOUR = Spec.of(
    "chain of four rewards",
    lambda s, a: (min(s + 1, 4), (0.2, 0.4, 0.1, 0.8, 0.0)[s], s >= 3),
    n_states=5,
    n_actions=3,
    start=(0.5, 0.5, 0, 0, 0),
)
# Where the step from s0 leads is drawn: the error that it makes says which state follows.
SPLIT = Spec.of(
    "split",
    lambda s, a: [(0.5, 1, 0.8, False), (0.5, 2, 0.2, False)] if s == 0 else (3 if s < 3 else 4, 0.4, s >= 3),
    n_states=5,
    n_actions=3,
)
# Half of the steps start in each state, so that normalized the first feature is -1 and 1: raw, s1 looks like s0.
SHIFTED = Spec.of(
    "two-step chain, shifted observations",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, 1.0, True),
    n_states=3,
    n_actions=3,
    obs=[[-3.0], [-1.0], [-1.0]],
)
RAW_LOOKS = (0, 0, 2)
# The same observations; the best action is 0, then 1. Raw, both states look like the first.
TURN = Spec.of(
    "turn, shifted observations",
    lambda s, a: (1, float(a == 0), False) if s == 0 else (2, float(a == 1), True),
    n_states=3,
    n_actions=3,
    obs=[[-3.0], [-1.0], [-1.0]],
)
# Nothing ever ends: what counts is the average, half of what s1 pays.
CYCLE = Spec.of(
    "cycle",
    lambda s, a: (1, 0.0, False) if s == 0 else (0, (0.0, 0.5, 1.0)[a], False),
    n_states=2,
    n_actions=3,
)

Q_CHAIN = ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))
BEST = ask("greedy(s1)", Problem(CHAIN, Estimator(gamma=GAMMA)), lambda x: float(x.greedy[1]))
LEARNED = Calibrated(
    1_000, (0.02,) * 6, "smallest budget of 500, 1000, 2000, 4000; worst error of 64 seeds 0.008; cert 32/32"
)
GREEDY = Calibrated(
    10_240, (0.032, 0.031, 0.02), "smallest budget of 10240, 20480; worst error of 64 seeds 0.016; cert 32/32"
)
SOFT = Calibrated(
    10_240, (0.061, 0.085), "smallest budget of 10240, 20480, 40960; worst error of 64 seeds 0.042; cert 32/32"
)


def ppo_chain() -> Case:
    """V on the two-step chain once the policy has found the best action, and that action."""
    problem = Problem(CHAIN, Estimator(gamma=GAMMA))
    return v_case("p0a-PPO", "PPO, two-step chain", make("PPO", learning_rate=1e-3), problem, (0, 1), GREEDY, (BEST,))


def ppo_entropy() -> Case:
    """V under the policy that an entropy bonus of fixed weight keeps: the softmax of Q / weight."""
    estimator = Estimator(gamma=GAMMA, backup="soft", temperature=TEMPERATURE, entropy=0.0)
    subject = make("PPO", entropy_coef=TEMPERATURE, standardize_advantages=False, learning_rate=ANNEALED)
    return v_case("p1-PPO", "PPO, entropy bonus", subject, Problem(CHAIN, estimator), (0, 1), SOFT)


SETTLED = Calibrated(
    10_240, (0.02, 0.051, 0.02, 0.02), "10240, the only budget tried; worst error of 64 seeds 0.025; cert 32/32"
)


def apo_cycle() -> Case:
    """The best policy on a cycle, and what it is worth: differential values whose mean is 0, and the gain."""
    problem = Problem(CYCLE, Estimator(average=True))
    queries = (
        *(ask(f"V(s{s})", problem, lambda x, s=s: x.v[s]) for s in range(2)),
        ask("gain", problem, lambda x: x.gain),
        ask("greedy(s1)", problem, lambda x: float(x.greedy[1])),
    )

    def read(trained: Any) -> np.ndarray:
        return np.c_[trained.v(CYCLE.obs), trained.states.gain, trained.act(CYCLE.obs)[:, 1]]

    subject = make("APO", learning_rate=1e-3)
    return Case("p0a-APO", queries, readings(subject, CYCLE, read), title="APO, cycle", **SETTLED._asdict())


def normalized(agent: str) -> Problem:
    """The chain whose observations must be normalized before the bootstrap reads them."""
    estimator = Estimator(gamma=GAMMA, backup="policy", lam=0.95) if agent == "PPO" else Estimator(gamma=GAMMA)
    return Problem(SHIFTED, estimator, raw_looks=RAW_LOOKS)


def evaluated(calibrated: Calibrated) -> Case:
    """The return of evaluations, whose policy must see what it was trained on."""
    agent = make("DQN").agent

    def read(budget: int, seeds: Sequence[int]) -> np.ndarray:
        steps = max(budget, REPLAY.n_envs)  # untrained: a step of warm-up
        return train(agent, TURN, steps, seeds, evaluations=1, episodes=1, normalize_observations=True).returns

    query = Query("return of an evaluation", 2.0, {"normalizer skipped at evaluation": 1.0})
    return Case("p2e-DQN", (query,), read, title="DQN, evaluated on normalized observations", **calibrated._asdict())


CASES = (
    apo_cycle(),
    q_case(
        "p0a-DQN", "DQN, two-step chain", make("DQN"), Problem(CHAIN, Estimator(gamma=GAMMA)), Q_CHAIN, LEARNED, (BEST,)
    ),
    q_case(
        "p0a-DQN-double",
        "DQN (double), two-step chain",
        make("DQN", double=True),
        Problem(CHAIN, Estimator(gamma=GAMMA)),
        Q_CHAIN,
        LEARNED,
        (BEST,),
    ),
    q_case(
        "p0c-DQN",
        "DQN, three-step targets",
        make("DQN", n_step=3),
        Problem(FOUR, Estimator(gamma=GAMMA, n=3)),
        ((0, 1), (1, 1), (2, 1), (3, 1)),
        Calibrated(1_000, (0.02,) * 4, "smallest budget of 1000, 2000; worst error of 64 seeds 0.003; cert 32/32"),
    ),
    q_case(
        "p2-DQN",
        "DQN, normalized observations",
        make("DQN", normalize_observations=True),
        normalized("DQN"),
        ((0, 1), (1, 1)),
        Calibrated(1_000, (0.02,) * 2, "smallest budget of 1000, 2000; worst error of 64 seeds 0.003; cert 32/32"),
    ),
    evaluated(
        Calibrated(1_000, (0.02,), "1000, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    ppo_chain(),
    ppo_entropy(),
    v_case(
        "p7-PPO",
        "PPO, split",
        make("PPO", standardize_advantages=False, learning_rate=ANNEALED),
        Problem(SPLIT, Estimator(gamma=GAMMA, backup="policy", lam=0.95)),
        (1, 2),
        Calibrated(
            10_240, (0.029, 0.024), "smallest budget of 10240, 20480; worst error of 64 seeds 0.014; cert 32/32"
        ),
    ),
    v_case(
        "p2-PPO",
        "PPO, normalized observations",
        make("PPO", normalize_observations=True),
        normalized("PPO"),
        (0, 1),
        Calibrated(5_120, (0.02,) * 2, "smallest budget of 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    q_case(
        "p0a-PQN",
        "PQN, two-step chain, one-step targets",
        make("PQN", td_lambda=0.0),
        Problem(CHAIN, Estimator(gamma=GAMMA)),
        Q_CHAIN,
        Calibrated(
            2_560, (0.02,) * 6, "smallest budget of 1280, 2560, 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"
        ),
        (BEST,),
    ),
    q_case(
        "p1-PQN",
        "PQN, lambda returns",
        # the trace passes through the actions taken: all equally likely, they are known
        make("PQN", td_lambda=0.35, epsilon=1.0, learning_rate=ANNEALED),
        Problem(CHAIN, Estimator(gamma=GAMMA, lam=0.35)),
        ((0, 0), (0, 2), (1, 2)),
        Calibrated(
            10_240, (0.049, 0.047, 0.02), "10240, the only budget tried; worst error of 64 seeds 0.024; cert 32/32"
        ),
    ),
    q_case(
        "p2-PQN",
        "PQN, normalized observations",
        make("PQN", td_lambda=0.0, normalize_observations=True),
        normalized("PQN"),
        ((0, 1), (1, 1)),
        Calibrated(
            2_560, (0.02,) * 2, "smallest budget of 1280, 2560, 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"
        ),
    ),
)
