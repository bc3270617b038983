"""The host loop: the same agents, runs and reports, around a Gymnasium environment, which can't live inside XLA.

Acting and learning are compiled; stepping is Python's. A checkpoint holds all but the environment's inner state,
which Gymnasium can't give: a resumed run starts new episodes, and is otherwise where it was.
"""

from __future__ import annotations

import functools
import itertools
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.buffers import episodes
from ajax.core.expert import Expert, advise, memories
from ajax.core.keys import seed_key, stream
from ajax.core.records import Array, Batch, Clock, Inputs
from ajax.core.spaces import Space, to_box
from ajax.environments.gymnasium import GymnasiumVector
from ajax.training import commands
from ajax.training.chunk import NEVER, Report, Sanity, finite, loop_of, make_run
from ajax.training.collect import count_episodes, sees, transition, uniform
from ajax.training.evaluate import EXPERT_RETURN, Evaluation, eval_rows, follow, greedy, measure, rivals, start_of
from ajax.training.memory import Carry, noted, recall, remember
from ajax.training.pretrain import fold
from ajax.training.programs import compile_soon, numbers
from ajax.training.run import Finished, Run, Task
from ajax.training.stage import Stage, add_names


class Spaces(struct.PyTreeNode):
    """The part of a Gymnasium environment that compiled programs see."""

    observation_space: Space = struct.field(pytree_node=False)
    action_space: Space = struct.field(pytree_node=False)


