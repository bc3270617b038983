"""The episodic tick: step every environment, keep the best whole episodes, then update on segments of them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.buffers import episodes
from ajax.core.commands import goal_of
from ajax.core.errors import ConfigError
from ajax.core.keys import stream
from ajax.core.learn import Metrics, select
from ajax.core.records import Batch, Clock
from ajax.environments.wrappers import time_limit
from ajax.training import normalise
from ajax.training.off_policy import gather, repeat, steps_per_tick, updates_per_tick
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import hooks_of

__all__ = ["steps_per_tick", "updates_per_tick"]

FOLDS = frozenset({"act", "record", "post_update"})
"""The phases of extensions that this loop folds. No `sample` and no `reward`: a command is of its episode's rewards."""


def warmup_ticks(agent: Any) -> int:
    """Ticks that only collect."""
    return -(-agent.replay.warmup // steps_per_tick(agent))


def init_store(agent: Any, row: Batch) -> episodes.Store:
    """The empty buffer for rows like this one."""
    return episodes.init(row, agent.replay.capacity, agent.replay.max_length)


def check(agent: Any, env: Any) -> None:
    """Refuse an environment whose episodes the buffer can't hold.

    Raises:
        ConfigError: its time limit is beyond the longest episode that is kept.
    """
    limit, longest = time_limit(env), agent.replay.max_length
    if limit is not None and limit > longest:
        raise ConfigError(
            f"{type(agent).__name__}(replay.max_length={longest}): this environment's episodes take up to {limit}"
            f" steps, and longer ones than {longest} are not kept. Give max_length={limit}, or cut them by"
            f" episode_length={longest}."
        )


def tick(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics, Finished]:
    """`replay.steps` steps of every environment, then `replay.updates` updates once learning has started."""
    run, finished = gather(agent, task, run, stream(key, "collect"), clock, learn, keep)
    run, metrics = learn_from(agent, task, run, stream(key, "learn"), clock, learn)
    return run, metrics, finished


def keep(task: Task, run: Run, row: Batch) -> Run:
    """Store a raw row, and let normalization see it. Of its extras only what extensions recorded is kept."""
    row = row.replace(extras={name: row.extras[name] for name in run.store.rows.extras})
    statistics = normalise.observe(task.normalize, run.statistics, jax.tree.map(lambda x: x[None], row))
    return run.replace(store=episodes.add(run.store, row), statistics=statistics)


def learn_from(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics]:
    """A round of updates, each on fresh segments, if it is time to `learn`; and the goal of the next tick's episodes.

    Before the first episode has ended there is nothing to learn from: its updates are not taken.
    """
    goal = goal_of(*episodes.best(run.store, agent.replay.last_few))
    run = run.replace(commands=run.commands.replace(goal=goal))
    if not learn:
        return run, {}
    store, statistics = run.store, run.statistics

    def update(carry: tuple[Any, tuple], i: jax.Array) -> tuple[tuple[Any, tuple], Metrics]:
        state, own = carry
        key_i = jax.random.fold_in(key, i)
        now = clock.replace(update=clock.update + i)
        hooks = hooks_of(agent, task, own, now, key_i)
        rows, asked = episodes.sample(store, stream(key_i, "sample"), agent.replay.batch_size, agent.replay.trailing)
        b = normalise.batch(statistics, rows, task.watched)
        b = b.replace(now=b.now.replace(command=normalise.command(statistics, asked)))
        after, metrics = agent.update(state, b, stream(key_i, "update"), now, hooks)
        return select(store.whole.any(), (after, hooks.post_update(after, b)), carry), metrics

    (state, own), metrics = repeat(update, (run.agent, run.own), agent.replay.updates)
    metrics = jax.tree.map(lambda x: x / agent.replay.updates, metrics)
    told = {"desired_return": goal.low, "desired_horizon": goal.horizon, "kept": store.whole.sum().astype(jnp.float32)}
    return run.replace(agent=state, own=own), metrics | told
