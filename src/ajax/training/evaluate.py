"""Evaluation: each of `episodes` environments runs exactly one episode with the greedy policy, statistics frozen.

One episode an environment, rather than the first `episodes` to finish, since the first to finish are the short ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.expert import Expert, advise, memories
from ajax.core.hooks import View
from ajax.core.keys import stream
from ajax.core.records import Array, Batch, Clock
from ajax.core.spaces import to_box
from ajax.training import normalise
from ajax.training.chunk import each_of
from ajax.training.collect import transition
from ajax.training.commands import to_follow, told
from ajax.training.memory import Carry, nothing, remember
from ajax.training.run import Run, Task
from ajax.training.stage import Stage, add_names

EXPERT_RETURN = "expert_return"
"""The metric that an extension's `rival` is reported as."""

Policy = Callable[[jax.Array, jax.Array, Any, jax.Array, jax.Array], tuple[jax.Array, jax.Array, Any]]
"""(key, raw observations, memory, elapsed, earned) to actions in agent units, those executed, and the memory after.

`earned` is the sum of each episode's rewards in its `elapsed` steps."""

Kept = tuple[tuple, Carry, jax.Array | None]
"""What extensions and the networks' memories keep of each episode, and what it was asked for at its start."""


class Evaluation(struct.PyTreeNode):
    """Outcome of an evaluation, one row an episode.

    Attributes:
        returns: undiscounted sum of rewards, in the environment's units (episodes,).
        lengths: steps (episodes,).
        finished: whether the episode ended within the limit (episodes,).
        metrics: what extensions measured: name: scalar.
    """

    returns: Array
    lengths: Array
    finished: Array
    metrics: dict[str, Array] = struct.field(default_factory=dict)


def evaluate(agent: Any, task: Task, run: Run, tick: jax.Array, limit: jax.Array, episodes: int) -> Evaluation:
    """Run whole episodes of the greedy policy as it stands at `tick`.

    Args:
        agent, task, run: what is evaluated; nothing of it changes.
        tick: index of the run's tick; every evaluation draws fresh episodes, with keys apart from training's.
        limit: steps after which an unfinished episode is cut, int32.
        episodes: how many.
    """
    key = jax.random.fold_in(stream(run.key, "evaluate"), tick)
    start = start_of(agent, task, run, episodes)
    outcome, rows = play(task, greedy(agent, task, run), start, key, limit, episodes, eval_rows(task))
    metrics = measure(agent, task, run, rows, key)
    for rival in rivals(task):
        theirs, _ = play(task, follow(task, rival), memories(rival, episodes), stream(key, "rival"), limit, episodes, 0)
        add_names(metrics, {EXPERT_RETURN: theirs.returns.mean()}, "rival")
    return outcome.replace(metrics=metrics)


def greedy(agent: Any, task: Task, run: Run) -> Policy:
    """The agent's greedy policy, with what extensions make of its actions."""
    clock = Clock.start()

    def policy(key: jax.Array, obs: jax.Array, kept: Kept, elapsed: jax.Array, earned: jax.Array):
        each, carry, first = kept
        x = normalise.inputs(run.statistics, obs, task.watched).replace(carry=carry or None)
        x = told(x, run.statistics, first, earned, elapsed)
        action, _ = agent.act(run.agent, x, stream(key, "act"), clock, False)
        stage = Stage(agent, task, run, clock, key, each, elapsed)
        action = stage.act("eval_act", x, action)
        executed = stage.act("execute", x, action)
        return action, executed, (stage.each, remember(agent, run.agent, x), first)

    return policy


def start_of(agent: Any, task: Task, run: Run, n: int) -> Kept:
    """What is kept of `n` episodes that start."""
    return each_of(agent, task, n), nothing(agent, run.agent, n), to_follow(run.commands, n)


