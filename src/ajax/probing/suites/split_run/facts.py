"""What a split run is compared by: each part of the run at the seam, then the whole run at the end."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.core.agent import Agent
from ajax.probing import Case, Spec
from ajax.probing.suites.exact import Fact, exact_case, same, train

# Start, rewards and moves are drawn, so that a lost key shows; both kinds of end occur.
DICE = Spec.of(
    "dice",
    lambda s, a: [(0.5, (s + 1) % 4, 1.0 * a - 1.0, s == 3), (0.5, (s + 2) % 4, 0.5, False)],
    n_states=4,
    n_actions=3,
    start=(0.25,) * 4,
    limit=7,
)


@dataclasses.dataclass(frozen=True, eq=False)
class Split:
    """One training done twice.

    Attributes:
        saved, restored: runs by seed at the seam, before they were saved and after they were read.
        whole, resumed: results at the end.
    """

    saved: list[Any]
    restored: list[Any]
    whole: Any
    resumed: Any


def split_case(id: str, title: str, agent: Agent, spec: Spec, budget: int) -> Case:
    """Return the case that trains `agent` for `budget` steps at once and in two halves.

    Observations and rewards are normalized, so that their statistics are part of the run.
    """
    return exact_case(id, title, budget, lambda steps, seeds: split(agent, spec, steps, seeds), facts())


def split(agent: Agent, spec: Spec, budget: int, seeds: Sequence[int]) -> Split:
    """Train for `budget` steps at once, then half of it into a folder, and from the folder to the end."""
    from ajax.training.driver import load, resume

    options = {"normalize_observations": True, "normalize_rewards": True, "reward_normalization_gamma": 0.5}
    lanes = range(len(seeds))
    whole = train(agent, spec, budget, seeds, **options)
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/run"
        half = train(agent, spec, budget // 2, seeds, horizon=budget, evaluations=1, out=out, **options)
        saved, found = [half.run(lane) for lane in lanes], load(out, env=spec.env(), agent=agent)
        restored = [found.run(lane) for lane in lanes]
        resumed = resume(out, budget, env=spec.env(), agent=agent, progress=False)
    return Split(saved, restored, whole, resumed)


def facts() -> list[Fact]:
    """Every part of a run at the seam, and the end."""

    def part(name: str, lost: str, get: Any) -> Fact:
        return Fact(
            f"{name} at the seam",
            1,
            {lost: 0},
            lambda s, lane: same(get(s.saved[lane]), get(s.restored[lane])),
        )

    parts = [
        part("random key", "random key lost", lambda run: run.key),
        part("agent's state, optimizer included", "optimizer or network lost", lambda run: run.agent),
        part("replay", "replay lost", lambda run: run.store),
        part("statistics", "normalizer's statistics lost", lambda run: run.statistics),
        part("environments", "environments lost", lambda run: (run.env, run.obs)),
        part("episodes under way", "episodes under way lost", lambda run: (run.episode_return, run.episode_length)),
    ]
    lost = {name: 0.0 for fact in parts[:-1] for name in fact.wrong}  # the next episodes make up for the last part
    end = Fact(
        "run at the end",
        1,
        {**lost, "counter of ticks lost": 0},
        lambda s, lane: same(s.whole.run(lane), s.resumed.run(lane)),
    )
    steps = Fact(
        "steps at the end",
        0,
        {"counter of steps lost": -1},
        lambda s, lane: float(np.sign(s.resumed.steps[-1] - s.whole.steps[-1])),
    )
    return [*parts, end, steps]