class HostLanes:
    """Runs of several lanes on Gymnasium environments; see `ajax.training.lanes.Lanes` for what each method does."""

    def __init__(self, agents: list[Any], seeds: list[int], task: Task, horizon: float, limit: int):
        self.env, self.n, self.seeds = task.env, len(agents), seeds
        spaces = Spaces(self.env.observation_space, self.env.action_space)
        self.task = numbers(task.replace(env=spaces))
        self.agents, self.horizon, self.limit = [numbers(a) for a in agents], jnp.float32(horizon), limit
        self.static_agent, self.offline = agents[0], task.offline
        self.warmup = loop_of(agents[0], self.offline).warmup_ticks(agents[0])
        self.vectors: list[GymnasiumVector] = []
        self.runs: list[Run] = []
        self._programs: dict[tuple, Any] = {}
        self._rehearsed = False

    def begin(self) -> Sanity:
        """Make every run, and reset its environments."""
        sanity = []
        for lane, (agent, seed) in enumerate(zip(self.agents, self.seeds, strict=True)):
            obs = self._reset(lane, 0)
            args = agent, self.task, seed_key(seed), obs
            run = compile_soon(_begin, *args, static={}, quick=True).result()(*args)
            self.runs.append(_on_host(run).replace(obs=obs))
            sanity.append(np.isfinite(obs).all())
        fine = np.ones(self.n, bool)
        return Sanity(np.array(sanity), fine, fine, fine)

    def pretrain(self) -> None:
        """Let every run's extensions do what they do before training."""
        for lane, i in itertools.product(range(self.n), range(len(self.task.extensions))):
            extension = self.task.extensions[i]
            if "pretrain" in extension.phases():
                expert = extension.demonstrator()
                key, seed = stream(self.runs[lane].key, f"demonstrator {i}"), _seed(self.seeds[lane], i, "demonstrator")
                rows = None if expert is None else play(self.env, self.task, expert, extension.pretrain_rows, key, seed)
                inside = self.runs[lane].replace(**dict.fromkeys(_OUTSIDE, ()))
                program = compile_soon(fold, self.agents[lane], self.task, inside, rows, static={"i": i}).result()
                inside = program(self.agents[lane], self.task, inside, rows)
                run = self.runs[lane]
                self.runs[lane] = inside.replace(**{name: getattr(run, name) for name in _OUTSIDE})

    def _reset(self, lane: int, resumed: int) -> np.ndarray:
        """Make a lane's environments; each time that the run is resumed they are seeded anew."""
        self.vectors.append(self.env.vector(self.task.n_envs, _seed(self.seeds[lane], resumed, "train")))
        return self.vectors[lane].reset()

    def compile(self, episodes: int) -> None:
        """Make sure that an evaluation can have its copies, and the stack what it needs, before anything is stepped.

        Programs are compiled when they are first needed.
        """
        if episodes:
            self.env.vector(episodes, 0).close()
        if self.task.extensions and not self._rehearsed:
            rehearsal = functools.partial(_rehearse, episodes=episodes)
            jax.eval_shape(rehearsal, self.agents[0], self.task, self.runs[0], self.horizon)
            self._rehearsed = True

    def advance(self, first: int, n: int, active: np.ndarray) -> Report:
        """Advance the `active` runs by ticks first .. first + n - 1."""
        reports = [self._advance(lane, first, n if active[lane] else 0) for lane in range(self.n)]
        names = sorted({name for report in reports for name in report.metrics})
        for report in reports:
            report.metrics.update({name: np.full(2, np.nan) for name in names if name not in report.metrics})
            report.first_bad.update({name: np.array(NEVER) for name in names if name not in report.first_bad})
        return jax.tree.map(lambda *x: np.stack(x), *reports)

    def _advance(self, lane: int, first: int, n: int) -> Report:
        metrics: list[tuple[int, dict[str, Any]]] = []
        ended: list[Finished] = []
        for tick in range(first, first + n):
            learn = tick >= self.warmup
            measured, finished = self._tick(lane, tick, learn)
            if learn:
                metrics.append((tick, measured))
            ended += finished
        rows = [(tick, jax.device_get(measured)) for tick, measured in metrics]
        names = rows[0][1] if rows else {}
        sums: dict[str, Array] = {name: _parts([row[name] for _, row in rows]) for name in names}
        bad: dict[str, Array] = {
            name: np.array(min((t for t, row in rows if not np.isfinite(row[name])), default=NEVER)) for name in names
        }
        total = jax.tree.map(lambda *x: _parts(x), Finished.none(), *ended)
        return Report(sums, bad, total)

    def _tick(self, lane: int, tick: int, learn: bool) -> tuple[dict[str, Any], list[Finished]]:
        rollout, ended = ((), []) if self.offline else self._collect(lane, tick, learn)
        # what only the host changes stays with it, in NumPy
        inside = self.runs[lane].replace(**dict.fromkeys(_OUTSIDE, ()))
        args = self.agents[lane], self.task, inside, rollout, np.int32(tick), self.horizon
        inside, metrics = self._call(_learn, self.task.n_envs, *args, donate=(2,), learn=learn)
        run = self.runs[lane]
        self.runs[lane] = inside.replace(**{name: getattr(run, name) for name in _OUTSIDE})
        return metrics, ended

    def _collect(self, lane: int, tick: int, learn: bool) -> tuple[Batch, list[Finished]]:
        """Step the environments, in NumPy; returns the rows (steps, n_envs, ...) and the episodes that ended."""
        agent, vector = self.static_agent, self.vectors[lane]
        rows, ended = [], []
        for i in range(_steps(agent)):
            run = self.runs[lane]
            clocks = {
                "episode_return": np.float32(run.episode_return),
                "episode_length": np.float32(run.episode_length),
            }
            seen = run.replace(store=(), env=(), **clocks)
            args = self.agents[lane], self.task, seen, np.int32(tick), np.int32(i), self.horizon
            acted, asked, each = self._call(_act, vector.n_envs, *args, learn=learn)
            action, box_action, extras, carry = jax.device_get(acted)
            out = vector.step(box_action)
            row = transition(run.obs, action, out.reward, out.terminated, out.truncated, out.final_obs, extras)
            row = noted(row, recall(run, Inputs(run.obs)), carry)
            if self.task.folds("record"):
                after = self.agents[lane], self.task, seen.replace(each=each), row, *args[3:]
                recorded, each = self._call(_record, vector.n_envs, *after, learn=learn)
                row = row.replace(extras=extras | jax.device_get(recorded))
            rows.append(row)
            run, finished = count_episodes(run, out.reward, out.terminated | out.truncated)
            self.runs[lane] = run.replace(obs=out.obs, each=each, carry=carry, commands=asked)
            ended.append(finished)
        return jax.tree.map(lambda *x: np.stack(x), *rows), ended

    def _call(self, function: Callable, n: int, *args: Any, donate: tuple[int, ...] = (), **static: Any) -> Any:
        """Call the program for `n` environments, compiled at its first use with these arguments' structure."""
        identity = function, n, tuple(static.items()), jax.tree.structure(args)
        if identity not in self._programs:
            self._programs[identity] = compile_soon(function, *args, static=static, donate=donate).result()
        return self._programs[identity](*args)

    def evaluate(self, tick: int, episodes: int) -> Evaluation:
        """Evaluate every run on fresh copies of the environment, seeded by lane and tick."""
        outcomes = [self._evaluate(lane, tick, episodes) for lane in range(self.n)]
        return jax.tree.map(lambda *x: np.stack(x), *outcomes)

    def _evaluate(self, lane: int, tick: int, episodes: int) -> Evaluation:
        run = self.runs[lane].replace(store=(), each=(), **dict.fromkeys(_OUTSIDE, ()))
        agent = self.agents[lane]
        start = start_of(agent, self.task, run, episodes)
        args = agent, self.task, run, np.int32(tick)
        outcome, rows = self._episodes(lane, tick, episodes, _greedy, args, start, eval_rows(self.task))
        metrics = (
            dict(jax.device_get(self._call(_measure, episodes, *args, rows))) if self.task.folds("eval_metrics") else {}
        )
        for rival in rivals(self.task):
            start = memories(rival, episodes)
            theirs, _ = self._episodes(
                lane, tick, episodes, _follow, (rival, self.task, run.key, np.int32(tick)), start, 0
            )
            add_names(metrics, {EXPERT_RETURN: theirs.returns.mean()}, "rival")
        return outcome.replace(metrics=metrics)

    def _episodes(
        self, lane: int, tick: int, episodes: int, policy: Callable, args: tuple, memory: Any, n_rows: int
    ) -> tuple[Evaluation, Batch | None]:
        """One episode in each of `episodes` environments, and its first `n_rows` steps; see `evaluate.play`."""
        vector = self.env.vector(episodes, _seed(self.seeds[lane], tick, "evaluate"))
        obs = vector.reset()
        returns, lengths, done = np.zeros(episodes), np.zeros(episodes), np.zeros(episodes, bool)
        rows = []
        for t in range(self.limit):
            action, box_action, memory = self._call(
                policy, episodes, *args, obs, memory, np.int32(t), np.float32(returns)
            )
            out = vector.step(np.asarray(box_action))
            if t < n_rows:
                flags, valid = (out.terminated, out.truncated), {"valid": np.float32(~done)}
                rows.append(transition(obs, np.asarray(action), out.reward, *flags, out.final_obs, valid))
            returns += np.where(done, 0.0, out.reward)
            lengths += ~done
            done |= out.terminated | out.truncated
            obs = out.obs
            if done.all():
                break
        vector.close()
        if rows:  # as many as the compiled program has, so that a measure is of one shape
            rows += [jax.tree.map(np.zeros_like, rows[0])] * (n_rows - len(rows))
        return Evaluation(returns, lengths, done), jax.tree.map(lambda *x: np.stack(x), *rows) if rows else None

    def healthy(self) -> np.ndarray:
        """Whether every number of each agent's state is finite (lanes,)."""
        return np.array([finite(run.agent) for run in self.runs])

    def tree(self) -> Any:
        """All runs as one pytree, leading axis lanes."""
        return jax.tree.map(lambda *x: jnp.stack(x), *self.runs)

    def load(self, tree: Any) -> None:
        """Take over the runs of `tree`; their environments start new episodes."""
        for vector in self.vectors:
            vector.close()
        self.vectors, self.runs = [], []
        for lane in range(self.n):
            run = _on_host(jax.tree.map(lambda x, lane=lane: jnp.asarray(x[lane]), tree))
            resumed = run.env + 1
            zeros = np.zeros_like(run.episode_return)
            obs = self._reset(lane, int(resumed))
            statistics = run.statistics.replace(discounted=jax.tree.map(np.zeros_like, run.statistics.discounted))
            if isinstance(run.store, episodes.Store):
                run = run.replace(store=episodes.restart(run.store))
            run = run.replace(env=resumed, obs=obs, episode_return=zeros, episode_length=zeros, statistics=statistics)
            self.runs.append(run)

    def expected(self) -> Any:
        """Shapes and dtypes of `tree`."""
        obs = self.env.observation_space.zeros((self.task.n_envs,))
        run = jax.eval_shape(_begin, self.agents[0], self.task, seed_key(0), obs)
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct((self.n, *x.shape), x.dtype), run)

    def run(self, lane: int) -> Run:
        """One lane's run."""
        return self.runs[lane]


