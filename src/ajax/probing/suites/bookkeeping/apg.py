"""Bookkeeping of APG, on the tasks of the other agents that learn from rollouts, with actions in a box."""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.probing import Case, Spec
from ajax.probing.suites.bookkeeping.discrete import COIN, DRIFT, SIZES, STAY, rollout_case
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.presets import make

SLIGHT = 1e-8  # weight of the action in the reward: something to differentiate that no return shows


def boxed(spec: Spec) -> Spec:
    """The same task, whose actions are regions of a box."""
    curves = np.zeros((spec.n_states, 1, 3))
    curves[..., 1] = SLIGHT
    return dataclasses.replace(spec, box=BOX, edges=(0.0, 1.5), quadratic=curves)


CASES: tuple[Case, ...] = (rollout_case(make("APG", SIZES).agent, "actor", [boxed(s) for s in (COIN, DRIFT, STAY)]),)
