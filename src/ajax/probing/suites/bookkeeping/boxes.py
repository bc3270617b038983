"""Bookkeeping with actions in a box: ASAC, CrossQ, IQL, REDQ, RVISAC, SAC and TD3."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from ajax.core.agent import Agent
from ajax.core.records import Net
from ajax.probing import Case
from ajax.probing.suites.bookkeeping.walk import WALK, audit
from ajax.probing.suites.exact import Fact, exact_case, same, train, updates
from ajax.probing.suites.experts import Uniform
from ajax.probing.suites.presets import DECAY, REPLAY, make

STEPS = 400
ROWS = STEPS // REPLAY.n_envs
UPDATES = ROWS - REPLAY.warmup // REPLAY.n_envs
EVALUATIONS = 4
SHARED = {"one key for all": 0.0}


def fact(name: str, right: float, wrong: Mapping[str, float] | None = None) -> Fact:
    """A fact that is looked up by its name in what was found for a seed."""
    return Fact(name, right, wrong or {}, lambda found, lane: found[lane][name])


COMMON = (
    fact("rows in the replay", ROWS, {"warm-up not stored": UPDATES, "steps counted for rows": STEPS}),
    fact("row written next", ROWS),
    fact("first logged step", STEPS / EVALUATIONS, {"ticks logged for steps": ROWS / EVALUATIONS}),
    fact(
        "last logged step",
        STEPS,
        {
            "ticks logged for steps": ROWS,
            "one tick short": STEPS - REPLAY.n_envs,
            "last report dropped": STEPS - STEPS / EVALUATIONS,
        },
    ),
    fact("reports", EVALUATIONS, {"last report dropped": EVALUATIONS - 1}),
    fact("observations counted by normalization", STEPS, {"one environment's observations normalized by": ROWS}),
    fact("rewards counted by normalization", STEPS, {"one environment's rewards normalized by": ROWS}),
    fact("seeds that collected the same", 0, {"one key for every seed": 1}),
    fact("outcomes differ between environments", 1, SHARED),
    fact("outcomes differ in time", 1, {"one key for every step": 0}),
    fact("starts differ between environments", 1, {"one key for every reset": 0}),
    *(
        fact(name, 0)
        for name in (
            "observations that are not the task's own",
            "stored steps that the task can't take",
            "stored rewards that are wrong",
            "terminations that are wrong",
            "truncations that are wrong",
            "rows that don't follow the one before",
            "executed actions that were not stored",
            "actions shared by environments",
            "actions repeated in time",
            "open returns that are wrong",
            "open lengths that are wrong",
        )
    ),
)


ONE_A_ROUND = fact(
    "critic updates", UPDATES, {"learning in warm-up": ROWS, "updates counted by environment": 4 * UPDATES}
)
TARGET = fact("target is the critic at tau 1", 1, {"target average the wrong way round": 0})


def bookkeeping(agent: Agent, id: str, *own: Fact, critic: Fact = ONE_A_ROUND) -> Case:
    """Return the case; `own` are what its networks add: `"NETWORK updates"`, `"NETWORK statistics"`, `TARGET`."""

    def trained(budget: int, seeds: Sequence[int]) -> list[dict[str, float]]:
        options = {"evaluations": EVALUATIONS, "normalize_observations": True, "normalize_rewards": True}
        result = train(agent, WALK, budget, seeds, **options)
        return [found(result, lane) for lane in range(len(seeds))]

    return exact_case(id, f"{type(agent).__name__}, bookkeeping", STEPS, trained, (critic, *COMMON, *own))


def found(result: Any, lane: int) -> dict[str, float]:
    """Return what one seed's run shows, by name of the fact."""
    run, others = result.run(lane), [i for i in range(len(result.seeds)) if i != lane]
    nets = {name: net for name, net in vars(run.agent).items() if isinstance(net, Net)}
    targets = [nets[name] for name in ("target", "target_critic") if name in nets]
    actions = run.store.rows.action
    return {
        "rows in the replay": float(run.store.size),
        "row written next": float(run.store.at),
        "first logged step": float(result.steps[0]),
        "last logged step": float(result.steps[-1]),
        "reports": float(len(result.steps)),
        TARGET.name: float(all(same(target.params, run.agent.critic.params) for target in targets)),
        "observations counted by normalization": float(run.statistics.obs.count),
        "rewards counted by normalization": float(run.statistics.reward.count),
        "seeds that collected the same": float(sum(same(actions, result.run(i).store.rows.action) for i in others)),
        **{f"{name} updates": float(updates(net.opt)) for name, net in nets.items() if net.opt != ()},
        **{f"{name} statistics": float(calls(net)) for name, net in nets.items() if net.statistics},
        **audit(run),
    }


