"""What the episodes of a Spec say of its actions: P(a | s, return, horizon), exactly, and under named mistakes.

An agent that follows commands (upside-down reinforcement learning, Srivastava et al. 2019, arXiv:1912.02877) learns
which action a segment of an episode began with, given the state it began in, its rewards' sum and its length. Where
actions are drawn from a known policy, that conditional distribution is a sum over all episodes. A mistake changes which
examples are made of an episode, nothing else, so its answer is computed by the same code.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np

from ajax.probing.oracle import uniform_policy
from ajax.probing.query import Query
from ajax.probing.spec import Spec

DIGITS = 6  # of commands that are one command
JOINED = 6  # steps of the longest row of joined episodes; a segment says the same wherever in a row it begins
LONGEST = 64  # steps of an episode, beyond which it is taken not to end


class Step(NamedTuple):
    """A step of an episode."""

    state: int
    action: int
    reward: float


class Episode(NamedTuple):
    """An episode with its probability, and how it ended."""

    probability: float
    steps: tuple[Step, ...]
    end: Literal["terminated", "truncated"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hindsight:
    """Which examples an agent makes of an episode.

    Attributes:
        trailing: whether a segment runs to the episode's end, or to any later step.
        returns: which rewards are summed: the segment's (`"segment"`), those after its first (`"after"`), the whole
            episode's (`"episode"`), or the first one alone (`"first"`).
        return_seen, horizon_seen: whether the network sees that part of the command.
        keeps: which episodes are learned from: all, or those that ended so.
        joined: whether an episode that a time limit cut goes on in the next one.
        shift: which action is learned: that of so many steps later (the last one's, beyond the end).
        index: a constant added to the actions' index (modulo A).
    """

    trailing: bool = True
    returns: Literal["segment", "after", "episode", "first"] = "segment"
    return_seen: bool = True
    horizon_seen: bool = True
    keeps: Literal["all", "terminated", "truncated"] = "all"
    joined: bool = False
    shift: int = 0
    index: int = 0


MISTAKES: dict[str, dict] = {
    "segments end where their episodes do": {"trailing": True},
    "segments end anywhere": {"trailing": False},
    "return of the whole episode": {"returns": "episode"},
    "return without the first reward": {"returns": "after"},
    "first reward for the return": {"returns": "first"},
    "desired return not seen": {"return_seen": False},
    "desired horizon not seen": {"horizon_seen": False},
    "command not seen": {"return_seen": False, "horizon_seen": False},
    "episodes that a time limit cut are lost": {"keeps": "terminated"},
    "episodes go on beyond a time limit": {"joined": True},
    "episodes that terminated are lost": {"keeps": "truncated"},
    "action of the step after": {"shift": 1},
    "actions shifted up by one": {"index": 1},
    "actions shifted down by one": {"index": -1},
}
"""By name, what of `Hindsight` a mistake changes."""


def episodes(spec: Spec, policy: np.ndarray | None = None, joined: int = 0) -> Iterator[Episode]:
    """Return every episode of a Spec whose clock starts at 0, under a policy (S, A), uniform by default.

    Args:
        spec: the task.
        policy: how actions are drawn.
        joined: where not 0, what a time limit cuts goes on in the next episode, in all for at most so many steps;
            what has not terminated by then is left out.

    Raises:
        RuntimeError: episodes may go on for ever, or start out of step.
    """
    if spec.stagger > 1:
        raise RuntimeError(f"{spec.name!r}: episodes that start out of step can't be listed")
    policy = uniform_policy(spec) if policy is None else policy

    limit = math.inf if spec.limit is None else spec.limit

    def begin(probability: float, steps: tuple[Step, ...]) -> Iterator[Episode]:
        for state in np.flatnonzero(spec.start):
            yield from follow(int(state), probability * float(spec.start[state]), steps, 0)

    def follow(state: int, probability: float, steps: tuple[Step, ...], clock: int) -> Iterator[Episode]:
        if len(steps) > LONGEST:
            raise RuntimeError(f"{spec.name!r}: an episode of more than {LONGEST} steps; give it a limit")
        for action in np.flatnonzero(policy[state]):
            for k in np.flatnonzero(spec.probability[state, action]):
                p = probability * policy[state, action] * spec.probability[state, action, k]
                taken = (*steps, Step(state, int(action), float(spec.reward[state, action, k])))
                if spec.terminated[state, action, k]:
                    yield Episode(p, taken, "terminated")
                elif clock + 1 < limit:
                    yield from follow(int(spec.next_state[state, action, k]), p, taken, clock + 1)
                elif not joined:
                    yield Episode(p, taken, "truncated")
                elif len(taken) < joined:
                    yield from begin(p, taken)

    yield from begin(1.0, ())


def conditional(
    spec: Spec, state: int, command: tuple[float, float], hindsight: Hindsight | None = None
) -> np.ndarray | None:
    """Return P(a | state, command) over the A actions, or None where no segment has this command.

    Args:
        spec: the task, whose actions are drawn uniformly.
        state: where the segments begin.
        command: their return and their length in steps.
        hindsight: which examples are made of an episode; by default the right ones.
    """
    h = Hindsight() if hindsight is None else hindsight
    weights: dict[tuple, np.ndarray] = defaultdict(lambda: np.zeros(spec.n_actions))
    for episode in episodes(spec, joined=JOINED * h.joined):
        if h.keeps in ("all", episode.end):
            for begins, key, action, share in _examples(episode, h):
                if begins == state:
                    weights[key][(action + h.index) % spec.n_actions] += share
    found = weights.get(_key(command, h))
    return None if found is None else found / found.sum()


def _examples(episode: Episode, h: Hindsight) -> Iterator[tuple[int, tuple, int, float]]:
    """The state, command, action and weight of every segment of an episode."""
    steps, n = episode.steps, len(episode.steps)
    paid = np.array([step.reward for step in steps])
    each = episode.probability / n  # episodes are drawn alike, and then their steps
    for first, step in enumerate(steps):
        ends = [n] if h.trailing else range(first + 1, n + 1)
        for end in ends:
            spans = {
                "segment": paid[first:end],
                "after": paid[first + 1 : end],
                "episode": paid,
                "first": paid[first : first + 1],
            }
            action = steps[min(first + h.shift, n - 1)].action
            yield step.state, _key((spans[h.returns].sum(), end - first), h), action, each / len(ends)


def _key(command: tuple[float, float], h: Hindsight) -> tuple:
    """What the network sees of a command."""
    return (round(command[0], DIGITS) if h.return_seen else None, command[1] if h.horizon_seen else None)


def ask(
    name: str,
    spec: Spec,
    state: int,
    command: tuple[float, float],
    read: Callable[[np.ndarray], float],
    hindsight: Hindsight | None = None,
    mistakes: Mapping[str, dict] = MISTAKES,
) -> Query:
    """Return the query of one number of P(. | state, command), with its answer under every mistake that shows.

    A mistake under which no example has this command has no answer: the network learned nothing there.

    Raises:
        RuntimeError: no segment has this command, so that nothing is right.
    """
    right = Hindsight() if hindsight is None else hindsight
    truth = conditional(spec, state, command, right)
    if truth is None:
        raise RuntimeError(f"{spec.name!r}: no segment from s{state} has the command {command}")
    wrong = {}
    for mistake, change in mistakes.items():
        found = conditional(spec, state, command, dataclasses.replace(right, **change))
        if found is not None and abs(read(found) - read(truth)) > 1e-6:
            wrong[mistake] = float(read(found))
    return Query(name, float(read(truth)), wrong)