def follow(task: Task, expert: Expert) -> Policy:
    """An expert's policy."""

    def policy(key: jax.Array, obs: jax.Array, memory: Any, elapsed: jax.Array, earned: jax.Array):
        action, memory = advise(expert, task.spec.action, memory, obs, stream(key, "act"), elapsed)
        return action, action, memory

    return policy


def play(
    task: Task, policy: Policy, memory: Any, key: jax.Array, limit: jax.Array, episodes: int, n_rows: int
) -> tuple[Evaluation, Batch | None]:
    """Run one episode in each of `episodes` environments; returns its outcome and the first `n_rows` steps, raw.

    The rows are (n_rows, episodes, ...) with `extras["valid"]`, or None for `n_rows` 0.
    """
    env, obs = jax.vmap(task.env.reset)(jax.random.split(stream(key, "reset"), episodes))
    zeros = jnp.zeros(episodes)

    def step(carry: tuple) -> tuple[tuple, Batch]:
        env, obs, memory, so_far, t = carry
        key_t = jax.random.fold_in(key, t)
        elapsed = jnp.full(episodes, t, jnp.float32)
        action, executed, memory = policy(key_t, obs, memory, elapsed, so_far.returns)
        keys = jax.random.split(stream(key_t, "step"), episodes)
        env, out = jax.vmap(task.env.step)(keys, env, to_box(task.env.action_space, executed))
        valid = {"valid": 1.0 - so_far.finished.astype(jnp.float32)}
        row = transition(obs, action, out.reward, out.terminated, out.truncated, out.obs, valid)
        so_far = Evaluation(
            so_far.returns + jnp.where(so_far.finished, 0.0, out.reward),
            so_far.lengths + jnp.where(so_far.finished, 0.0, 1.0),
            so_far.finished | out.terminated | out.truncated,
        )
        return (env, out.obs, memory, so_far, t + 1), row

    def unfinished(carry):
        return (~carry[0][3].finished).any() & (carry[0][4] < limit)

    def keep(carry):
        now, rows = carry
        after, row = step(now)
        if n_rows:  # beyond the last row nothing is written
            rows = jax.tree.map(lambda kept, new: kept.at[now[4]].set(new, mode="drop"), rows, row)
        return after, rows

    start = (env, obs, memory, Evaluation(zeros, zeros, zeros > 0), jnp.int32(0))
    shapes = jax.eval_shape(step, start)[1] if n_rows else None
    rows = jax.tree.map(lambda x: jnp.zeros((n_rows, *x.shape), x.dtype), shapes)
    (_, _, _, outcome, _), rows = jax.lax.while_loop(unfinished, keep, (start, rows))
    return outcome, rows


def eval_rows(task: Task) -> int:
    """Steps of each episode that the stack's `eval_metrics` are shown."""
    return max((e.eval_rows for e in task.extensions if "eval_metrics" in e.phases()), default=0)


def rivals(task: Task) -> list[Expert]:
    """The experts that are evaluated beside the agent."""
    return [expert for e in task.extensions if (expert := e.rival()) is not None]


def measure(agent: Any, task: Task, run: Run, rows: Batch | None, key: jax.Array) -> dict[str, Array]:
    """What the stack's `eval_metrics` find, by name; each is given a scalar.

    Raises:
        ConfigError: two metrics of one name.
    """
    found: dict[str, Array] = {}
    b: Any = None if rows is None else normalise.batch(run.statistics, rows, keep=True)
    clock = Clock.start()
    stack = tuple(zip(task.extensions, run.own, strict=True))
    for i, (extension, own) in enumerate(stack):
        if "eval_metrics" in extension.phases():
            key_i = stream(key, f"extension {i} eval_metrics")
            n = extension.eval_rows
            shown: Any = jax.tree.map(lambda x, n=n: x[:n], b) if n else None
            view = View(agent, run.agent, shown, clock, key_i, own, spec=task.spec, stack=stack)
            new = {name: jnp.asarray(x, jnp.float32) for name, x in extension.eval_metrics(view).items()}
            add_names(found, new, f"{type(extension).__name__}.eval_metrics")
    return found
