"""Bookkeeping of UDRL: which episodes are kept, whether they are whole, and what it is asked for from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ajax.probing.suites.bookkeeping.discrete import COIN, DRIFT, PER_TICK, ROLLOUT_STEPS, STAY, WALK, rollout_facts
from ajax.probing.suites.commanded import Overhear
from ajax.probing.suites.exact import Fact, exact_case, train, updates
from ajax.probing.suites.presets import make

SIZES = {
    "replay.n_envs": 3,
    "replay.steps": 2,
    "replay.updates": 3,
    "replay.batch_size": 8,
    "replay.max_length": 3,
    "replay.last_few": 4,
}
WARMUP = 2 * PER_TICK
STEPS = WARMUP + 20 * PER_TICK  # 20 ticks of learning: 60 updates
FEW, MANY = 7, 64  # episodes kept: fewer and more than are played
ONE = {"replay.n_envs": 8, "replay.steps": 5, "replay.updates": 6, "replay.last_few": 4, "replay.warmup": 0}


def walked(budget: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Results with many and with few episodes kept. As good as nothing is learned, so that both play the same ones."""

    def run(capacity: int) -> Any:
        sizes = {**SIZES, "replay.capacity": capacity, "replay.warmup": WARMUP}
        return train(make("UDRL", sizes, learning_rate=1e-12).agent, WALK, budget, seeds, extensions=(Overhear(),))

    return {"many": run(MANY), "few": run(FEW)}


def whole(run: Any) -> list[dict[str, Any]]:
    """Return the episodes that a run has kept, in the order in which they ended."""
    store, found = run.store, []
    for slot in np.flatnonzero(store.whole):
        n, rows = int(store.lengths[slot]), store.rows
        names = {"reward": rows.reward, "terminated": rows.terminated, "truncated": rows.truncated}
        arrays = {**names, "action": rows.action, "command": rows.extras["command"]}
        episode = {name: np.asarray(x)[slot, :n] for name, x in arrays.items()}
        now, after = (np.asarray(x.obs)[slot, :n].argmax(-1) for x in (rows.now, rows.next))
        kept = {"return": float(store.returns[slot]), "number": int(store.number[slot])}
        found.append({**episode, **kept, "now": now, "next": after})
    return sorted(found, key=lambda episode: episode["number"])


def is_whole(e: dict[str, Any]) -> bool:
    """Whether an episode of the walk is all there, and nothing else is."""
    n = 2 if e["now"][0] == 0 else 3
    return (
        e["now"][0] in (0, 3)
        and np.array_equal(e["now"], e["now"][0] + np.arange(n))
        and np.array_equal(e["next"], e["now"] + 1)
    )


def goals(run: Any) -> list[tuple[float, float, float]]:
    """Return the bounds of the return, and the horizon, that the best four set after each episode that ended."""
    found, kept = [(0.0, 0.0, 1.0)], whole(run)
    for n in range(1, len(kept) + 1):
        top = sorted(kept[:n], key=lambda e: (e["return"], e["number"]))[-4:]
        returns = [e["return"] for e in top]
        low = float(np.mean(returns))
        found.append((low, low + float(np.std(returns)), float(np.mean([len(e["reward"]) for e in top]))))
    return found


def unasked(run: Any) -> int:
    """Return how many first commands no goal allows that episodes which ended before them had set."""
    known, wrong = goals(run), 0
    for i, e in enumerate(whole(run)):
        asked, horizon = e["command"][0]
        inside = [low - 1e-4 <= asked <= high + 1e-4 and abs(horizon - h) < 1e-4 for low, high, h in known[: i + 1]]
        wrong += not any(inside)
    return wrong


