"""Lanes: a run for every seed and every hyper-parameter value, all advanced by one compiled program.

On a CPU each lane is dispatched on its own, as many at once as there are cores: a batch axis would make the program
two to three times slower to compile and gains nothing where a core is busy anyway. On accelerators, and wherever
there are several devices, all lanes are one batched program whose lane axis is sharded over the devices. Either
way a gate (a delay, a refresh) is computed from an unbatched clock, so that it stays a real branch.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ajax.core.keys import seed_key
from ajax.training import chunk, evaluate, pretrain
from ajax.training.programs import compile_soon, numbers, shapes
from ajax.training.run import Task

_workers = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="ajax-lane")


class Lanes:
    """The runs of several lanes, and the programs that advance them.

    Args:
        agents: one configuration a lane; they differ in numbers only.
        seeds: one seed a lane.
        task: environment and options, common to all.
        horizon: environment steps of a whole run; schedules end there.
        limit: steps after which an evaluation cuts an unfinished episode.
        devices: what to run on, `jax.devices()` unless given.
    """

    def __init__(self, agents: list[Any], seeds: list[int], task: Task, horizon: float, limit: int, devices=None):
        devices = devices or jax.devices()
        self.n = len(agents)
        self.apart = len(devices) == 1 and devices[0].platform == "cpu"
        self.mesh = None if self.apart else _mesh(self.n, devices)
        self.task, self.horizon, self.limit = numbers(task), jnp.float32(horizon), jnp.int32(limit)
        self.agents, self.keys = [numbers(agent) for agent in agents], [seed_key(seed) for seed in seeds]
        self.warmup = chunk.loop_of(agents[0], task.offline).warmup_ticks(agents[0])
        if not self.apart:
            self.agents, self.keys = [self._spread(_stack(self.agents))], [self._spread(_stack(self.keys))]
        self._avals = shapes(self._batched(chunk.begin, (0, None, 0)), self.agents[0], self.task, self.keys[0])[0]
        if self.mesh is not None:  # else the compiler would choose for what a program does not use
            sharding = NamedSharding(self.mesh, PartitionSpec("lane"))
            self._avals = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding), self._avals)
        self.runs: list[Any] = []

    def begin(self) -> chunk.Sanity:
        """Make every run; returns what their environments did first, as arrays (lanes,)."""
        args = self.agents[0], self.task, self.keys[0]
        begin = self._compile(chunk.begin, (0, None, 0), *args, quick=True)
        self._chunks()  # what takes longest to compile starts early
        program = begin.result()
        out = [program(agent, self.task, key) for agent, key in zip(self.agents, self.keys, strict=True)]
        self.runs = [run for run, _ in out]
        return self._gather([sanity for _, sanity in out])

    def pretrain(self) -> None:
        """Let every run's extensions do what they do before training."""
        if self.task.folds("pretrain"):
            args = self.agents[0], self.task, self._avals
            program = self._compile(pretrain.pretrain, (0, None, 0), *args, donate=(2,)).result()
            self.runs = [program(agent, self.task, run) for agent, run in zip(self.agents, self.runs, strict=True)]

    def compile(self, episodes: int) -> None:
        """Compile all that training needs, several programs at once, and return when it is there.

        Args:
            episodes: episodes of an evaluation; 0: none.
        """
        for program in self._chunks() + ([self._evaluation(episodes)] if episodes else []):
            program.result()

    def advance(self, first: int, n: int, active: np.ndarray) -> chunk.Report:
        """Advance the `active` (lanes,) runs by ticks first .. first + n - 1; returns a report, arrays (lanes,).

        The rows of lanes that are not active repeat another lane's.
        """
        program = self._chunk(first >= self.warmup).result()
        args = jnp.int32(first), jnp.int32(n), self.horizon

        def go(i: int) -> chunk.Report:
            self.runs[i], report = program(self.agents[i], self.task, self.runs[i], *args)
            return jax.block_until_ready(report)

        which = [i for i in range(len(self.runs)) if not self.apart or active[i]]
        reports = dict(zip(which, _workers.map(go, which), strict=True))
        return self._gather([reports.get(i, reports[which[0]]) for i in range(len(self.runs))])

    def evaluate(self, tick: int, episodes: int) -> evaluate.Evaluation:
        """Evaluate every run as it stands at `tick`; returns arrays (lanes, episodes)."""
        program = self._evaluation(episodes).result()

        def go(i: int) -> evaluate.Evaluation:
            return jax.block_until_ready(program(self.agents[i], self.task, self.runs[i], jnp.int32(tick), self.limit))

        return self._gather(list(_workers.map(go, range(len(self.runs)))))

    def healthy(self) -> np.ndarray:
        """Whether every number of each agent's state is finite (lanes,)."""
        if self.apart:
            return np.array([chunk.finite(run.agent) for run in self.runs])
        agents = jax.device_get(self.runs[0].agent)
        return np.array([chunk.finite(jax.tree.map(lambda x, i=i: x[i], agents)) for i in range(self.n)])

    def tree(self) -> Any:
        """All runs as one pytree on the host, leading axis lanes: what a checkpoint holds."""
        return self._gather(self.runs, keys=True)

    def load(self, tree: Any) -> None:
        """Take over the runs of `tree`."""
        self.runs = _unstack(tree, self.n) if self.apart else [self._spread(tree)]

    def expected(self) -> Any:
        """Shapes and dtypes of `tree`."""
        if not self.apart:
            return self._avals
        return jax.tree.map(lambda x: jax.ShapeDtypeStruct((self.n, *x.shape), x.dtype), self._avals)

    def run(self, lane: int) -> Any:
        """One lane's run."""
        return self.runs[lane] if self.apart else jax.tree.map(lambda x: x[lane], self.runs[0])

    def _chunks(self) -> list[Future]:
        return [self._chunk(learn) for learn in ([True, False] if self.warmup else [True])]

    def _chunk(self, learn: bool) -> Future:
        zero = jnp.int32(0)
        args = self.agents[0], self.task, self._avals, zero, zero, self.horizon
        return self._compile(chunk.chunk, (0, None, 0, None, None, None), *args, static={"learn": learn}, donate=(2,))

    def _evaluation(self, episodes: int) -> Future:
        args = self.agents[0], self.task, self._avals, jnp.int32(0), self.limit
        static = {"episodes": episodes}
        return self._compile(evaluate.evaluate, (0, None, 0, None, None), *args, static=static, quick=True)

    def _compile(self, function: Callable, axes: tuple, *args: Any, static=None, donate=(), quick=False):
        return compile_soon(
            _Program(function, () if self.apart else axes, self.mesh),
            *args, static=static or {}, donate=donate, quick=quick and self.apart,
        )  # fmt: skip

    def _batched(self, function: Callable, axes: tuple) -> Callable:
        return _Program(function, () if self.apart else axes, self.mesh)

    def _spread(self, tree: Any) -> Any:
        assert self.mesh is not None
        sharding = NamedSharding(self.mesh, PartitionSpec("lane"))
        return jax.tree.map(lambda x: jax.device_put(x, sharding), tree)

    def _gather(self, blocks: list[Any], keys: bool = False) -> Any:
        host = jax.device_get if not keys else (lambda x: x)
        return _stack(host(blocks)) if self.apart else host(blocks[0])


