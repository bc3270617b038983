"""One training step of an agent made comparable with a record of its original, without a change to the code under test.

`Record` reads the record; `Tape` supplies the random numbers that the original drew; `Check` loads the state before,
runs the agent's own `update`, and says which leaves changed otherwise than in the record.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ajax.core.hooks import Extension, Hooks
from ajax.core.learn import adam
from ajax.core.records import Batch, Clock, Inputs, Net
from tests.conformance.submaps import Flat, Leaf, misfits, to_flat, to_params

DATA = Path(__file__).parent / "data"
STAGES = {1: "after1", 2: "after2", 4: "after4"}
"""Updates made, and the name of what the record holds then."""

Patch = Callable[[], contextlib.AbstractContextManager]


class Record:
    """A record of an original's updates: see its JSON for the original, its revision, and its conventions."""

    def __init__(self, name: str):
        self.config: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text())["config"]
        with np.load(DATA / f"{name}.npz") as arrays:
            self.arrays: Flat = {key: arrays[key] for key in arrays.files}

    def under(self, prefix: str) -> Flat:
        """Arrays whose name begins with `prefix/`, without it."""
        return {key.removeprefix(f"{prefix}/"): v for key, v in self.arrays.items() if key.startswith(f"{prefix}/")}

    def at(self, prefix: str, update: int) -> Flat:
        """Arrays `prefix/<name>/<update>`, by name."""
        found = self.under(prefix)
        return {key.removesuffix(f"/{update}"): v for key, v in found.items() if key.endswith(f"/{update}")}

    def draw(self, name: str, update: int) -> np.ndarray:
        """The draw of this name in an update; NaN where the original did not come to draw it."""
        drawn = self.at("draw", update)
        return drawn[name] if name in drawn else np.full_like(next(iter(self.under(f"draw/{name}").values())), np.nan)

    def batch(self, update: int, scale: float = 1.0) -> Batch:
        """The transitions of an update; actions are divided by `scale`."""
        b = self.at("batch", update)
        action = b["action"] / b["action"].dtype.type(scale) if b["action"].ndim == 2 else b["action"]
        truncated = np.zeros_like(b["done"])
        return Batch(Inputs(b["obs"]), action, b["reward"], b["done"], truncated, Inputs(b["next_obs"]))


@contextlib.contextmanager
def tape(module: ModuleType, draws: dict[str, jax.Array]) -> Iterator[None]:
    """Answer `jax.random.normal(stream(key, name), ...)`, and `choice`, of an agent's module with `draws[name]`.

    Raises:
        AssertionError: a number was drawn that the original does not draw, twice or in another shape, or one of its
            draws was not used.
    """
    left = dict(draws)

    def normal(key: Any, shape: tuple = (), dtype: Any = None) -> jax.Array:
        assert isinstance(key, str) and key in left, f"a draw that the record does not hold: {key!r}"
        draw = left.pop(key)
        assert draw.shape == tuple(shape), f"{key}: shape {shape}, the record's is {draw.shape}"
        return draw

    def choice(key: Any, a: Any, shape: tuple = (), replace: bool = True) -> jax.Array:
        return normal(key, shape)

    with (
        mock.patch.object(module, "stream", lambda key, name: name),
        mock.patch.object(jax.random, "normal", normal),
        mock.patch.object(jax.random, "choice", choice),
    ):
        yield
    assert not left, f"draws of the original that were not used: {sorted(left)}"


@dataclass(frozen=True)
class Network:
    """A network of ours, made of the record's arrays.

    Attributes:
        module: linen module.
        leaves: its map to the record.
        opt: name of its optimizer in the record; None for a target, which has none.
        clips: whether a limit of the gradient's norm comes before Adam.
        statistics: map to the record of what normalization layers have seen.
    """

    module: Any
    leaves: list[Leaf]
    opt: str | None = None
    clips: bool = False
    statistics: list[Leaf] = field(default_factory=list)

    def load(self, flat: Flat) -> Net:
        """The network at a stage of the record, with Adam's moments and step count."""
        params, statistics = to_params(flat, self.leaves, ""), to_params(flat, self.statistics, "")
        if self.opt is None:
            return Net(params, (), self.module, statistics)
        moments = {name: to_params(flat, self.leaves, f"{self.opt}/{m}/") for name, m in (("mu", "m"), ("nu", "v"))}
        empty = adam(max_grad_norm=1.0 if self.clips else None).init(params)
        opt = optax.tree.set(empty, count=np.int32(flat[f"{self.opt}/step"]), **moments)
        return Net(params, opt, self.module, statistics)

    def read(self, net: Net) -> Flat:
        """The network as the record would hold it."""
        flat = to_flat(net.params, self.leaves, "") | to_flat(net.statistics, self.statistics, "")
        if self.opt is None:
            return flat
        for name, m in (("mu", "m"), ("nu", "v")):
            flat |= to_flat(optax.tree.get(net.opt, name), self.leaves, f"{self.opt}/{m}/")
        return flat | {f"{self.opt}/step": np.asarray(optax.tree.get(net.opt, "count"))}


