"""What can be probed: Ajax agents, and any class that learns in a Gymnasium environment.

A class of one's own needs a constructor and some of four methods; which it has decides what can be asked of it:

    class Mine:
        def __init__(self, env, seed): ...   # a gymnasium.Env, an integer
        def learn(self, steps): ...          # environment steps, all of them
        def q(self, obs): ...                # (n, features) -> (n, actions); under a box q(obs, action) -> (n,)
        def v(self, obs): ...                # (n, features) -> (n,)
        def act(self, obs): ...              # (n, features) -> (n,) or (n, dims): the best action, in the box's units
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ajax.core.agent import Agent
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.hooks import Extension
from ajax.core.spaces import Box
from ajax.probing.query import Readings
from ajax.probing.spec import Spec


class History(NamedTuple):
    """What led up to a moment, for agents that remember.

    Attributes:
        obs: observations (time, n, features), the last of which are those of the moment.
        reset: 1 where an episode begins, and what was before it must be forgotten (time, n).
    """

    obs: np.ndarray
    reset: np.ndarray


class Trained(Protocol):
    """What a subject has learned; every array leads with (seeds, observations).

    A subject that can't answer raises `CapabilityError`.
    """

    def q(self, obs: np.ndarray, action: np.ndarray | None = None) -> np.ndarray:
        """Q at observations (n, features): (seeds, n, actions), or (seeds, n) at actions (n, dims) of a box."""
        ...

    def v(self, obs: np.ndarray) -> np.ndarray:
        """V at observations: (seeds, n)."""
        ...

    def act(self, obs: np.ndarray) -> np.ndarray:
        """The best actions at observations, in the environment's units: (seeds, n) or (seeds, n, dims)."""
        ...


@runtime_checkable
class Subject(Protocol):
    """Something that trains on a Spec."""

    @property
    def name(self) -> str:
        """How reports call it."""
        ...

    def train(self, spec: Spec, budget: int, seeds: Sequence[int]) -> Trained:
        """Train every seed for `budget` environment steps (0: not at all) on `spec`."""
        ...


def readings(subject: Subject, spec: Spec, read: Callable[[Trained], np.ndarray]) -> Readings:
    """Return the readings of a case: train `subject` on `spec`, then `read` numbers (seeds, queries) off it.

    Trainings are kept, so that checking a case again, or another reading of it, costs nothing.
    """
    kept: dict[tuple[int, tuple[int, ...]], Trained] = {}

    def found(budget: int, seeds: Sequence[int]) -> np.ndarray:
        key = budget, tuple(seeds)
        if key not in kept:
            kept[key] = subject.train(spec, budget, seeds)
        return np.asarray(read(kept[key]), float)

    return found


class Playable(Protocol):
    """What an Ajax agent can be trained on: a Spec, or a `LinearEnv`."""

    @property
    def observation_space(self) -> Any:
        """What is observed."""
        ...

    @property
    def action_space(self) -> Any:
        """What actions are given in."""
        ...

    def env(self) -> Any:
        """The JAX environment."""
        ...


@dataclasses.dataclass(frozen=True)
class AjaxSubject:
    """An Ajax agent: all its seeds train in one compiled program.

    Attributes:
        agent: the configuration.
        normalize_observations, normalize_rewards, extensions: as for `train`.
        dataset: given what it is trained on, returns the `ajax.Dataset` to learn from; a budget then counts updates.
    """

    agent: Agent
    normalize_observations: bool = False
    normalize_rewards: bool = False
    extensions: tuple[Extension, ...] = ()
    dataset: Callable[[Any], Any] | None = None

    @property
    def name(self) -> str:
        """The agent's class."""
        return type(self.agent).__name__

    def train(self, spec: Playable, budget: int, seeds: Sequence[int]) -> AjaxTrained:
        """Train every seed; untrained networks are made without a run.

        Raises:
            KeyboardInterrupt: SIGINT or SIGTERM cut the training short.
        """
        import jax

        from ajax.core import records
        from ajax.core.keys import seed_key, stream

        if budget == 0:
            told = records.Spec(spec.observation_space, spec.action_space)
            keys = jax.vmap(lambda seed: stream(seed_key(seed), "init"))(np.asarray(seeds))
            return AjaxTrained(self.agent, spec, jax.vmap(lambda key: self.agent.init(told, key))(keys), None)
        result = self.agent.train(
            spec.env(),
            budget,
            seeds=list(seeds),
            evaluations=1,
            episodes=0,
            normalize_observations=self.normalize_observations,
            normalize_rewards=self.normalize_rewards,
            extensions=self.extensions,
            dataset=self.dataset(spec) if self.dataset else None,
            on_nan="warn",
            progress=False,
        )
        if result.interrupted:  # half-trained networks would be judged as if they had learned that
            raise KeyboardInterrupt
        runs = [result.run(lane) for lane in range(len(seeds))]
        states, statistics = (
            jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
            for trees in ([run.agent for run in runs], [run.statistics.obs for run in runs])
        )
        return AjaxTrained(self.agent, spec, states, statistics if self.normalize_observations else None)