def play(env: Any, task: Task, expert: Expert, n_steps: int, key: jax.Array, seed: int) -> Batch:
    """Raw transitions (n_steps, n_envs, ...) of an expert in environments of its own, actions in agent units.

    Args:
        env: a `GymnasiumEnv`.
        task: its spaces, and how many of it.
        expert: who acts.
        n_steps: steps of each.
        key: of the expert.
        seed: of the environments.
    """
    n, rows = task.n_envs, []
    vector = env.vector(n, seed)
    obs, memory, elapsed = vector.reset(), memories(expert, n), np.zeros(n, np.float32)
    program = compile_soon(_advise, expert, task, key, obs, memory, elapsed, np.int32(0), static={}).result()
    for t in range(n_steps):
        action, box_action, memory = program(expert, task, key, obs, memory, elapsed, np.int32(t))
        out = vector.step(np.asarray(box_action))
        flags = out.terminated, out.truncated
        rows.append(transition(obs, np.asarray(action), out.reward, *flags, out.final_obs, {}))
        obs, elapsed = out.obs, np.where(out.terminated | out.truncated, 0, elapsed + 1).astype(np.float32)
    vector.close()
    return jax.tree.map(lambda *x: np.stack(x), *rows)


_OUTSIDE = ("env", "obs", "episode_return", "episode_length", "carry")
"""What of a `Run` only the host changes. `env` counts how often the run was resumed."""


