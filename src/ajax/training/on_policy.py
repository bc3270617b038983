"""The on-policy tick: a rollout of every environment, then epochs of minibatch updates on it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.buffers.rollout import deal
from ajax.core.keys import stream
from ajax.core.learn import Metrics
from ajax.core.records import Batch, Clock
from ajax.training import collect, memory, normalise, slopes
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import hooks_of

FOLDS = frozenset({"record", "reward", "post_update"})
"""The phases of extensions that this loop folds. No `act`: the agent's log probabilities are of its own actions."""


def steps_per_tick(agent: Any) -> int:
    """Environment steps in one tick."""
    return agent.rollout.size


def updates_per_tick(agent: Any) -> int:
    """Gradient updates in one tick."""
    return agent.rollout.n_epochs * agent.rollout.n_minibatches


def warmup_ticks(agent: Any) -> int:
    """Ticks that only collect: none."""
    return 0


def init_store(agent: Any, row: Batch) -> tuple:
    """Nothing is kept between ticks."""
    return ()


def tick(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, learn: bool) -> tuple[Run, Metrics, Finished]:
    """Collect `rollout.n_steps` steps of every environment, then learn from them."""
    gather = slopes.rollout if agent.through_env else collect.rollout
    run, rows, finished = gather(agent, task, run, key, clock)
    run, metrics = learn_from(agent, task, run, rows, stream(key, "learn"), clock)
    return run, metrics, finished


def learn_from(agent: Any, task: Task, run: Run, rows: Batch, key: jax.Array, clock: Clock) -> tuple[Run, Metrics]:
    """All epochs over one raw rollout (time, n_envs, ...); returns the updates' mean metrics."""
    b = normalise.batch(run.statistics, rows, task.watched)
    b = agent.prepare(run.agent, hooks_of(agent, task, run.own, clock, key).reward(run.agent, b))
    b, n = memory.cut(agent, b)
    rollout = agent.rollout
    indices = deal(stream(key, "deal"), n, rollout.n_epochs, rollout.n_minibatches)

    def update(carry: tuple[Any, tuple], turn: tuple[jax.Array, jax.Array]):
        (state, own), (i, index) = carry, turn
        minibatch = memory.take(agent, b, index)
        now = clock.replace(update=clock.update + i)
        key_i = jax.random.fold_in(key, i)
        hooks = hooks_of(agent, task, own, now, key_i)
        state, metrics = agent.update(state, minibatch, stream(key_i, "update"), now, hooks)
        return (state, hooks.post_update(state, minibatch)), metrics

    turns = (jnp.arange(len(indices)), indices)
    (state, own), metrics = jax.lax.scan(update, (run.agent, run.own), turns)
    statistics = normalise.observe(task.normalize, run.statistics, rows)
    run = run.replace(agent=state, own=own, statistics=statistics)
    return run, jax.tree.map(lambda x: x.mean(0), metrics)
