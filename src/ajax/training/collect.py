"""One step of every parallel environment, written once for all agents: act, step, reset what ended, keep the row."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.keys import stream
from ajax.core.records import Array, Batch, Clock, Inputs
from ajax.core.spaces import Discrete, to_box
from ajax.training import commands, memory, normalise
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import Stage


class StepKeys(struct.PyTreeNode):
    """The keys of one step; with a leading axis, those of several.

    Attributes:
        act: the agent's.
        step, reset: one an environment (n_envs,).
    """

    act: jax.Array
    step: jax.Array
    reset: jax.Array


def step_keys(key: jax.Array, n_steps: int, n_envs: int) -> StepKeys:
    """The keys of `n_steps` steps, leading axis n_steps: hashed all at once, since one by one is a loop each."""
    return StepKeys(
        act=jax.random.split(stream(key, "act"), n_steps),
        step=jax.random.split(stream(key, "step"), (n_steps, n_envs)),
        reset=jax.random.split(stream(key, "reset"), (n_steps, n_envs)),
    )


def rollout(
    agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock, nudge: jax.Array | None = None
) -> tuple[Run, Batch, Finished]:
    """`rollout.n_steps` steps of every environment with the agent's exploring policy; see `interact`.

    Returns:
        The run, the raw transitions (n_steps, n_envs, ...), and the episodes that ended.
    """
    n_steps = agent.rollout.n_steps

    def step(run: Run, turn: tuple[jax.Array, StepKeys, jax.Array | None]) -> tuple[Run, tuple[Batch, Finished]]:
        t, keys, shift = turn
        now = clock.replace(step=clock.step + t * task.n_envs)
        run, row, finished = interact(agent, task, run, keys, now, True, shift)
        return run, (row, finished)

    turns = jnp.arange(n_steps), step_keys(stream(key, "collect"), n_steps, task.n_envs), nudge
    run, (rows, finished) = jax.lax.scan(step, run, turns)
    return run, rows, jax.tree.map(lambda x: x.sum(0), finished)


def interact(
    agent: Any, task: Task, run: Run, keys: StepKeys, clock: Clock, learn: bool, nudge: jax.Array | None = None
) -> tuple[Run, Batch, Finished]:
    """Step the environments once: with the agent's exploring policy, or uniformly at random before it learns.

    Args:
        agent, task, run: who acts, where, and where that stands.
        keys: of this step.
        clock: where the run stands.
        learn: whether it learns already.
        nudge: added to the agent's actions (n_envs, size), to be differentiated by; None: nothing.

    Returns:
        The run, the raw transitions (n_envs, ...), and the episodes that ended.
    """
    run = run.replace(commands=commands.renewed(run.commands, run.episode_length, stream(keys.act, "command")))
    x = sees(run, task)
    if learn:
        action, extras = agent.act(run.agent, x, keys.act, clock, True)
    else:
        action, extras = uniform(task, keys.act), {}
    if nudge is not None:
        action = action + nudge
    stage = Stage(agent, task, run, clock, keys.act, run.each, run.episode_length)
    action = stage.act("act", x, action)
    executed = stage.act("execute", x, action)
    env, out = jax.vmap(task.env.step)(keys.step, run.env, to_box(task.env.action_space, executed))
    row = transition(run.obs, action, out.reward, out.terminated, out.truncated, out.obs, extras)
    carry = memory.remember(agent, run.agent, x)
    row = memory.noted(row, x, carry)
    row = row.replace(extras=extras | stage.record(row))
    ended = out.terminated | out.truncated
    run, finished = count_episodes(run, row.reward, ended)
    env, obs = restart(task, keys.reset, ended, env, out.obs)
    return run.replace(env=env, obs=obs, each=stage.each, carry=carry), row, finished


def sees(run: Run, task: Task) -> Inputs:
    """What networks read before a step: the observation, what they remember and what they are asked for."""
    x = memory.recall(run, normalise.inputs(run.statistics, run.obs, task.watched))
    first = run.commands.first if isinstance(run.commands, commands.Commands) else None
    return commands.told(x, run.statistics, first, run.episode_return, run.episode_length)


def transition(obs, action, reward, terminated, truncated, next_obs, extras) -> Batch:
    """A raw row as it is stored."""
    flags = terminated.astype(jnp.float32), truncated.astype(jnp.float32)
    return Batch(Inputs(obs), action, reward.astype(jnp.float32), *flags, Inputs(next_obs), extras)


def uniform(task: Task, key: jax.Array) -> jax.Array:
    """Uniformly random actions of every environment, in agent units."""
    spec = task.spec
    if isinstance(spec.action, Discrete):
        return spec.action.sample(key, (task.n_envs,))
    return jax.random.uniform(key, (task.n_envs, spec.action_size), minval=-1.0, maxval=1.0)


def restart(task: Task, keys: jax.Array, ended: jax.Array, env: Any, obs: jax.Array) -> tuple[Any, jax.Array]:
    """Start a new episode in every environment that `ended`; the others stay as they are."""

    def fresh(env: Any, obs: jax.Array) -> tuple[Any, jax.Array]:
        new = jax.vmap(task.env.reset)(keys)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(ended.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        return jax.tree.map(choose, new, (env, obs))

    # resets cost more than steps in many environments, and few ticks need one
    return jax.lax.cond(ended.any(), fresh, lambda env, obs: (env, obs), env, obs)


def count_episodes(run: Run, reward: Array, ended: Array) -> tuple[Run, Finished]:
    """Advance each episode's return and length, and sum up those that ended."""
    returns, lengths = run.episode_return + reward, run.episode_length + 1.0
    done = ended.astype(jnp.float32)
    finished = Finished(done.sum(), (done * returns).sum(), (done * lengths).sum())
    run = run.replace(episode_return=returns * (1.0 - done), episode_length=lengths * (1.0 - done))
    return run, finished
