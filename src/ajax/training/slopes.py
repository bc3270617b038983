"""Rollouts for agents that learn through the environment: each row has the derivative of the objective in its action.

With the policy's parameters held, a nudge of an action changes what follows: the states, and through them the later
actions, also by what a memory makes of them. `slope` is the derivative of `agent.objective` in such a nudge, at none.
The chain rule makes the objective's gradient of it: the sum over rows of `slope` times the derivative of the row's
action in the parameters, its observations held.

An episode's end passes nothing on: where one ended, the next state is a fresh one, which no action led to.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.errors import CapabilityError
from ajax.core.keys import stream
from ajax.core.records import Batch, Clock
from ajax.core.spaces import to_box
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.training import collect, normalise
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import hooks_of

SLOPE = "slope"
"""Name of the derivative among a row's extras: (n_envs, action_size), the objective's unit per agent unit."""


def rollout(agent: Any, task: Task, run: Run, key: jax.Array, clock: Clock) -> tuple[Run, Batch, Finished]:
    """`collect.rollout`, with `SLOPE` among the extras: of the rewards as the agent learns from them."""

    def objective(nudge: jax.Array) -> tuple[jax.Array, tuple[Run, Batch, Finished]]:
        after, rows, finished = collect.rollout(agent, task, run, key, clock, nudge)
        b = normalise.batch(run.statistics, rows, task.watched)
        b = hooks_of(agent, task, run.own, clock, stream(key, "learn")).reward(run.agent, b)
        return agent.objective(b), (after, rows, finished)

    still = jnp.zeros((agent.rollout.n_steps, task.n_envs, task.spec.action_size))
    slope, (after, rows, finished) = jax.grad(objective, has_aux=True)(still)
    return after, rows.replace(extras=rows.extras | {SLOPE: slope}), finished


def check(agent: Any, env: Any) -> None:
    """Refuse an environment that is known to have no derivative.

    Raises:
        CapabilityError: it is stepped outside of compiled programs.
    """
    if agent.through_env and isinstance(env, GymnasiumEnv):
        raise CapabilityError(
            f"{type(agent).__name__} differentiates the environment, and a Gymnasium environment has no derivative. Use"
            " one written in JAX: Pendulum-v1, brax:ant, or your own."
        )


def steerable(task: Task, keys: jax.Array, env: Any, action: jax.Array) -> jax.Array:
    """Whether a step's observation or reward has any derivative in the action (n_envs, size): a boolean scalar."""

    def outcome(action: jax.Array) -> jax.Array:
        _, out = jax.vmap(task.env.step)(keys, env, to_box(task.env.action_space, action))
        numbers = jnp.concatenate([jnp.ravel(x).astype(jnp.float32) for x in (out.obs, out.reward)])
        return (numbers * jnp.arange(1.0, len(numbers) + 1.0)).sum()  # unequal weights, so that none cancel

    return (jax.grad(outcome)(action) != 0).any()
