"""The compiled parts of a run: `begin` makes it, `chunk` advances it by any number of ticks."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.core.errors import EnvironmentFault
from ajax.core.keys import stream
from ajax.core.records import Array, Batch, Clock
from ajax.core.spaces import to_box
from ajax.training import commands, episodic, memory, normalise, off_policy, offline, on_policy, slopes
from ajax.training.collect import transition, uniform
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import Stage

LOOPS: dict[str, ModuleType] = {"off_policy": off_policy, "on_policy": on_policy, "episodic": episodic}
"""An agent's `loop`: the module whose `tick` runs it, where there is an environment to step."""

NEVER = jnp.iinfo(jnp.int32).max


class Report(struct.PyTreeNode):
    """What a chunk says of itself.

    Attributes:
        metrics: name: sum over the chunk's ticks (2,), a high and a low part to be added in float64.
        first_bad: name: the tick at which the metric first was not finite, or `NEVER`.
        finished: the episodes that ended, each sum (2,) like a metric's.
    """

    metrics: dict[str, Array]
    first_bad: dict[str, Array]
    finished: Finished


class Sanity(struct.PyTreeNode):
    """Whether the environment's first observation, and one step from it, are finite.

    Attributes:
        reset, obs, reward: whether the numbers are finite.
        steerable: whether the step has a derivative in the action; True for agents that need none.
    """

    reset: Array
    obs: Array
    reward: Array
    steerable: Array

    def check(self, env_name: str) -> None:
        """Refuse an environment whose first numbers are not finite, or that an agent can't learn through.

        Raises:
            EnvironmentFault: naming what was not finite, or saying that no derivative was found.
        """
        what = {"reset's observation": self.reset, "step's observation": self.obs, "step's reward": self.reward}
        bad = [name for name, fine in what.items() if not np.all(fine)]
        if bad:
            raise EnvironmentFault(
                f"{env_name}: {' and '.join(bad)} held NaN or infinity in the first step. Run `ajax check-env` on it."
            )
        if not np.all(self.steerable):
            raise EnvironmentFault(
                f"{env_name}: neither the observation nor the reward of the first step changes smoothly with the"
                " action, so there is nothing to differentiate (a stop_gradient, or rounding?). Use another agent."
            )


def loop_of(agent: Any, is_offline: bool) -> ModuleType:
    """The module whose `tick` runs an agent."""
    return offline if is_offline else LOOPS[agent.loop]


def begin(agent: Any, task: Task, key: jax.Array) -> tuple[Run, Sanity]:
    """Make a run from its root key: environments reset, networks initialized, store empty."""
    env, obs = jax.vmap(task.env.reset)(jax.random.split(stream(key, "reset"), task.n_envs))
    action = uniform(task, stream(key, "try"))
    keys = jax.random.split(stream(key, "try"), task.n_envs)
    _, out = jax.vmap(task.env.step)(keys, env, to_box(task.env.action_space, action))
    row = transition(obs, action, out.reward, out.terminated, out.truncated, out.obs, {})
    steerable = slopes.steerable(task, keys, env, action) if agent.through_env else jnp.array(True)
    reset, stepped, reward = (jnp.isfinite(x).all() for x in (obs, out.obs, out.reward))
    return make_run(agent, task, key, env, row), Sanity(reset, stepped, reward, steerable)


def make_run(agent: Any, task: Task, key: jax.Array, env: Any, row: Batch) -> Run:
    """A run whose environments have just been reset: networks initialized, store empty.

    Args:
        agent: whose run it is.
        task: what it is trained on.
        key: the run's root.
        env: the environments.
        row: a raw transition of each, from its first observation; the store is for rows like it.
    """
    obs, state = row.now.obs, agent.init(task.spec, stream(key, "init"))
    carry = memory.nothing(agent, state, task.n_envs)
    run = Run(
        key=key,
        agent=state,
        env=env,
        obs=obs,
        store=(),
        statistics=seen(task, normalise.init(task.normalize, task.spec.observation.shape, task.n_envs)),
        own=tuple(e.init(agent, task.spec, stream(key, f"extension {i}")) for i, e in enumerate(task.extensions)),
        episode_return=jnp.zeros(task.n_envs),
        episode_length=jnp.zeros(task.n_envs),
        each=each_of(agent, task, task.n_envs),
        carry=carry,
        commands=commands.of(agent, task.n_envs),
    )
    row = memory.noted(row, memory.fresh(obs, carry), carry)
    return run.replace(store=empty_store(agent, task, run, row))


