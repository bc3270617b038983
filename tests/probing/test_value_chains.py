"""Values and actions on short chains: the bootstrap, the discount, the indexing of actions."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing import Case, Estimator, Problem, Spec, ask, check
from ajax.probing.subjects import readings
from tests.probing.agents import make

GAMMA = 0.7  # 0.49 squared, 0.3 from 1: all far apart

CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)


def dqn_chain(name: str, title: str, **overrides) -> Case:
    problem = Problem(CHAIN, Estimator(gamma=GAMMA))

    def read(trained):
        q = trained.q(CHAIN.obs[:2])
        return np.stack([q[:, 0, 0], q[:, 0, 2], q[:, 1, 0], q[:, 1, 1], q[:, 1, 2]], 1)

    queries = tuple(ask(f"Q(s{s}, a={a})", problem, lambda x, s=s, a=a: x.q[s, a]) for s, a in DQN_READ)
    return Case(name, queries, readings(make("DQN", **overrides), CHAIN, read), title=title, **CALIBRATED)


DQN_READ = ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))
CERTIFIED = "smallest budget of 500, 1000, 2000, 4000; worst error of 64 seeds 0.008; cert 32/32"
CALIBRATED = {"budget": 1_000, "tolerances": (0.02,) * 5, "note": CERTIFIED}

CASES = {
    case.id: case
    for case in (
        dqn_chain("p0a-DQN", "DQN, two-step chain"),
        dqn_chain("p0a-DQN-double", "DQN (double), two-step chain", double=True),
    )
}

ANSWER_DIGEST = "8775fb739764"


@pytest.mark.parametrize("name", CASES)
def test_learns(name):
    check(CASES[name])