class _Program:
    """`function`, batched over the lane axis of some arguments and sharded over a mesh; equal if those are equal."""

    def __init__(self, function: Callable, axes: tuple, mesh: Mesh | None):
        self.identity = function, axes, mesh

    def __call__(self, *args: Any, **static: Any) -> Any:
        function, axes, mesh = self.identity
        function = functools.partial(function, **static)
        if not axes:
            return function(*args)
        specs = tuple(PartitionSpec("lane") if axis == 0 else PartitionSpec() for axis in axes)
        batched = jax.vmap(function, in_axes=axes)
        out = PartitionSpec("lane")
        return jax.shard_map(batched, mesh=mesh, in_specs=specs, out_specs=out, check_vma=False)(*args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Program) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)


def _mesh(n: int, devices: list[Any]) -> Mesh:
    """As many devices as divide the lanes evenly."""
    used = max(k for k in range(1, len(devices) + 1) if n % k == 0)
    return Mesh(np.array(devices[:used]), ("lane",))


def _stack(trees: list[Any]) -> Any:
    return jax.tree.map(_stack_leaves, *trees)


def _stack_leaves(*leaves: Any) -> Any:
    if jnp.issubdtype(leaves[0].dtype, jax.dtypes.prng_key):
        return jnp.stack(leaves)
    return np.stack([np.asarray(leaf) for leaf in leaves])


def _unstack(tree: Any, n: int) -> list[Any]:
    return [jax.tree.map(lambda x, i=i: jnp.asarray(x[i]), tree) for i in range(n)]
