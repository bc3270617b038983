"""What IQL makes of recorded steps: V is an expectile of the data's values, the policy a mean of the data's actions."""

from __future__ import annotations

import numpy as np

from ajax.buffers.dataset import Dataset
from ajax.probing import Spec
from ajax.probing.oracle import reachable
from ajax.probing.suites.boxes import BOX

EACH = 60
LOW, HIGH = (float(np.ravel(bound)[0]) for bound in (BOX.low, BOX.high))
ACTIONS = np.linspace(LOW, HIGH, 2 * EACH + 1)[1::2]
"""What was done in every state, each as often: the middles of equal parts of the box."""
MAX_WEIGHT = 100.0


def recorded(spec: Spec) -> Dataset:
    """One step with each action in each state that is acted in; only rewards depend on actions."""
    acting = np.flatnonzero(reachable(spec))
    state, action = np.repeat(acting, EACH), np.tile(ACTIONS, len(acting)).astype(np.float32)
    reward = np.concatenate([paid(spec, int(s), ACTIONS) for s in acting])
    to, terminated = spec.next_state[state, 0, 0], spec.terminated[state, 0, 0]
    return Dataset(spec.obs[state], action[:, None], reward, terminated, spec.obs[to])


def paid(spec: Spec, state: int, action: np.ndarray) -> np.ndarray:
    """What actions are paid in a state."""
    constant, linear, square = spec.quadratic[state, 0]
    return constant + linear * action + square * action**2


def expectile(values: np.ndarray, tau: float) -> float:
    """The m at which tau times the mean excess over m is 1 - tau times the mean lack."""
    low, high = values.min(), values.max()
    for _ in range(60):
        m = (low + high) / 2
        excess = tau * np.maximum(values - m, 0).mean() - (1 - tau) * np.maximum(m - values, 0).mean()
        low, high = (m, high) if excess > 0 else (low, m)
    return float(m)


def drawn(values: np.ndarray, v: float, beta: float, actions: np.ndarray = ACTIONS) -> float:
    """The mean of the data's actions, each weighed by exp(beta (Q - V))."""
    weight = np.minimum(np.exp(beta * (values - v)), MAX_WEIGHT)
    return float(weight @ actions / weight.sum())


def mistaken(values: np.ndarray, v: float, beta: float) -> dict[str, float]:
    """What the policy's mean is under each named mistake."""
    right = drawn(values, v, beta)
    return {
        "weights ignored": float(ACTIONS.mean()),
        "advantage with the wrong sign": drawn(values, v, -beta),
        "beta divides instead of multiplying": drawn(values, v, 1 / beta),
        "the best action instead of the weighed mean": float(ACTIONS[values.argmax()]),
        "actions read in agent units": 2 * (right - LOW) / (HIGH - LOW) - 1,
        "recorded actions clamped to [-1, 1]": drawn(values, v, beta, np.clip(ACTIONS, -1, 1)),
        "recorded actions taken for agent units": LOW + (np.clip(right, -1, 1) + 1) / 2 * (HIGH - LOW),
    }