def each_of(agent: Any, task: Task, n: int) -> tuple:
    """What every extension keeps of each of `n` environments whose episodes start."""
    return tuple(e.init_each(agent, task.spec, n) for e in task.extensions)


def empty_store(agent: Any, task: Task, run: Run, row: Batch) -> Any:
    """The store of a run that begins, for rows like this raw one and what extensions record of it."""
    clock = Clock.start()
    stage = Stage(agent, task, run, clock, run.key, run.each, run.episode_length)
    return loop_of(agent, task.offline).init_store(agent, row.replace(extras=stage.record(row)))


def seen(task: Task, statistics: normalise.Statistics) -> normalise.Statistics:
    """Statistics of the dataset where there is one, which offline training never adds to."""
    if task.dataset is None:
        return statistics
    one = statistics.replace(discounted=statistics.discounted[:1]) if task.normalize.rewards else statistics
    return normalise.observe(task.normalize, one, task.dataset.rows)


def chunk(
    agent: Any, task: Task, run: Run, first: jax.Array, n: jax.Array, horizon: jax.Array, learn: bool
) -> tuple[Run, Report]:
    """Advance a run by ticks first .. first + n - 1. `n` is traced: chunks of every length are one program.

    Args:
        agent: configuration.
        task: environment and options.
        run: what is advanced.
        first: index of the first tick, int32.
        n: number of ticks, int32, at least 1.
        horizon: environment steps of the whole run, float32.
        learn: False for warm-up ticks.
    """
    loop = loop_of(agent, task.offline)

    @jax.jit  # traced once, here and in the loop below
    def tick(run: Run, t: jax.Array):
        clock = Clock(
            step=t.astype(jnp.float32) * loop.steps_per_tick(agent),
            update=(t - loop.warmup_ticks(agent)) * loop.updates_per_tick(agent),
            horizon=horizon,
        )
        return loop.tick(agent, task, run, jax.random.fold_in(run.key, t), clock, learn)

    names = sorted(jax.eval_shape(tick, run, first)[1])

    def body(i: jax.Array, carry):
        run, sums, bad = carry
        run, metrics, ended = tick(run, first + i)
        values = jnp.stack([metrics[name] for name in names] + jax.tree.leaves(ended))
        bad = jnp.minimum(bad, jnp.where(jnp.isfinite(values), NEVER, first + i))
        return run, add_exactly(sums, values), bad

    zeros = jnp.zeros(len(names) + len(jax.tree.leaves(Finished.none())))
    start = (run, (zeros, zeros), jnp.full(zeros.shape, NEVER, jnp.int32))
    run, sums, bad = jax.lax.fori_loop(0, n, body, start)
    totals = list(jnp.stack(sums, -1))
    report = Report(
        metrics=dict(zip(names, totals, strict=False)),
        first_bad=dict(zip(names, bad, strict=False)),
        finished=Finished(*totals[len(names) :]),
    )
    return run, report


def add_exactly(sums: tuple[jax.Array, jax.Array], x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Add `x` to a sum of two float32 parts, so that it does not depend on where chunks begin (Knuth's TwoSum)."""
    high, low = sums
    total = high + x
    kept = total - high
    error = (high - (total - kept)) + (x - kept)
    return total, low + error


def finite(tree: Any) -> bool:
    """Whether every floating-point number of a pytree is finite. On the host: in the program it costs kernels."""
    leaves = (np.asarray(x) for x in jax.tree.leaves(tree) if jnp.issubdtype(x.dtype, jnp.floating))
    return all(np.isfinite(x).all() for x in leaves)
