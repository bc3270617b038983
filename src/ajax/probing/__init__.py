"""Probes: tiny environments with exactly known answers, and verdicts that name an agent's mistake.

The harness knows no agent. Write the environment as a `Spec`, say what the agent should estimate on it as a
`Problem`, `ask` for numbers to read off the trained agent, make a `Case` of them, and `judge` it.

Names are loaded when they are first used, so that the command line starts without the oracles.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ajax.probing.box_oracle import Actor as Actor
    from ajax.probing.mistakes import MISTAKES as MISTAKES
    from ajax.probing.mistakes import Problem as Problem
    from ajax.probing.mistakes import answers as answers
    from ajax.probing.oracle import Estimator as Estimator
    from ajax.probing.query import Case as Case
    from ajax.probing.query import Query as Query
    from ajax.probing.query import ask as ask
    from ajax.probing.spec import Spec as Spec
    from ajax.probing.spec import parabola as parabola
    from ajax.probing.verdict import ProbeFailure as ProbeFailure
    from ajax.probing.verdict import Verdict as Verdict
    from ajax.probing.verdict import check as check
    from ajax.probing.verdict import judge as judge

_HOMES = {
    "Actor": "box_oracle",
    "MISTAKES": "mistakes",
    "Problem": "mistakes",
    "answers": "mistakes",
    "Estimator": "oracle",
    "Case": "query",
    "Query": "query",
    "ask": "query",
    "Spec": "spec",
    "parabola": "spec",
    "ProbeFailure": "verdict",
    "Verdict": "verdict",
    "check": "verdict",
    "judge": "verdict",
}
"""Public name: the file of this package it lives in."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ajax.probing' has no attribute {name!r}. It has {', '.join(__all__)}.")
    value = getattr(importlib.import_module(f"ajax.probing.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