def facts() -> list[Fact]:
    """What a run of UDRL counts, keeps and asks for."""

    def every(name: str, right: Any, wrong: dict[str, float]) -> Fact:
        return Fact(name, 1, wrong, lambda r, lane: all(right(e) for e in whole(r["many"].run(lane))))

    def earned(e: dict[str, Any]) -> np.ndarray:
        return np.cumsum(e["reward"]) - e["reward"]

    def best(r: Any, lane: int) -> list[float]:
        return sorted(e["return"] for e in whole(r["many"].run(lane)))[-FEW:]

    def goal(r: Any, lane: int) -> Any:
        return r["many"].run(lane).commands.goal

    lost = {"episodes that a time limit cut are lost": 0, "episodes that terminated are lost": 0}
    return [
        Fact(
            "updates",
            60,
            {"one update a round": 20, "updates during warm-up": 66, "collection steps counted": 180},
            lambda r, lane: updates(r["many"].run(lane).agent.behavior.opt),
        ),
        every("episodes are whole", is_whole, {"half an episode kept": 0, "rows of environments mixed": 0}),
        every(
            "returns are their rewards' sums",
            lambda e: np.isclose(e["return"], e["reward"].sum(), atol=1e-4),
            {"return not started again": 0, "last reward left out": 0},
        ),
        every(
            "rewards",
            lambda e: np.allclose(e["reward"], 0.1 * e["now"] + e["action"], atol=1e-6),
            {"reward of another step kept": 0, "another action kept than executed": 0},
        ),
        every(
            "terminated",
            lambda e: np.array_equal(e["terminated"] > 0, e["now"] == 1),
            {"time limit taken as a termination": 0},
        ),
        every("truncated", lambda e: np.array_equal(e["truncated"] > 0, e["now"] == 5), {"truncation dropped": 0}),
        Fact(
            "both kinds of episode are kept",
            1,
            lost,
            lambda r, lane: {len(e["reward"]) for e in whole(r["many"].run(lane))} == {2, 3},
        ),
        Fact(
            "steps kept",
            STEPS,
            {**dict.fromkeys(lost, 0), "last step left out": 0},
            lambda r, lane: (
                sum(len(e["reward"]) for e in whole(r["many"].run(lane)))
                + int(np.asarray(r["many"].run(lane).store.lengths)[np.asarray(r["many"].run(lane).store.open)].sum())
            ),
        ),
        Fact(
            "episodes kept of too many",
            FEW,
            {"open episodes counted for kept ones": FEW + 3, "one environment's episodes kept": 0},
            lambda r, lane: len(whole(r["few"].run(lane))),
        ),
        Fact(
            "they are those of the highest return",
            1,
            {"the newest kept, not the best": 0, "the worst kept": 0},
            lambda r, lane: np.allclose(sorted(e["return"] for e in whole(r["few"].run(lane))), best(r, lane)),
        ),
        Fact(
            "least return asked for is the mean of the best four",
            1,
            {"returns of all episodes": 0, "the best return alone": 0, "goal never set": 0},
            lambda r, lane: np.isclose(goal(r, lane).low, goals(r["many"].run(lane))[-1][0], atol=1e-4),
        ),
        Fact(
            "highest return asked for is their deviation above it",
            1,
            {"returns of all episodes": 0, "goal never set": 0},
            lambda r, lane: np.isclose(goal(r, lane).high, goals(r["many"].run(lane))[-1][1], atol=1e-4),
        ),
        Fact(
            "horizon asked for is their mean length",
            1,
            {"lengths of all episodes": 0, "goal never set": 0},
            lambda r, lane: np.isclose(goal(r, lane).horizon, goals(r["many"].run(lane))[-1][2], atol=1e-4),
        ),
        Fact(
            "episodes asked for what no goal allows",
            0,
            {"command not drawn at each start": 20},
            lambda r, lane: unasked(r["many"].run(lane)),
        ),
        Fact(
            "returns asked for differ",
            1,
            {"the mean asked for while exploring": 0, "environments share a command": 0},
            lambda r, lane: len({float(e["command"][0, 0]) for e in whole(r["many"].run(lane))[-12:]}) == 12,
        ),
        every(
            "desired returns fall by what was earned",
            lambda e: np.allclose(e["command"][:, 0], e["command"][0, 0] - earned(e), atol=1e-4),
            {"desired return not lowered": 0, "desired return raised by rewards": 0},
        ),
        every(
            "desired horizons fall by a step",
            lambda e: np.allclose(
                e["command"][:, 1], np.maximum(e["command"][0, 1] - np.arange(len(e["reward"])), 1), atol=1e-4
            ),
            {"desired horizon not lowered": 0, "desired horizon below one": 0},
        ),
        Fact("steps at the last report", STEPS, {"ticks counted": STEPS / 6}, lambda r, lane: r["many"].steps[-1]),
    ]


def drawn(budget: int, seeds: Sequence[int]) -> dict[str, Any]:
    """Results on the coin, where every step ends an episode, on the drift and on what stays."""
    agent = make("UDRL", ONE).agent
    return {spec.name: train(agent, spec, budget, seeds) for spec in (COIN, DRIFT, STAY)}


def key_facts() -> list[Fact]:
    """What environments and seeds draw, as of agents that learn from rollouts; and no update without an episode."""
    shared = [fact for fact in rollout_facts("behavior") if fact.name != "updates"]
    return [
        Fact(
            "updates once episodes have ended",
            36,
            {"one update a round": 6, "collection steps counted": 240},
            lambda r, lane: updates(r["coin"].run(lane).agent.behavior.opt),
        ),
        Fact(
            "updates before an episode has ended",
            0,
            {"learned from no episode": 36},
            lambda r, lane: updates(r["drift"].run(lane).agent.behavior.opt),
        ),
        *shared,
    ]


CASES = (
    exact_case("p9-UDRL", "UDRL, which episodes it keeps and what it asks for", STEPS, walked, facts()),
    exact_case("p9k-UDRL", "UDRL, counters and random keys", ROLLOUT_STEPS, drawn, key_facts()),
)
