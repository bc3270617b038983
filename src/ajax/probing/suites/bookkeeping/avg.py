"""Bookkeeping of AVG, which learns from every step when it is taken and keeps none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.probing import Case, Spec
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.exact import Fact, exact_case, same, train, updates
from ajax.probing.suites.presets import make

STEPS = 300
GAMMA = 0.7
# Two steps that pay 1 and 3 and end the task.
PAYS = Spec.of("two steps", lambda s, region: (min(s + 1, 2), 1.0 + 2.0 * s, s >= 1), n_states=3, box=BOX)
# The same, cut after its first step: no return is ever complete.
CUT = Spec.of("two steps, cut", lambda s, region: (min(s + 1, 2), 1.0 + 2.0 * s, s >= 1), n_states=3, limit=1, box=BOX)
# Where the walk stands tells what its steps drew.
DRIFT = Spec.of(
    "drift in a box", lambda s, region: [(0.25, t, 1.0, False) for t in range(4)], n_states=4, box=BOX, record=64
)

SPREAD = 0.25 * GAMMA**2  # variance of the discount: gamma and 0 in turn


def trained(budget: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Results on the three tasks. Without entropy, what is scaled are the rewards themselves."""
    agent = make("AVG", alpha=0.0).agent
    return {spec.name: train(agent, spec, budget, seeds, normalize_observations=True) for spec in (PAYS, CUT, DRIFT)}


def facts() -> list[Fact]:
    """What a run of AVG counts, scales and draws."""

    def state(r: Any, lane: int, name: str = PAYS.name) -> Any:
        return r[name].run(lane).agent

    def number(x: Any) -> float:
        return round(float(x), 3)

    def executed(r: Any, lane: int) -> np.ndarray:
        return np.asarray(r[DRIFT.name].run(lane).env.executed)[0, :, 0]

    half = {"one update in two": STEPS // 2, "one update an episode": STEPS // 2}
    return [
        Fact("critic updates", STEPS, half, lambda r, lane: updates(state(r, lane).critic.opt)),
        Fact("actor updates", STEPS, half, lambda r, lane: updates(state(r, lane).actor.opt)),
        Fact("rewards scaled by", STEPS, half, lambda r, lane: float(state(r, lane).scale.reward.count)),
        Fact(
            "episodes scaled by",
            STEPS // 2,
            {"a return counted every step": STEPS, "no return counted": 0},
            lambda r, lane: float(state(r, lane).scale.square.count),
        ),
        Fact(
            "mean squared return",
            16.0,
            {"return not started again": number(16 * (1 + 150) * (2 * 150 + 1) / 6), "last reward for the return": 9},
            lambda r, lane: number(state(r, lane).scale.square.mean),
        ),
        Fact(
            "sigma",
            number((1.0 + 16.0 * SPREAD) ** 0.5),
            {
                "discount not 0 at terminations": 1.0,
                "discounted return": number((1.0 + (GAMMA + 3.0) ** 2 * SPREAD) ** 0.5),
                "squared mean for the mean square": number((1.0 + 9.0 * SPREAD) ** 0.5),
                "TD errors not scaled": 1.0,
                "variance for the deviation": number(1.0 + 16.0 * SPREAD),
            },
            lambda r, lane: number(state(r, lane).scale.sigma),
        ),
        Fact(
            "episodes cut short scaled by",
            0,
            {"time limit taken as a termination": STEPS},
            lambda r, lane: float(state(r, lane, CUT.name).scale.square.count),
        ),
        Fact(
            "return of an episode cut short",
            0,
            {"return goes on beyond a time limit": STEPS},
            lambda r, lane: float(state(r, lane, CUT.name).scale.running),
        ),
        Fact(
            "observations counted by normalization",
            STEPS,
            {"one in two counted": STEPS // 2},
            lambda r, lane: float(r[PAYS.name].run(lane).statistics.obs.count),
        ),
        Fact("steps at the last report", STEPS, {}, lambda r, lane: r[PAYS.name].steps[-1]),
        Fact(
            "actions repeated in time",
            0,
            {"one key for every step": 63},
            lambda r, lane: int(np.sum(np.isclose(np.diff(executed(r, lane)), 0.0, atol=1e-7))),
        ),
        Fact(
            "seeds that did the same",
            0,
            {"every seed has the same key": 1},
            lambda r, lane: float(np.array_equal(executed(r, lane), executed(r, 1 - lane))),
        ),
        Fact(
            "seeds with the same networks",
            0,
            {"every seed has the same key": 1},
            lambda r, lane: float(same(state(r, lane).actor.params, state(r, 1 - lane).actor.params)),
        ),
    ]


CASES: tuple[Case, ...] = (exact_case("p9-AVG", "AVG, what is counted, scaled and drawn", STEPS, trained, facts()),)