@dataclasses.dataclass(frozen=True, eq=False)
class AjaxTrained:
    """A trained Ajax agent; it can be asked at a `History` as well as at observations.

    Attributes:
        agent, spec: what was trained on what.
        states: the agent's states, leading axis seeds.
        statistics: those of observations, leading axis seeds, or None where they are not normalized.
    """

    agent: Any
    spec: Playable
    states: Any
    statistics: Any

    def q(self, obs: np.ndarray | History, action: np.ndarray | None = None) -> np.ndarray:
        """See `Trained.q`; the smallest of several critics."""
        self._needs("q")
        if action is None:
            values = self._map(lambda state, x: self.agent.q(state, x), obs)
            return values.min(1) if values.ndim == 4 else values
        import jax.numpy as jnp

        from ajax.core.spaces import to_agent

        units = to_agent(self.spec.action_space, jnp.asarray(action, self.spec.action_space.dtype))
        values = self._map(lambda state, x: self.agent.q(state, x, units), obs)
        return values.min(1) if values.ndim == 3 else values

    def v(self, obs: np.ndarray | History) -> np.ndarray:
        """See `Trained.v`."""
        self._needs("v")
        return self._map(lambda state, x: self.agent.v(state, x), obs)

    def act(self, obs: np.ndarray | History) -> np.ndarray:
        """See `Trained.act`."""
        import jax

        from ajax.core.records import Clock
        from ajax.core.spaces import to_box

        clock = Clock.start()

        def best(state, x):
            action, _ = self.agent.act(state, x, jax.random.key(0), clock, False)
            return to_box(self.spec.action_space, action)

        return self._map(best, obs)

    def _map(self, read: Callable[[Any, Any], Any], obs: np.ndarray | History) -> np.ndarray:
        import jax
        import jax.numpy as jnp

        from ajax.core.records import Inputs

        def inputs(normalize: Callable[[Any], Any]) -> Inputs:
            if not isinstance(obs, History):
                return Inputs(normalize(jnp.asarray(obs, jnp.float32)))
            seen, reset = normalize(jnp.asarray(obs.obs, jnp.float32)), jnp.asarray(obs.reset, jnp.float32)
            return Inputs(seen[-1], reset=reset[-1], before=Inputs(seen[:-1], reset=reset[:-1]))

        if self.statistics is None:
            return np.asarray(jax.vmap(lambda state: read(state, inputs(lambda raw: raw)))(self.states))
        both = jax.vmap(lambda state, seen: read(state, inputs(seen.normalize)))(self.states, self.statistics)
        return np.asarray(both)

    def _needs(self, method: str) -> None:
        if not hasattr(self.agent, method):
            raise CapabilityError(f"{type(self.agent).__name__} has no {method}(): read something else off it.")


@dataclasses.dataclass(frozen=True)
class ClassSubject:
    """A class that learns in a Gymnasium environment (see the module); seeds train one after another.

    Attributes:
        make: given the environment and a seed, returns the learner: the class itself, or a function.
        name: how reports call it.
    """

    make: Callable[[Any, int], Any]
    name: str

    def train(self, spec: Spec, budget: int, seeds: Sequence[int]) -> ClassTrained:
        """Make and train one learner a seed, each in an environment seeded alike."""
        learners = []
        for seed in seeds:
            env = spec.gymnasium()
            env.reset(seed=seed)
            learner = self.make(env, seed)
            if budget:
                learner.learn(budget)
            learners.append(learner)
        return ClassTrained(self.name, spec, tuple(learners))


@dataclasses.dataclass(frozen=True, eq=False)
class ClassTrained:
    """Trained learners, one a seed; each answers what it has methods for."""

    name: str
    spec: Spec
    learners: tuple[Any, ...]

    def q(self, obs: np.ndarray, action: np.ndarray | None = None) -> np.ndarray:
        """See `Trained.q`."""
        given = (obs,) if action is None else (obs, np.asarray(action, np.float32))
        shape = (len(obs), self.spec.n_actions) if action is None else (len(obs),)
        return self._ask("q", shape, *given)

    def v(self, obs: np.ndarray) -> np.ndarray:
        """See `Trained.v`."""
        return self._ask("v", (len(obs),), obs)

    def act(self, obs: np.ndarray) -> np.ndarray:
        """See `Trained.act`."""
        box = self.spec.box
        return self._ask("act", (len(obs), *box.shape) if isinstance(box, Box) else (len(obs),), obs)

    def _ask(self, method: str, shape: tuple[int, ...], *given: np.ndarray) -> np.ndarray:
        if not hasattr(self.learners[0], method):
            raise CapabilityError(f"{self.name} has no method {method}(): the probes that read it can't run.")
        found = np.stack([np.asarray(getattr(learner, method)(*given), float) for learner in self.learners])
        if found.shape[1:] != shape:
            raise RuntimeError(f"{self.name}.{method} returned shape {found.shape[1:]}, expected {shape}")
        return found


def load_class(where: str) -> ClassSubject:
    """Return the subject of a class given as `path/to/file.py:Name`.

    Raises:
        ConfigError: the file or the name isn't there, or the text has another form.
    """
    file, _, name = where.rpartition(":")
    path = Path(file)
    if path.suffix != ".py" or not path.is_file():
        raise ConfigError(f"{where!r} is no class to probe: give path/to/file.py:Name of a file that exists.")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None  # a .py file always has both
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if name not in vars(module):
        own = (value for value in vars(module).values() if isinstance(value, type))
        classes = [value.__name__ for value in own if value.__module__ == path.stem]
        raise ConfigError(f"{file} has no class {name!r}. It has {', '.join(classes) or 'none'}.")
    return ClassSubject(vars(module)[name], name)
