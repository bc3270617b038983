"""The off-policy tick: step every environment, keep the rows, then update on samples of what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from ajax.buffers import replay
from ajax.core.keys import stream
from ajax.core.learn import Metrics
from ajax.core.records import Batch, Clock
from ajax.training import memory, normalise
from ajax.training.collect import interact, step_keys
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import hooks_of

FOLDS = frozenset({"act", "record", "sample", "reward", "post_update"})
"""The phases of extensions that this loop folds."""


def steps_per_tick(agent: Any) -> int:
    """Environment steps in one tick."""
    return agent.replay.steps * agent.replay.n_envs


def updates_per_tick(agent: Any) -> int:
    """Gradient updates in one tick."""
    return agent.replay.updates


def warmup_ticks(agent: Any) -> int:
    """Ticks that only collect: the warm-up asked for, and at least what makes the first sample a whole window."""
    window = -(-(memory.window(agent) - 1) // agent.replay.steps)
    return max(-(-agent.replay.warmup // steps_per_tick(agent)), window)


def init_store(agent: Any, row: Batch) -> replay.Store:
    """The empty replay for rows like this one."""
    return replay.init(memory.stored(row), agent.replay.capacity)


def tick(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics, Finished]:
    """`replay.steps` steps of every environment, then `replay.updates` updates once learning has started."""
    run, finished = gather(agent, task, run, stream(key, "collect"), clock, learn, keep)
    run, metrics = learn_from(agent, task, run, stream(key, "learn"), clock, learn)
    return run, metrics, finished


def gather(
    agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool, keep: Callable[[Task, Run, Batch], Run]
) -> tuple[Run, Finished]:
    """`replay.steps` steps of every environment, each raw row given to `keep`; returns what ended as well."""
    keys = step_keys(key, agent.replay.steps, task.n_envs)

    def collect(run: Run, i: jax.Array) -> tuple[Run, Finished]:
        now = clock.replace(step=clock.step + i * task.n_envs)
        run, row, finished = interact(agent, task, run, jax.tree.map(lambda x: x[i], keys), now, learn)
        return keep(task, run, row), finished

    return repeat(collect, run, agent.replay.steps)


def keep(task: Task, run: Run, row: Batch) -> Run:
    """Store a raw row, and let normalization see it. Of its extras only what extensions recorded is kept."""
    row = memory.stored(row.replace(extras={name: row.extras[name] for name in run.store.rows.extras}))
    statistics = normalise.observe(task.normalize, run.statistics, jax.tree.map(lambda x: x[None], row))
    return run.replace(store=replay.add(run.store, row), statistics=statistics)


def learn_from(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics]:
    """A round of updates, each on a fresh sample, if it is time to `learn`; returns their mean metrics."""
    if not learn:
        return run, {}
    store, statistics = run.store, run.statistics

    def update(carry: tuple[Any, tuple], i: jax.Array) -> tuple[tuple[Any, tuple], Metrics]:
        state, own = carry
        key_i = jax.random.fold_in(key, i)
        now = clock.replace(update=clock.update + i)
        hooks = hooks_of(agent, task, own, now, key_i)
        rows = replay.sample(store, stream(key_i, "sample"), memory.n_samples(agent), memory.window(agent))
        b = memory.unrolled(agent, normalise.batch(statistics, hooks.sample(state, rows), task.watched))
        b = hooks.reward(state, b)
        state, metrics = agent.update(state, b, stream(key_i, "update"), now, hooks)
        return (state, hooks.post_update(state, b)), metrics

    (state, own), metrics = repeat(update, (run.agent, run.own), agent.replay.updates)
    return run.replace(agent=state, own=own), jax.tree.map(lambda x: x / agent.replay.updates, metrics)


def repeat(step: Any, carry: Any, n: int) -> tuple[Any, Any]:
    """Do `step(carry, i)` for i < n and sum what it reports; a single one is called without a loop around it."""
    if n == 1:
        return step(carry, jnp.int32(0))
    carry, reports = jax.lax.scan(step, carry, jnp.arange(n))
    return carry, jax.tree.map(lambda x: x.sum(0), reports)
