"""Value chains with actions in a box, and SAC's with discrete ones: SAC and TD3."""

from __future__ import annotations

import numpy as np

from ajax.probing import Actor, Case, Estimator, Problem, Spec, ask, parabola
from ajax.probing.subjects import Trained, readings
from ajax.probing.suites.boxes import BOX, box_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.value_chains.discrete import CHAIN

GAMMA = 0.7
TEMPERATURE = 0.8
SOFT = Estimator(gamma=GAMMA, temperature=TEMPERATURE)

# the first step's action is free; the second's is best at 1.8
BOXED = Spec.of(
    "two-step chain in a box",
    lambda s, region: (1, 0.0, False) if s == 0 else (2, 0.0, True),
    n_states=3,
    box=BOX,
    quadratic=lambda s: parabola(1.8, 1.0, 0.2) if s == 1 else (0.0, 0.0, 0.0),
)
PLACES = ((0, 1.8), (1, 0.0), (1, 1.8))


def sac_discrete() -> Case:
    """Soft values of a chain with three actions."""
    problem = Problem(CHAIN, Estimator(gamma=GAMMA, backup="soft", temperature=0.5))
    states, actions = np.array(READ).T

    def read(trained: Trained) -> np.ndarray:
        return trained.q(CHAIN.obs[states], actions)

    queries = tuple(ask(f"Q(s{s}, a={a})", problem, lambda x, s=s, a=a: x.q[s, a]) for s, a in READ)
    subject = make("SAC", alpha=0.5)
    title = "SAC (discrete), two-step chain"
    return Case("p0a-SAC-discrete", queries, readings(subject, CHAIN, read), title=title, **SETTLED._asdict())


SETTLED = Calibrated(4_000, (0.02,) * 5, "4000, the only budget tried; worst error of 64 seeds below 0.001; cert 32/32")
READ = ((0, 0), (0, 2), (1, 0), (1, 1), (1, 2))
CASES = (
    box_case(
        "p0a-SAC",
        "SAC, two-step chain in a box",
        make("SAC", alpha=TEMPERATURE),
        Problem(BOXED, SOFT, Actor()),
        q=PLACES[:2],
        calibrated=Calibrated(
            4_000, (0.053, 0.089), "4000, the only budget tried; worst error of 64 seeds 0.044; cert 32/32"
        ),
    ),
    box_case(
        "p0a-TD3",
        "TD3, two-step chain in a box",
        make("TD3", target_noise=1.0),
        Problem(BOXED, Estimator(gamma=GAMMA), Actor(stochastic=False, noise=1.0, noise_clip=0.5)),
        q=PLACES,
        calibrated=Calibrated(
            8_000,
            (0.022, 0.066, 0.021),
            "8000, the only budget tried on 64 seeds; worst error of 64 seeds 0.033; cert 32/32",
        ),
    ),
    sac_discrete(),
)
