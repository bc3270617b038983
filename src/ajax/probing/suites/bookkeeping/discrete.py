"""Bookkeeping with discrete actions: DQN, and on rollouts APO, PPO and PQN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ajax.core.agent import Agent
from ajax.probing import Case, Spec
from ajax.probing.suites.exact import Fact, exact_case, same, train, updates
from ajax.probing.suites.presets import make

# Two kinds of episode: s0 s1 ends the task at s2; s3 s4 s5 is cut at s6.
WALK = Spec.of(
    "two kinds of episode",
    lambda s, a: (min(s + 1, 6), 0.1 * s + a, s == 1),
    n_states=7,
    n_actions=3,
    start=(0.5, 0, 0, 0.5, 0, 0, 0),
    limit=3,
    record=2,
)
# One step: where it starts and where it leads are tosses of a coin; from s0 the task ends, from s3 it is cut.
COIN = Spec.of(
    "coin",
    lambda s, a: [(0.5, 1, 1.0, s == 0), (0.5, 2, 1.0, s == 0)],
    n_states=4,
    n_actions=3,
    start=(0.5, 0, 0, 0.5),
    limit=1,
    record=2,
)
N_ENVS = 3  # divides nothing that is counted below
PER_TICK = 6  # two steps of every environment
WARMUP = 2 * PER_TICK
DQN = make(
    "DQN",
    {
        "target_period": 20,
        "replay.n_envs": N_ENVS,
        "replay.steps": 2,
        "replay.updates": 3,
        "replay.warmup": WARMUP,
        "replay.batch_size": 8,
        "replay.capacity": 60,
    },
).agent
DQN_STEPS = WARMUP + 20 * PER_TICK  # 20 ticks of learning: 60 updates


class Rows(NamedTuple):
    """What a replay holds, oldest first, (rows, n_envs): states by number, actions, rewards and flags."""

    now: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    next: np.ndarray

    @classmethod
    def of(cls, store: Any) -> Rows:
        """Return the rows of a full store."""
        b = store.rows
        found = (b.now.obs.argmax(-1), b.action, b.reward, b.terminated, b.truncated, b.next.obs.argmax(-1))
        return cls(*(np.roll(np.asarray(x), -int(store.at), 0) for x in found))


def dqn_walk(budget: int, seeds: Sequence[int]) -> Any:
    """Two results: after a refresh of the target network, and three updates later."""
    return [train(DQN, WALK, steps, seeds, horizon=budget) for steps in (budget, budget + PER_TICK)]


def dqn_facts() -> list[Fact]:
    """What a run of DQN has counted and stored."""

    def rows(results: Any, lane: int) -> Rows:
        return Rows.of(results[0].run(lane).store)

    def target_is_copy(results: Any, lane: int, i: int) -> Any:
        state = results[i].run(lane).agent
        return same(state.q.params, state.target.params)

    def continues(results: Any, lane: int) -> Any:
        r = rows(results, lane)
        ended = np.maximum(r.terminated, r.truncated)[:-1] > 0
        return np.all(np.where(ended, np.isin(r.now[1:], (0, 3)), r.now[1:] == r.next[:-1]))

    def executed(results: Any, lane: int) -> Any:
        run = results[0].run(lane)
        count, kept = np.asarray(run.env.count), np.asarray(run.env.executed)
        last = rows(results, lane).action[-1]
        mine = [kept[env, (count[env] - 1) % 2] == last[env] for env in range(N_ENVS) if count[env]]
        return all(mine)

    return [
        Fact(
            "updates",
            60,
            {"one update a round": 20, "updates during warm-up": 66, "collection steps counted": 180},
            lambda r, lane: updates(r[0].run(lane).agent.q.opt),
        ),
        Fact(
            "target is the network's copy after update 60",
            1,
            {
                "target network never replaced": 0,
                "updates counted from the run's start": 0,
                "updates during warm-up": 0,
                "one update a round": 0,
            },
            lambda r, lane: target_is_copy(r, lane, 0),
        ),
        Fact(
            "target is the network's copy after update 63",
            0,
            {"target network is the network itself": 1},
            lambda r, lane: target_is_copy(r, lane, 1),
        ),
        Fact(
            "transitions kept",
            60,
            {"capacity counted in rows": 132, "one environment kept": 20},
            lambda r, lane: int(r[0].run(lane).store.size) * rows(r, lane).now.shape[1],
        ),
        Fact(
            "row that is written next",
            4,
            {"ring does not turn": 19, "one row a tick": 2, "collection steps counted": 12},
            lambda r, lane: int(r[0].run(lane).store.at),
        ),
        Fact(
            "rows go on where the one before led",
            1,
            {"rows of environments mixed": 0, "ring does not turn": 0, "truncation dropped": 0},
            continues,
        ),
        Fact(
            "next observation is what the step led to",
            1,
            {"bootstrap from the reset observation": 0},
            lambda r, lane: np.all((x := rows(r, lane)).next == x.now + 1),
        ),
        Fact(
            "rewards",
            1,
            {"reward of another step kept": 0, "another action kept than executed": 0},
            lambda r, lane: np.allclose((x := rows(r, lane)).reward, 0.1 * x.now + x.action, atol=1e-6),
        ),
        Fact(
            "terminated",
            1,
            {"time limit taken as a termination": 0},
            lambda r, lane: np.all(((x := rows(r, lane)).terminated > 0) == (x.now == 1)),
        ),
        Fact(
            "truncated",
            1,
            {"truncation dropped": 0},
            lambda r, lane: np.all(((x := rows(r, lane)).truncated > 0) == (x.now == 5)),
        ),
        Fact(
            "executed actions are those kept",
            1,
            {"another action kept than executed": 0, "ring does not turn": 0},
            executed,
        ),
        Fact(
            "steps at the first report",
            66,
            {"steps counted for one environment": 22, "ticks counted": 11},
            lambda r, lane: r[0].steps[0],
        ),
        Fact(
            "steps at the last report",
            132,
            {"steps counted for one environment": 44, "ticks counted": 22},
            lambda r, lane: r[0].steps[-1],
        ),
    ]


def differ(columns: np.ndarray) -> bool:
    """Whether the columns of (rows, n_envs) are not all alike."""
    return bool(np.any(columns != columns[:, :1]))


def dqn_coin(budget: int, seeds: Sequence[int]) -> Any:
    """Two results: of warm-up alone, which leaves the networks as they began, and of the whole training."""
    return [train(DQN, COIN, steps, seeds) for steps in (WARMUP, budget)]


def coin_facts() -> list[Fact]:
    """What parallel environments and seeds draw: nothing in common."""

    def rows(results: Any, lane: int) -> Rows:
        return Rows.of(results[1].run(lane).store)

    def network(results: Any, lane: int) -> Any:
        return results[0].run(lane).agent.q.params

    return [
        Fact(
            "environments draw actions of their own",
            1,
            {"environments share a key": 0},
            lambda r, lane: differ(rows(r, lane).action),
        ),
        Fact(
            "environments start on their own",
            1,
            {"environments share a reset's key": 0, "environments share a key": 0},
            lambda r, lane: differ(rows(r, lane).now),
        ),
        Fact(
            "environments' steps are their own",
            1,
            {"environments share a step's key": 0, "environments share a key": 0},
            lambda r, lane: differ(rows(r, lane).next),
        ),
        Fact(
            "ticks differ",
            1,
            {"every tick draws with one key": 0},
            lambda r, lane: differ(rows(r, lane).next[::2].T),  # a tick is two steps
        ),
        Fact(
            "seeds start from networks of their own",
            1,
            {"every seed has the same key": 0, "every seed starts from the same networks": 0},
            lambda r, lane: not same(network(r, lane), network(r, 1 - lane)),
        ),
        Fact(
            "seeds see episodes of their own",
            1,
            {"every seed has the same key": 0},
            lambda r, lane: not np.array_equal(rows(r, lane).next, rows(r, 1 - lane).next),
        ),
        Fact(
            "mean return of training episodes",
            1,
            {"episode's return not started again": 33.5, "time-limited episode counted on": 2},
            lambda r, lane: round(float(r[1].returns[lane, -1]), 6),
        ),
        Fact(
            "mean length of training episodes",
            1,
            {"episode's length not started again": 33.5, "time-limited episode counted on": 2},
            lambda r, lane: round(float(r[1].lengths[lane, -1]), 6),
        ),
    ]


SIZES = {"rollout.n_envs": 8, "rollout.n_steps": 5, "rollout.n_epochs": 3, "rollout.n_minibatches": 2}
ROLLOUT_STEPS = 6 * 40  # 6 rollouts: 36 updates
# No episode ends: where an environment is tells what its steps drew, or, where it stays, what its reset drew.
DRIFT = Spec.of("drift", lambda s, a: [(0.25, t, 1.0, False) for t in range(4)], n_states=4, n_actions=3, record=2)
STAY = Spec.of("stay", lambda s, a: (s, 1.0, False), n_states=4, n_actions=3, start=(0.25,) * 4, record=2)


def rollout_case(agent: Agent, net: str, specs: Sequence[Spec] = (COIN, DRIFT, STAY)) -> Case:
    """Return the case of an agent that learns from rollouts of `SIZES`; `net` is the field of its state.

    The `specs` are a coin, where every step ends an episode, a drift, and what stays.
    """
    name = type(agent).__name__

    def runs(budget: int, seeds: Sequence[int]) -> dict[str, Any]:
        """Results on each."""
        return {spec.name: train(agent, spec, budget, seeds) for spec in specs}

    return exact_case(f"p9-{name}", f"{name}, counters and random keys", ROLLOUT_STEPS, runs, rollout_facts(net))


def rollout_facts(net: str) -> list[Fact]:
    """What a run on rollouts counts and draws."""

    def places(name: str, r: Any, lane: int) -> np.ndarray:
        return np.asarray(r[name].run(lane).obs).argmax(-1)

    def apart(name: str, r: Any, lane: int) -> Any:
        return bool(np.ptp(places(name, r, lane)) > 0)

    def actions_differ(r: Any, lane: int) -> Any:
        kept = np.asarray(r["drift"].run(lane).env.executed)
        return bool(np.any(kept != kept[:1]))

    def network(r: Any, lane: int) -> Any:
        return vars(r["drift"].run(lane).agent)[net]

    return [
        Fact(
            "updates",
            36,
            {"one update a rollout": 6, "one epoch a rollout": 12, "collection steps counted": 288},
            lambda r, lane: updates(network(r, lane).opt),
        ),
        Fact(
            "steps at the first report",
            120,
            {"steps counted for one environment": 15, "ticks counted": 3},
            lambda r, lane: r["drift"].steps[0],
        ),
        Fact(
            "steps at the last report",
            240,
            {"steps counted for one environment": 30, "ticks counted": 6},
            lambda r, lane: r["drift"].steps[-1],
        ),
        Fact(
            "actions in an episode without end",
            30,
            {"environments restarted by each rollout": 5, "collection steps counted": 240},
            lambda r, lane: int(r["drift"].run(lane).env.count[0]),
        ),
        Fact(
            "environments draw actions of their own",
            1,
            {"environments share a key": 0},
            actions_differ,
        ),
        Fact(
            "environments start on their own",
            1,
            {"environments share the first reset's key": 0, "environments share a key": 0},
            lambda r, lane: apart("stay", r, lane),
        ),
        Fact(
            "environments start again on their own",
            1,
            {"environments share a reset's key": 0, "environments share a key": 0},
            lambda r, lane: apart("coin", r, lane),
        ),
        Fact(
            "environments' steps are their own",
            1,
            {"environments share a step's key": 0, "environments share a key": 0},
            lambda r, lane: apart("drift", r, lane),
        ),
        Fact(
            "seeds have networks of their own",
            1,
            {"every seed has the same key": 0},
            lambda r, lane: not same(network(r, lane).params, network(r, 1 - lane).params),
        ),
        Fact(
            "seeds see episodes of their own",
            1,
            {"every seed has the same key": 0},
            lambda r, lane: not np.array_equal(places("drift", r, lane), places("drift", r, 1 - lane)),
        ),
        Fact(
            "mean return of training episodes",
            1,
            {"episode's return not started again": 23, "time-limited episode counted on": 2},
            lambda r, lane: round(float(r["coin"].returns[lane, -1]), 6),
        ),
        Fact(
            "mean length of training episodes",
            1,
            {"episode's length not started again": 23, "time-limited episode counted on": 2},
            lambda r, lane: round(float(r["coin"].lengths[lane, -1]), 6),
        ),
    ]


CASES = (
    exact_case("p9-DQN", "DQN, what is counted and kept", DQN_STEPS, dqn_walk, dqn_facts()),
    exact_case("p9k-DQN", "DQN, random keys", DQN_STEPS, dqn_coin, coin_facts()),
    rollout_case(make("APO", SIZES).agent, "net"),
    rollout_case(make("PPO", SIZES).agent, "net"),
    rollout_case(make("PQN", SIZES).agent, "q"),
)