@dataclass(frozen=True)
class Check:
    """An agent, and how its state and its update correspond to a record's.

    Attributes:
        record: the record.
        agent: our configuration, set to the record's.
        module: the Python module that defines the agent: it holds the seams that are patched.
        networks: the fields of the agent's state.
        draws: name of each of our streams, and of the record's draw that answers it.
        scale: what the original's actions are in our units' stead: its box is [-scale, scale].
        first_update: index of the record's first update on our clock, which makes a step of each.
        horizon: steps at which schedules end.
        conventions: the original's ways that are not ours (`conventions`), in force while our update is compiled.
        extensions: conventions that an extension can express.
        expected: the record's state at a stage in our conventions; the record's itself unless given.
    """

    record: Record
    agent: Any
    module: ModuleType
    networks: dict[str, Network]
    draws: dict[str, str] = field(default_factory=dict)
    scale: float = 1.0
    first_update: int = 0
    horizon: float = 1.0
    conventions: Sequence[Patch] = ()
    extensions: tuple[Extension, ...] = ()
    expected: Callable[[str, Flat, Flat], Flat] = lambda stage, after, states: after

    @cached_property
    def names(self) -> set[str]:
        """Names of the record's leaves that are compared: all but counters, which our clock holds."""
        return {name for name in self.record.under("before") if not name.startswith("counter/")}

    def begin(self) -> Any:
        """Our state before the record's first update."""
        before = self.record.under("before")
        return self.module.State(**{name: network.load(before) for name, network in self.networks.items()})

    def read(self, state: Any) -> Flat:
        """Our state as the record would hold it."""
        flat: Flat = {}
        for name, network in self.networks.items():
            flat |= network.read(getattr(state, name))
        return flat

    def step(self, agent: Any, state: Any, b: Batch, draws: dict[str, jax.Array], update: jax.Array) -> Any:
        """Our update, fed with the record's random numbers."""
        clock = Clock(update.astype(float), update, jnp.float32(self.horizon))
        hooks = Hooks(agent, self.extensions, tuple(() for _ in self.extensions), clock, jax.random.key(0))
        with tape(self.module, draws):
            return agent.update(state, b, jax.random.key(0), clock, hooks)[0]

    def stages(self, updates: int, agent: Any, dtype: Any) -> dict[str, Flat]:
        """Our state at every stage that the record holds, up to `updates` updates, computed in `dtype`."""
        step, reached = jax.jit(lambda *inputs: self.step(*inputs)), {}  # traced anew, under the patches in force
        state = cast(self.begin(), dtype)
        for u in range(updates):
            inputs = (
                self.record.batch(u, self.scale),
                {ours: self.record.draw(theirs, u) for ours, theirs in self.draws.items()},
            )
            b, draws = cast(inputs, dtype)
            state = step(agent, state, b, draws, np.int32(self.first_update + u))
            if u + 1 in STAGES:
                reached[STAGES[u + 1]] = self.read(state)
        return reached

    def misfits(
        self, updates: int = 4, *, agent: Any = None, faults: Sequence[Patch] = (), x64: bool = True
    ) -> list[str]:
        """What differs from the record after 1, 2 and 4 updates, as sentences; empty where the agent conforms.

        Args:
            updates: how many are made.
            agent: a configuration to run in place of the right one.
            faults: further patches, in force while our update is compiled.
            x64: compute in float64, the strict check; else in float32.
        """
        with contextlib.ExitStack() as stack:
            for patch in (*self.conventions, *faults):
                stack.enter_context(patch())
            stack.enter_context(jax.enable_x64(x64))
            reached = self.stages(updates, agent or self.agent, np.float64 if x64 else np.float32)
        before, found = self.record.under("before"), []
        for stage, ours in reached.items():
            after, after32 = (
                self.expected(stage, self.pick(self.record.under(prefix + stage)), self.record.under(prefix + stage))
                for prefix in ("f64/", "")
            )
            found += [f"{stage}/{line}" for line in misfits(ours, before, after, None if x64 else after32)]
        return found

    def pick(self, flat: Flat) -> Flat:
        """The leaves that are compared."""
        return {name: value for name, value in flat.items() if name in self.names}


def cast(tree: Any, dtype: Any) -> Any:
    """Every floating array of a tree in `dtype`."""
    return jax.tree.map(lambda x: x.astype(dtype) if np.issubdtype(np.asarray(x).dtype, np.floating) else x, tree)


def fault(module: Any, name: str, wrong: Any) -> Patch:
    """A planted mistake: `module.name` replaced by `wrong` while the update is compiled."""
    return lambda: mock.patch.object(module, name, wrong)
