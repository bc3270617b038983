"""PPO in a box: its policy's mode maximizes the reward, and beyond the box it is executed at the edge."""

from __future__ import annotations

from ajax.core.spaces import Box
from ajax.probing import Actor, Case, Estimator, Problem, Spec, ask, parabola
from ajax.probing.subjects import readings
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

BEST = (-1.5, 1.2, 3.0)  # below, inside and above the box
BOX = Spec.of(
    "three bandits in a box",
    lambda s, r: (3, 0.0, True),
    n_states=4,
    start=(1 / 3, 1 / 3, 1 / 3, 0),
    box=Box.of([-0.5], [2.0]),
    quadratic=lambda s: parabola(BEST[s]) if s < 3 else (0, 0, 0),
)


def box_case(calibrated: Calibrated = UNCALIBRATED) -> Case:
    """The action read in each bandit."""
    problem = Problem(BOX, Estimator(gamma=0.7, backup="policy"), Actor(stochastic=False))
    queries = tuple(ask(f"action(s{s})", problem, lambda x, s=s: x.action[s, 0]) for s in range(3))
    subject = make("PPO", learning_rate=1e-3, entropy_coef=0.03)
    read = readings(subject, BOX, lambda trained: trained.act(BOX.obs)[:, :3, 0])
    return Case("box-PPO", queries, read, title="PPO, actions in a box", **calibrated._asdict())


CASES = (
    box_case(
        Calibrated(
            40_960,
            (0.02, 0.081, 0.02),
            "smallest budget of 10240, 20480, 40960; worst error of 64 seeds 0.040; cert 32/32",
        )
    ),
)
