"""What the segments that UDRL learns from say, exactly: under which command which actions stand there at all.

Actions are drawn uniformly, so that a few hundred episodes hold all that can happen. A reading is the set of actions
that some segment with a state and a command began with, as a number: the sum of 2^a. The oracle lists the same set.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ajax.buffers import episodes
from ajax.probing import Case, Spec
from ajax.probing.hindsight import MISTAKES, Hindsight, conditional
from ajax.probing.suites.commanded import Uniform
from ajax.probing.suites.exact import Fact, exact_case, train
from ajax.probing.suites.presets import make

STEPS = 1_024
DRAWN = 8_192
UNSEEN = ("desired return not seen", "desired horizon not seen", "command not seen")
"""Mistakes of the network, which no segment shows."""

Asked = tuple[int, tuple[float, float]]
"""A state and a command."""


def segment_case(id: str, title: str, spec: Spec, read: Sequence[Asked], *, trailing: bool = True) -> Case:
    """Return the case that reads the set of actions at each of `read`."""

    def trained(budget: int, seeds: Sequence[int]) -> list[dict[tuple, set[int]]]:
        result = train(make("UDRL", {"replay.trailing": trailing}).agent, spec, budget, seeds, extensions=(Uniform(),))
        return [table(result.run(lane), result.agent.replay.trailing) for lane in range(len(seeds))]

    right = Hindsight(trailing=trailing)

    def fact(state: int, command: tuple[float, float]) -> Fact:
        found = {name: Hindsight(**{"trailing": trailing, **MISTAKES[name]}) for name in MISTAKES if name not in UNSEEN}
        truth = listed(spec, state, command, right)
        wrong = {name: listed(spec, state, command, h) for name, h in found.items()}
        return Fact(
            f"actions at s{state} for {command[0]:g} in {command[1]:g}",
            truth,
            {name: number for name, number in wrong.items() if number != truth},
            lambda tables, lane: _number(tables[lane].get((state, *command), set())),
        )

    return exact_case(id, title, STEPS, trained, [fact(*asked) for asked in read])


@functools.lru_cache(maxsize=4096)
def listed(spec: Spec, state: int, command: tuple[float, float], hindsight: Hindsight) -> int:
    """Return the set of actions that segments from a state with this command begin with, as a number."""
    found = conditional(spec, state, command, hindsight)
    return 0 if found is None else _number(set(np.flatnonzero(found).tolist()))


def table(run: Any, trailing: bool) -> dict[tuple, set[int]]:
    """Return the actions that drawn segments began with, by (state, return, horizon)."""
    rows, commands = episodes.sample(run.store, jax.random.key(0), DRAWN, trailing)
    found: dict[tuple, set[int]] = {}
    states, actions = np.asarray(rows.now.obs).argmax(-1), np.asarray(rows.action)
    for state, action, command in zip(states, actions, np.round(np.asarray(commands), 4), strict=True):
        found.setdefault((int(state), *map(float, command)), set()).add(int(action))
    return found


def _number(actions: set[int]) -> int:
    return sum(2**action for action in actions)
