"""IQL's values and policy on recorded steps of the two-step chain in a box."""

from __future__ import annotations

import numpy as np

from ajax.probing import Case, Query
from ajax.probing.subjects import Trained, readings
from ajax.probing.suites.offline import ACTIONS, drawn, expectile, mistaken, paid, recorded
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import Calibrated
from ajax.probing.suites.value_chains.boxes import BOXED, GAMMA

EXPECTILE, BETA = 0.8, 2.0
APART = 0.1


def learned(values: np.ndarray, tau: float = EXPECTILE) -> dict[str, float]:
    """What IQL makes of the data's values in the second state."""
    v = expectile(values, tau)
    return {"Q(s0, a=1.8)": GAMMA * v, "V(s1)": v, "action(s1)": drawn(values, v, BETA)}


def iql(calibrated: Calibrated) -> Case:
    """Q and V of both states, and the policy's mean in the second."""
    values, q1 = paid(BOXED, 1, ACTIONS), float(paid(BOXED, 1, np.zeros(1))[0])
    right = {"Q(s1, a=0)": q1} | learned(values)
    v = right["V(s1)"]
    wrong = {
        "reward with the wrong sign": {"Q(s1, a=0)": -q1} | learned(-values),
        "sum of two critics for their minimum": learned(2 * values),
        "expectile's weights on the wrong side": learned(values, 1 - EXPECTILE),
        "mean instead of the expectile": learned(values, 0.5),
        "max instead of the expectile": learned(values, 1.0),
        "discount squared": {"Q(s0, a=1.8)": GAMMA**2 * v},
        "no discount": {"Q(s0, a=1.8)": v},
        "1 - discount for the discount": {"Q(s0, a=1.8)": (1 - GAMMA) * v},
        "no bootstrap": {"Q(s0, a=1.8)": 0.0},
        "bootstrap from the observation acted on": {"Q(s0, a=1.8)": 0.0},
        **{name: {"action(s1)": x} for name, x in mistaken(values, v, BETA).items()},
    }

    def ask(name: str) -> Query:
        found = {mistake: shown[name] for mistake, shown in wrong.items() if name in shown}
        return Query(name, right[name], {mistake: x for mistake, x in found.items() if abs(x - right[name]) >= APART})

    queries = tuple(ask(name) for name in ("Q(s0, a=1.8)", "Q(s1, a=0)", "V(s1)", "action(s1)"))

    def read(trained: Trained) -> np.ndarray:
        obs = BOXED.obs[:2]
        q = trained.q(obs, np.array([[1.8], [0.0]]))
        return np.stack([*q.T, trained.v(obs)[:, 1], trained.act(obs)[:, 1, 0]], 1)

    subject = make("IQL", dataset=recorded, expectile=EXPECTILE, beta=BETA)
    title = "IQL, recorded steps of a two-step chain"
    return Case("p0a-IQL", queries, readings(subject, BOXED, read), title=title, **calibrated._asdict())


CASES = (
    iql(
        Calibrated(
            4_000,
            (0.032, 0.02, 0.036, 0.057),
            "4000, the only budget tried; worst error of 64 seeds 0.028; cert 32/32",
        )
    ),
)
