"""Probes: tiny environments with exactly known answers, and verdicts that name an agent's mistake.

The harness knows no agent. Write the environment as a `Spec`, say what the agent should estimate on it as a
`Problem`, `ask` for numbers to read off the trained agent, make a `Case` of them, and `judge` it.
"""

from ajax.probing.box_oracle import Actor
from ajax.probing.mistakes import MISTAKES, Problem, answers
from ajax.probing.oracle import Estimator
from ajax.probing.query import Case, Query, ask
from ajax.probing.spec import Spec, parabola
from ajax.probing.verdict import ProbeFailure, Verdict, check, judge

__all__ = [
    "MISTAKES",
    "Actor",
    "Case",
    "Estimator",
    "ProbeFailure",
    "Problem",
    "Query",
    "Spec",
    "Verdict",
    "answers",
    "ask",
    "check",
    "judge",
    "parabola",
]
