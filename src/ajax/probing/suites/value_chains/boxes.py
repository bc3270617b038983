"""Value chains with actions in a box, and SAC's with discrete ones: AVG, SAC and TD3."""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.core.schedules import Linear
from ajax.probing import Actor, Case, Estimator, Problem, Spec, ask, parabola
from ajax.probing.oracle import entropy, solve
from ajax.probing.subjects import Trained, readings
from ajax.probing.suites.boxes import BOX, box_case
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.value_chains.discrete import CHAIN, RAW_LOOKS

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
# as the chain of `discrete`: normalized, the first feature is -1 and 1; raw, s1 looks like s0
SHIFTED_BOXED = Spec.of(
    "two-step chain in a box, shifted observations",
    lambda s, region: (1, 0.0, False) if s == 0 else (2, 1.0, True),
    n_states=3,
    box=BOX,
    obs=[[-3.0], [-1.0], [-1.0]],
)
MIDDLE = 0.75  # of the box
PLACES = ((0, 1.8), (1, 0.0), (1, 1.8))
PROBLEMS = {
    "SAC": Problem(BOXED, SOFT, Actor()),
    "TD3": Problem(BOXED, Estimator(gamma=GAMMA), Actor(stochastic=False, noise=1.0, noise_clip=0.5)),
}


def normalized(agent: str, calibrated: Calibrated) -> Case:
    """The chain whose observations must be normalized before the bootstrap reads them."""
    actor, temperature = (Actor(), 0.2) if agent == "SAC" else (Actor(stochastic=False), 0.0)
    problem = Problem(SHIFTED_BOXED, Estimator(gamma=GAMMA, temperature=temperature), actor, raw_looks=RAW_LOOKS)
    return box_case(
        f"p2-{agent}",
        f"{agent}, normalized observations",
        make(agent, normalize_observations=True),
        problem,
        q=((0, MIDDLE), (1, MIDDLE)),
        mistakes=("normalizer skipped in the target", "no discount", "discount squared", "no bootstrap"),
        calibrated=calibrated,
    )


def tuned(calibrated: Calibrated) -> Case:
    """The temperature that gives the policy, over both states of the chain, the entropy it is tuned to."""

    def estimator(temperature: float) -> Estimator:
        return Estimator(gamma=GAMMA, backup="soft", temperature=temperature)

    def excess(temperature: float) -> float:
        return float(entropy(solve(CHAIN, estimator(temperature)).policy[:2]).mean()) - ENTROPY

    from scipy.optimize import brentq

    right = Problem(CHAIN, estimator(brentq(excess, 0.05, 5.0, xtol=1e-9)))
    query = ask("Q(s0, a=0)", right, lambda x: x.q[0, 0])
    never = {"temperature not tuned": float(solve(CHAIN, estimator(FIRST)).q[0, 0])}
    query = dataclasses.replace(query, wrong={**query.wrong, **never})
    subject = make("SAC", alpha=FIRST, alpha_learning_rate=Linear(start=1e-2, end=1e-5), target_entropy=ENTROPY)
    read = readings(subject, CHAIN, lambda trained: trained.q(CHAIN.obs[:1], np.array([0])))
    title = "SAC (discrete), tuned temperature"
    return Case("p1-SAC-discrete", (query,), read, title=title, **calibrated._asdict())


FIRST, ENTROPY = 0.2, 1.02  # the temperature that learning starts at; nats, of the 1.10 of three equal actions


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
        "p0a-AVG",
        "AVG, two-step chain in a box",
        make("AVG", alpha=TEMPERATURE),
        Problem(BOXED, SOFT, Actor()),
        q=PLACES[:2],
        calibrated=Calibrated(
            8_000, (0.041, 0.043), "8000, the only budget tried; worst error of 64 seeds 0.021; cert 32/32"
        ),
    ),
    box_case(
        "p0a-SAC",
        "SAC, two-step chain in a box",
        make("SAC", alpha=TEMPERATURE),
        PROBLEMS["SAC"],
        q=PLACES[:2],
        calibrated=Calibrated(
            4_000, (0.053, 0.089), "4000, the only budget tried; worst error of 64 seeds 0.044; cert 32/32"
        ),
    ),
    box_case(
        "p0a-TD3",
        "TD3, two-step chain in a box",
        make("TD3", target_noise=1.0),
        PROBLEMS["TD3"],
        q=PLACES,
        calibrated=Calibrated(
            8_000,
            (0.022, 0.066, 0.021),
            "8000, the only budget tried on 64 seeds; worst error of 64 seeds 0.033; cert 32/32",
        ),
    ),
    sac_discrete(),
    tuned(
        Calibrated(4_000, (0.02,), "4000, the only budget tried; worst error of 64 seeds 0.004; cert 32/32"),
    ),
    normalized(
        "SAC",
        Calibrated(4_000, (0.02, 0.028), "4000, the only budget tried; worst error of 64 seeds 0.014; cert 32/32"),
    ),
    normalized(
        "TD3",
        Calibrated(4_000, (0.025, 0.02), "4000, the only budget tried; worst error of 64 seeds 0.012; cert 32/32"),
    ),
)
