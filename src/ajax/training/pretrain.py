"""What extensions do before training, in order: each is shown steps of its demonstrator, or the run's dataset."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.expert import Expert, advise, memories
from ajax.core.hooks import View
from ajax.core.keys import stream
from ajax.core.records import Batch, Clock
from ajax.core.spaces import to_box
from ajax.training import normalise
from ajax.training.collect import StepKeys, restart, step_keys, transition
from ajax.training.run import Run, Task


def pretrain(agent: Any, task: Task, run: Run) -> Run:
    """Fold a run that was just begun through every `pretrain`. Its steps are not counted as the run's."""
    for i, extension in enumerate(task.extensions):
        if "pretrain" in extension.phases():
            expert, rows = extension.demonstrator(), None
            if expert is not None:
                rows = play(task, expert, extension.pretrain_rows, stream(run.key, f"demonstrator {i}"))
            run = fold(agent, task, run, rows, i)
    return run


def fold(agent: Any, task: Task, run: Run, rows: Batch | None, i: int) -> Run:
    """The `pretrain` of the i-th extension.

    Args:
        agent, task, run: what is trained.
        rows: raw transitions (time, n_envs, ...) of its demonstrator, which normalization sees; None: the dataset's.
        i: which extension.
    """
    extension = task.extensions[i]
    if rows is not None:
        before = run.statistics
        fresh = jnp.zeros(rows.reward.shape[1]) if task.normalize.rewards else ()
        statistics = normalise.observe(task.normalize, before.replace(discounted=fresh), rows)
        run = run.replace(statistics=statistics.replace(discounted=before.discounted))
    elif task.dataset is not None:
        rows = task.dataset.rows
    b: Any = None if rows is None else normalise.batch(run.statistics, rows, keep=True)
    clock = Clock.start()
    key = stream(run.key, f"extension {i} pretrain")
    stack = tuple(zip(task.extensions, run.own, strict=True))
    view = View(agent, run.agent, b, clock, key, run.own[i], spec=task.spec, stack=stack)
    state, own = extension.pretrain(view)
    return run.replace(agent=state, own=(*run.own[:i], own, *run.own[i + 1 :]))


def play(task: Task, expert: Expert, n_steps: int, key: jax.Array) -> Batch:
    """Raw transitions (n_steps, n_envs, ...) of an expert in environments of its own, actions in agent units."""
    n, space = task.n_envs, task.env.action_space
    env, obs = jax.vmap(task.env.reset)(jax.random.split(stream(key, "start"), n))

    def step(carry: tuple, keys: StepKeys) -> tuple[tuple, Batch]:
        env, obs, memory, elapsed = carry
        action, memory = advise(expert, space, memory, obs, keys.act, elapsed)
        env, out = jax.vmap(task.env.step)(keys.step, env, to_box(space, action))
        row = transition(obs, action, out.reward, out.terminated, out.truncated, out.obs, {})
        ended = out.terminated | out.truncated
        env, obs = restart(task, keys.reset, ended, env, out.obs)
        return (env, obs, memory, jnp.where(ended, 0.0, elapsed + 1.0)), row

    start = (env, obs, memories(expert, n), jnp.zeros(n))
    return jax.lax.scan(step, start, step_keys(stream(key, "steps"), n_steps, n))[1]
