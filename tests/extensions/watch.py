"""An extension that watches every phase of an agent, and agents whose own keys are watched."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ajax.agents import MODULES, get
from ajax.core.config import config, paths, setting
from ajax.core.expert import Stateless
from ajax.core.hooks import ALWAYS, PHASES, Extension
from ajax.core.keys import stream
from ajax.training.chunk import loop_of
from tests.agents.contract import Witness, settle, steps_for, taught, tiny

TARGET = 7.0
"""What the watchers of a run make of every target, together."""

UPDATES = 8

SRC = Path(__file__).parents[2] / "src" / "ajax" / "agents"


class Call(NamedTuple):
    """One call of a phase: who was called, in which update, with which key, and the target that was shown."""

    who: str
    phase: str
    update: int
    key: bytes
    target: float


_calls: dict[str, list[Call]] = {}
_parts: dict[str, dict[str, frozenset[str]]] = {}


def folded(agent: Any) -> tuple[str, ...]:
    """Every phase that a run of an agent folds."""
    every = type(agent).folds | loop_of(agent, False).FOLDS | ALWAYS
    return tuple(phase for phase in PHASES if phase in every)


@config
class Watched(Extension):
    """What all watchers share."""

    to: str = setting(help="run and place in the stack, under which the calls are kept")
    add: float = setting(help="what `on_target` makes of a target: it times 0, or as it is, and this")
    first: bool = setting(help="whether the target is forgotten first")

    @property
    def pretrain_rows(self) -> int:
        return 4

    @property
    def eval_rows(self) -> int:
        return 2

    def demonstrator(self) -> Any:
        return Stateless(_zero)

    def note(self, phase: str, view: Any) -> None:
        """Keep which parts of the batch there are (as it is traced), and the call (as it runs)."""
        run = self.to.partition("/")[0]
        there = {name for name, value in vars(view.batch).items() if value is not None and name != "extras"}
        _parts.setdefault(run, {})[phase] = frozenset(there)
        target = jnp.nan if view.target is None else view.target.mean()
        words = jax.random.key_data(view.key)
        jax.debug.callback(functools.partial(_called, self.to, phase), words, view.clock.update, target)


def _zero(obs: jax.Array) -> jax.Array:
    return jnp.zeros(1, jnp.float32)


def _called(to: str, phase: str, words: Any, update: Any, target: Any) -> None:
    run, _, who = to.partition("/")
    _calls.setdefault(run, []).append(Call(who, phase, int(update), np.asarray(words).tobytes(), float(target)))


def _watch(phase: str) -> Callable[..., Any]:
    """A phase that notes its call and changes nothing, but for `on_target`."""

    def acting(self: Any, action: Any, view: Any) -> Any:
        self.note(phase, view)
        return action, view.each

    def on_target(self: Any, target: Any, view: Any) -> Any:
        self.note(phase, view)
        return target * (1.0 - self.first) + self.add

    def first_of_two(self: Any, given: Any, view: Any) -> Any:
        self.note(phase, view)
        return given

    def viewing(self: Any, view: Any) -> Any:
        self.note(phase, view)
        kept = {"pretrain": (view.state, view.own), "record": ({}, view.each), "post_update": view.own}
        return kept.get(phase, {} if phase == "eval_metrics" else 0.0)

    if phase in ("act", "execute", "eval_act"):
        return acting
    if phase == "on_target":
        return on_target
    return first_of_two if phase in ("sample", "reward") else viewing


def watcher(agent: Any) -> Callable[..., Watched]:
    """A class of extension that takes part in every phase that a run of the agent folds."""
    methods = {phase: _watch(phase) for phase in folded(agent)}
    return config(type(f"Watch{type(agent).__name__}", (Watched,), methods))


def noting(agent: Any, run: str) -> Any:
    """The agent, of a class that notes the keys that its `act` and `update` are given, and those it makes of them."""
    cls = type(agent)
    source = (SRC / f"{MODULES[cls.__name__]}.py").read_text()
    names = ("", *sorted(set(re.findall(r'stream\(\w+, "(\w+)"\)', source))))

    def note(verb: str, key: jax.Array, update: Any) -> None:
        for name in names:
            words = jax.random.key_data(stream(key, name) if name else key)
            jax.debug.callback(functools.partial(_called, f"{run}/agent", f"{verb} {name}"), words, update, jnp.nan)

    def act(self: Any, state: Any, x: Any, key: Any, clock: Any, explore: bool) -> Any:
        note("act" if explore else "evaluate", key, clock.update)
        return cls.act(self, state, x, key, clock, explore)

    def update(self: Any, state: Any, b: Any, key: Any, clock: Any, hooks: Any) -> Any:
        note("update", key, clock.update)
        return cls.update(self, state, b, key, clock, hooks)

    made = config(type(f"Noting{cls.__name__}", (cls,), {"act": act, "update": update}))
    return made(**{f.name: getattr(agent, f.name) for f in dataclasses.fields(made)})


@functools.cache
def watched(name: str, kind: str) -> tuple[Any, list[Call], dict[str, frozenset[str]]]:
    """A tiny run with two watchers: the result, all calls, and the parts of each phase's batch."""
    delays = {path: 2 for path in paths(get(name)()) if path == "policy_delay"}  # due within so few updates
    agent, run = noting(tiny(name, **taught(name, kind), **delays), f"{name} {kind}"), f"{name} {kind}"
    watch = watcher(get(name)())
    stack = watch(to=f"{run}/0", add=TARGET - 4.0, first=True), watch(to=f"{run}/1", add=4.0, first=False)
    steps = steps_for(agent, UPDATES)
    result = agent.train(Witness(kind), steps, evaluations=2, episodes=2, progress=False, extensions=stack)
    last = {("1", "post_update"), ("1", "eval_metrics")}
    settle(lambda: sum((call.who, call.phase) in last for call in _calls.get(run, [])), UPDATES + 2)
    return result, _calls[run], _parts[run]
