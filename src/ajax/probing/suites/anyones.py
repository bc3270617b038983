"""The standard probes for a class of anyone's: value chains and episode ends, read through the methods that it has."""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.probing import Case, Estimator, Problem, ask
from ajax.probing.query import MOST
from ajax.probing.subjects import ClassSubject, readings
from ajax.probing.suites.episode_ends.discrete import ENDS, LOOP
from ajax.probing.suites.readings import q_case, v_case
from ajax.probing.suites.value_chains.discrete import CHAIN

BUDGET = 5_000  # environment steps: enough for an untuned learner on chains of two steps


def cases(subject: ClassSubject, gamma: float, budget: int = BUDGET) -> list[Case]:
    """Return the probes of a class with discrete actions; its methods `q`, `v` and `act` decide what is read.

    Nothing is calibrated for a learner that nobody has seen: each tolerance is the largest that can't reach a wrong
    answer.

    Args:
        subject: the class.
        gamma: the discount that it learns with.
        budget: environment steps of every training.
    """
    found = []
    for id, spec in (("chain", CHAIN), ("ends", ENDS), ("loop", LOOP)):
        problem, title = Problem(spec, Estimator(gamma=gamma)), f"{subject.name}, {spec.name}"
        states = [s for s, value in enumerate(problem.solve().v) if np.isfinite(value)]
        if hasattr(subject.make, "q"):
            pairs = [(s, a) for s in states for a in range(spec.n_actions)]
            found.append(q_case(f"{id}-{subject.name}", title, subject, problem, pairs))
        elif hasattr(subject.make, "v"):
            found.append(v_case(f"{id}-{subject.name}", title, subject, problem, states))
    if hasattr(subject.make, "act"):
        best = ask("greedy(s1)", Problem(CHAIN, Estimator(gamma=gamma)), lambda x: float(x.greedy[1]))
        read = readings(subject, CHAIN, lambda trained: trained.act(CHAIN.obs)[:, 1:2])
        found.append(Case(f"best-{subject.name}", (best,), read, 0, title=f"{subject.name}, best action"))
    return [_loose(case, budget) for case in found]


def _loose(case: Case, budget: int) -> Case:
    """The case with the largest tolerances, and without mistakes that `MOST` can't tell from the right answer."""
    queries = tuple(
        dataclasses.replace(q, wrong={name: x for name, x in q.wrong.items() if abs(x - q.right) > MOST})
        for q in case.queries
    )
    return dataclasses.replace(case, queries=queries, budget=budget, tolerances=tuple(q.cap for q in queries))