def _on_host(run: Run) -> Run:
    """A run whose part that only the host changes is in NumPy."""
    return run.replace(**{name: jax.tree.map(np.array, getattr(run, name)) for name in _OUTSIDE})


def _seed(seed: int, count: int, use: str) -> int:
    """A seed for Gymnasium, different for every run, count and use."""
    return int(np.random.SeedSequence([seed, count, zlib.crc32(use.encode())]).generate_state(1)[0])


def _parts(values: Any) -> np.ndarray:
    """Their sum, exact in float64, in the form of a `Report`."""
    return np.array([np.sum(values, dtype=np.float64), 0.0])


def _steps(agent: Any) -> int:
    """Steps of every environment in a tick."""
    return agent.rollout.n_steps if agent.loop == "on_policy" else agent.replay.steps


def _clock(loop: Any, agent: Any, tick: jax.Array, i: jax.Array | int, n_envs: int, horizon: jax.Array) -> Clock:
    step = tick.astype(jnp.float32) * loop.steps_per_tick(agent) + i * n_envs
    return Clock(step, (tick - loop.warmup_ticks(agent)) * loop.updates_per_tick(agent), horizon)


def _begin(agent: Any, task: Task, key: jax.Array, obs: jax.Array) -> Run:
    zeros = jnp.zeros(task.n_envs)
    return make_run(agent, task, key, jnp.int32(0), transition(obs, uniform(task, key), zeros, zeros, zeros, obs, {}))


def _stage(agent: Any, task: Task, run: Run, tick: jax.Array, i: jax.Array, horizon: jax.Array) -> Stage:
    """The extensions at the i-th step of a tick."""
    key = stream(jax.random.fold_in(stream(jax.random.fold_in(run.key, tick), "collect"), i), "act")
    clock = _clock(loop_of(agent, False), agent, tick, i, task.n_envs, horizon)
    return Stage(agent, task, run, clock, key, run.each, run.episode_length)


def _act(
    agent: Any, task: Task, run: Run, tick: jax.Array, i: jax.Array, horizon: jax.Array, learn: bool
) -> tuple[tuple[jax.Array, jax.Array, dict, Carry], Any, tuple]:
    stage = _stage(agent, task, run, tick, i, horizon)
    run = run.replace(commands=commands.renewed(run.commands, run.episode_length, stream(stage.key, "command")))
    x = sees(run, task)
    if learn:
        action, extras = agent.act(run.agent, x, stage.key, stage.clock, True)
    else:
        action, extras = uniform(task, stage.key), {}
    action = stage.act("act", x, action)
    box_action = to_box(task.spec.action, stage.act("execute", x, action))
    return (action, box_action, extras, remember(agent, run.agent, x)), run.commands, stage.each