def calls(net: Net) -> int:
    """Return the training calls that a network's normalization layers have counted."""
    paths = jax.tree_util.tree_leaves_with_path(net.statistics)
    return int(np.max([leaf for path, leaf in paths if "steps" in jax.tree_util.keystr(path)]))


HALF = {"one update in two": UPDATES // 2}
CASES = (
    bookkeeping(
        make("ASAC", tau=1.0, alpha_learning_rate=DECAY).agent,
        "p9-ASAC",
        TARGET,
        fact("actor updates", UPDATES, HALF),
        fact("log_alpha updates", UPDATES, HALF),
    ),
    bookkeeping(
        make("CrossQ", alpha_learning_rate=DECAY).agent,
        "p9-CrossQ",
        fact("actor updates", UPDATES // 2, {"policy delay ignored": UPDATES}),
        fact("log_alpha updates", UPDATES // 2, {"policy delay ignored": UPDATES, "temperature not tuned": 0}),
        fact("critic statistics", UPDATES, {"critic's statistics never kept": 0, "one call a half": 2 * UPDATES}),
        fact("actor statistics", UPDATES // 2, {"actor's statistics never kept": 0, "policy delay ignored": UPDATES}),
    ),
    bookkeeping(
        make("DAgger", expert=Uniform(low=-1.5, high=3.0), beta=1.0).agent,
        "p9-DAgger",
        critic=fact(
            "actor updates", UPDATES, {"learning in warm-up": ROWS, "updates counted by environment": 4 * UPDATES}
        ),
    ),
    bookkeeping(
        make("IQL", tau=1.0).agent,
        "p9-IQL",
        TARGET,
        fact("actor updates", UPDATES, HALF),
        fact("value updates", UPDATES, HALF),
    ),
    bookkeeping(
        make("REDQ", tau=1.0, alpha_learning_rate=DECAY).agent,
        "p9-REDQ",
        TARGET,
        fact("actor updates", UPDATES, {"policy delay ignored": 2 * UPDATES}),
        fact("log_alpha updates", UPDATES, {"policy delay ignored": 2 * UPDATES, "temperature not tuned": 0}),
        critic=fact("critic updates", 2 * UPDATES, {"learning in warm-up": 2 * ROWS, "one update a round": UPDATES}),
    ),
    bookkeeping(
        make("RVISAC", tau=1.0, alpha_learning_rate=DECAY).agent,
        "p9-RVISAC",
        TARGET,
        fact("actor updates", UPDATES, HALF),
        fact("log_alpha updates", UPDATES, HALF),
        fact("reset_critic updates", UPDATES, HALF),
        fact("reset_cost updates", UPDATES, HALF),
    ),
    bookkeeping(
        make("SAC", tau=1.0, alpha_learning_rate=DECAY).agent,
        "p9-SAC",
        TARGET,
        fact("actor updates", UPDATES, HALF),
        fact("log_alpha updates", UPDATES, HALF | {"temperature not tuned": 0}),
    ),
    bookkeeping(
        make("TD3", tau=1.0).agent,
        "p9-TD3",
        TARGET,
        fact("actor updates", UPDATES // 2, {"policy delay ignored": UPDATES}),
    ),
)
