"""Value chains with discrete actions: DQN and PPO."""

from __future__ import annotations

import numpy as np

from ajax.probing import Case, Estimator, Problem, Spec, ask
from ajax.probing.subjects import readings
from ajax.probing.suites.presets import make

GAMMA = 0.7  # 0.49 squared, 0.3 from 1: all far apart

CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)
READ = ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))
CERTIFIED = "smallest budget of 500, 1000, 2000, 4000; worst error of 64 seeds 0.008; cert 32/32"


def dqn_chain(name: str, title: str, **overrides) -> Case:
    """Q on the two-step chain, for every action that tells mistakes apart."""
    problem = Problem(CHAIN, Estimator(gamma=GAMMA))

    def read(trained):
        q = trained.q(CHAIN.obs[:2])
        return np.stack([q[:, s, a] for s, a in READ], 1)

    queries = tuple(ask(f"Q(s{s}, a={a})", problem, lambda x, s=s, a=a: x.q[s, a]) for s, a in READ)
    subject = make("DQN", **overrides)
    return Case(name, queries, readings(subject, CHAIN, read), 1_000, (0.02,) * len(READ), title, CERTIFIED)


CASES = (
    dqn_chain("p0a-DQN", "DQN, two-step chain"),
    dqn_chain("p0a-DQN-double", "DQN (double), two-step chain", double=True),
)