def _record(
    agent: Any, task: Task, run: Run, row: Batch, tick: jax.Array, i: jax.Array, horizon: jax.Array, learn: bool
) -> tuple[dict, tuple]:
    stage = _stage(agent, task, run, tick, i, horizon)
    return stage.record(row), stage.each


def _greedy(
    agent: Any, task: Task, run: Run, tick: jax.Array, obs: jax.Array, kept: tuple, t: jax.Array, earned: jax.Array
) -> tuple[jax.Array, jax.Array, tuple]:
    key = jax.random.fold_in(jax.random.fold_in(stream(run.key, "evaluate"), tick), t)
    action, executed, kept = greedy(agent, task, run)(key, obs, kept, jnp.full(obs.shape[0], t, jnp.float32), earned)
    return action, to_box(task.spec.action, executed), kept


def _follow(
    expert: Expert,
    task: Task,
    run_key: jax.Array,
    tick: jax.Array,
    obs: jax.Array,
    memory: Any,
    t: jax.Array,
    earned: jax.Array,
) -> tuple[jax.Array, jax.Array, Any]:
    key = jax.random.fold_in(jax.random.fold_in(stream(run_key, "rival"), tick), t)
    action, executed, memory = follow(task, expert)(key, obs, memory, jnp.full(obs.shape[0], t, jnp.float32), earned)
    return action, to_box(task.spec.action, executed), memory


def _advise(
    expert: Expert, task: Task, key: jax.Array, obs: jax.Array, memory: Any, elapsed: jax.Array, t: jax.Array
) -> tuple[jax.Array, jax.Array, Any]:
    action, memory = advise(expert, task.spec.action, memory, obs, jax.random.fold_in(key, t), elapsed)
    return action, to_box(task.spec.action, action), memory


def _measure(agent: Any, task: Task, run: Run, tick: jax.Array, rows: Batch | None) -> dict:
    return measure(agent, task, run, rows, jax.random.fold_in(stream(run.key, "evaluate"), tick))


def _learn(
    agent: Any, task: Task, run: Run, rollout: Any, tick: jax.Array, horizon: jax.Array, learn: bool
) -> tuple[Run, dict]:
    """What a tick does after its rows (steps, n_envs, ...) are there."""
    loop = loop_of(agent, task.offline)
    key = jax.random.fold_in(run.key, tick)
    clock = _clock(loop, agent, tick, 0, task.n_envs, horizon)
    if task.offline:
        run, metrics, _ = loop.tick(agent, task, run, key, clock, learn)
        return run, metrics
    key = stream(key, "learn")
    if agent.loop == "on_policy":
        return loop.learn_from(agent, task, run, rollout, key, clock)
    run, _ = jax.lax.scan(lambda run, row: (loop.keep(task, run, row), None), run, rollout)
    return loop.learn_from(agent, task, run, key, clock, learn)


def _rehearse(agent: Any, task: Task, run: Run, horizon: jax.Array, episodes: int) -> None:
    """A tick that learns, and an evaluation, on rows of zeros: to be traced, so that it raises what they would."""
    tick, obs = jnp.int32(0), jnp.asarray(run.obs)

    def rows(n: int, row: Batch) -> Batch:
        return jax.tree.map(lambda x: jnp.broadcast_to(x, (n, *x.shape)), row)

    rollout: Batch | tuple = ()
    if not task.offline:
        (action, _, extras, carry), _, each = _act(agent, task, run, tick, tick, horizon, True)
        zeros = jnp.zeros(task.n_envs)
        row = noted(transition(obs, action, zeros, zeros, zeros, obs, extras), recall(run, Inputs(obs)), carry)
        recorded, _ = _record(agent, task, run.replace(each=each), row, tick, tick, horizon, True)
        rollout = rows(_steps(agent), row.replace(extras=extras | recorded))
    _learn(agent, task, run, rollout, tick, horizon, True)
    if episodes:
        obs = jnp.broadcast_to(obs[:1], (episodes, *obs.shape[1:]))
        start, nothing_yet = start_of(agent, task, run, episodes), jnp.zeros(episodes)
        action, _, _ = _greedy(agent, task, run, tick, obs, start, tick, nothing_yet)
        if task.folds("eval_metrics"):
            zeros = jnp.zeros(episodes)
            row = transition(obs, action, zeros, zeros, zeros, obs, {"valid": zeros})
            _measure(agent, task, run, tick, rows(eval_rows(task), row) if eval_rows(task) else None)
