"""Evaluation: each of `episodes` environments runs exactly one episode with the greedy policy, statistics frozen.

One episode an environment, rather than the first `episodes` to finish, since the first to finish are the short ones.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.keys import stream
from ajax.core.records import Array, Clock
from ajax.core.spaces import to_box
from ajax.training import normalise
from ajax.training.run import Run, Task


class Evaluation(struct.PyTreeNode):
    """Outcome of an evaluation, one row an episode.

    Attributes:
        returns: undiscounted sum of rewards, in the environment's units (episodes,).
        lengths: steps (episodes,).
        finished: whether the episode ended within the limit (episodes,).
    """

    returns: Array
    lengths: Array
    finished: Array


def evaluate(agent: Any, task: Task, run: Run, tick: jax.Array, limit: jax.Array, episodes: int) -> Evaluation:
    """Run whole episodes of the greedy policy as it stands at `tick`.

    Args:
        agent, task, run: what is evaluated; nothing of it changes.
        tick: index of the run's tick; every evaluation draws fresh episodes, with keys apart from training's.
        limit: steps after which an unfinished episode is cut, int32.
        episodes: how many.
    """
    key = jax.random.fold_in(stream(run.key, "evaluate"), tick)
    clock = Clock(jnp.float32(0), jnp.int32(0), jnp.float32(1))
    env, obs = jax.vmap(task.env.reset)(jax.random.split(stream(key, "reset"), episodes))
    zeros = jnp.zeros(episodes)
    start = (env, obs, Evaluation(zeros, zeros, zeros > 0), jnp.int32(0))

    def unfinished(carry):
        return (~carry[2].finished).any() & (carry[3] < limit)

    def step(carry):
        env, obs, so_far, t = carry
        key_t = jax.random.fold_in(key, t)
        action, _ = agent.act(run.agent, normalise.inputs(run.statistics, obs), stream(key_t, "act"), clock, False)
        keys = jax.random.split(stream(key_t, "step"), episodes)
        env, out = jax.vmap(task.env.step)(keys, env, to_box(task.env.action_space, action))
        so_far = Evaluation(
            so_far.returns + jnp.where(so_far.finished, 0.0, out.reward),
            so_far.lengths + jnp.where(so_far.finished, 0.0, 1.0),
            so_far.finished | out.terminated | out.truncated,
        )
        return env, out.obs, so_far, t + 1

    return jax.lax.while_loop(unfinished, step, start)[2]
