"""Extensions with discrete actions: APO, DQN, PPO and PQN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.core.agent import Agent
from ajax.probing import Case, Query, Spec
from ajax.probing.subjects import AjaxSubject, Trained, readings
from ajax.probing.suites.bookkeeping import discrete as bookkeeping
from ajax.probing.suites.exact import Fact, exact_case, train
from ajax.probing.suites.extensions.known import ConstantTarget, Counter, FirstAction, QTerm, VTerm, total
from ajax.probing.suites.presets import make
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

CONSTANT, WEIGHT = 0.8, 0.5
REWARDS = (0.0, 1.0, 0.0)  # of s0 and s1, in which every episode is one step
TWO = Spec.of("two bandits", lambda s, a: (2, REWARDS[s] + 0.1 * a, True), n_states=3, n_actions=3, start=(0.5, 0.5, 0))
LAST = 2  # the best action


def term_case(id: str, title: str, subject: AjaxSubject, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """A constant target, then a term in the critic's loss that is given it; the last action's values are read."""

    def query(s: int) -> Query:
        own = REWARDS[s] + 0.1 * LAST
        wrong = {
            "extension's target ignored": (1 - WEIGHT) * own,
            "extension's target reaches its term alone": own - WEIGHT * CONSTANT,
            "extension's term without a gradient": CONSTANT,
            "extension's term with the wrong sign": (1 + WEIGHT) * CONSTANT,
            "term given the agent's own target": CONSTANT - WEIGHT * own,
            "extensions ignored": own,
        }
        return Query(f"value of s{s}", (1 - WEIGHT) * CONSTANT, wrong)

    def read(trained: Trained) -> np.ndarray:
        return trained.q(TWO.obs)[:, :2, LAST] if subject.name in ("DQN", "PQN") else trained.v(TWO.obs)[:, :2]

    return Case(id, (query(0), query(1)), readings(subject, TWO, read), title=title, **calibrated._asdict())


def actor_case(agent: str, calibrated: Calibrated = UNCALIBRATED) -> Case:
    """A term in the actor's loss that outweighs the rewards."""
    subject = make(agent, extensions=(FirstAction(weight=4.0),))
    ignored = {"extension's term without a gradient": LAST}
    queries = tuple(Query(f"greedy(s{s})", 0.0, ignored) for s in (0, 1))
    read = readings(subject, TWO, lambda trained: trained.act(TWO.obs)[:, :2])
    return Case(f"p3a-{agent}", queries, read, title=f"{agent}, term in the actor's loss", **calibrated._asdict())


def counted(agent: Agent, budget: int, seeds: Sequence[int]) -> Any:
    """A run with a `Counter`."""
    return train(agent, bookkeeping.WALK, budget, seeds, extensions=(Counter(),))


def counts(updates: int, warmup: int = 0) -> list[Fact]:
    """What a `Counter` has seen of `updates` updates, after a warm-up in which as many as `warmup` had fitted."""

    def kept(r: Any, lane: int) -> Any:
        return r.run(lane).own[0]

    return [
        Fact(
            "updates seen",
            updates,
            {"post_update never called": 0, "extension's state not kept": 1},
            lambda r, lane: int(kept(r, lane)[0]),
        ),
        Fact(
            "index of the last update",
            updates - 1,
            {
                "update counted before it is numbered": updates,
                **({"updates counted from the run's start": updates - 1 + warmup} if warmup else {}),
                "post_update never called": -1,
            },
            lambda r, lane: int(kept(r, lane)[1]),
        ),
        Fact(
            "state shown is the one after the update",
            1,
            {"post_update before the update": 0, "post_update never called": 0},
            lambda r, lane: np.isclose(kept(r, lane)[2], total(r.run(lane).agent), rtol=1e-5),
        ),
    ]


def rollout_counts(name: str) -> Case:
    """What a `Counter` has seen of an agent that learns from rollouts: 36 updates."""
    agent = make(name, bookkeeping.SIZES).agent
    steps = bookkeeping.ROLLOUT_STEPS
    return exact_case(
        f"p3c-{name}", f"{name}, post_update", steps, lambda b, seeds: counted(agent, b, seeds), counts(36)
    )


CASES = (
    term_case(
        "p3-DQN",
        "DQN, constant target and term",
        make("DQN", extensions=(ConstantTarget(value=CONSTANT), QTerm(weight=WEIGHT))),
        Calibrated(1_000, (0.02,) * 2, "smallest budget of 1000, 2000; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    term_case(
        "p3-PPO",
        "PPO, constant target and term",
        make("PPO", extensions=(ConstantTarget(value=CONSTANT), VTerm(weight=WEIGHT))),
        Calibrated(5_120, (0.02,) * 2, "smallest budget of 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    actor_case(
        "APO", Calibrated(2_560, (0.02,) * 2, "2560, the only budget tried; worst error of 64 seeds 0.000; cert 32/32")
    ),
    actor_case(
        "PPO",
        Calibrated(5_120, (0.02,) * 2, "smallest budget of 5120, 10240; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    term_case(
        "p3-APO",
        "APO, constant target and term",
        make("APO", extensions=(ConstantTarget(value=CONSTANT), VTerm(weight=WEIGHT))),
        Calibrated(5_120, (0.02,) * 2, "5120, the only budget tried; worst error of 64 seeds 0.003; cert 32/32"),
    ),
    term_case(
        "p3-PQN",
        "PQN, constant target and term",
        make("PQN", extensions=(ConstantTarget(value=CONSTANT), QTerm(weight=WEIGHT))),
        Calibrated(2_560, (0.02,) * 2, "2560, the only budget tried; worst error of 64 seeds 0.000; cert 32/32"),
    ),
    exact_case(
        "p3c-DQN",
        "DQN, post_update",
        bookkeeping.DQN_STEPS,
        lambda budget, seeds: counted(bookkeeping.DQN, budget, seeds),
        counts(60, warmup=6),
    ),
    rollout_counts("APO"),
    rollout_counts("PPO"),
    rollout_counts("PQN"),
)
