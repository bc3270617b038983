"""The plan of a training: everything that stays as it is while it runs, and its form in `config.json`."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import jax
import numpy as np

import ajax
from ajax.core.agent import Agent, Sweep
from ajax.core.config import assign, resolve
from ajax.core.errors import CapabilityError, CheckpointError, ConfigError, UnknownName, did_you_mean
from ajax.core.hooks import Extension
from ajax.core.serialize import from_dict, to_dict
from ajax.extensions import load
from ajax.training.chunk import loop_of
from ajax.training.normalise import Normalize

FORMAT = 1
ON_NAN = ("stop", "warn")
MOST_SEEDS = 2**32
"""Seeds are below this: JAX makes a key of 32 bits."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is trained, on what, for how long, and what is measured.

    Attributes:
        agents: one configuration a lane.
        seeds: one seed a lane.
        labels: what tells a lane's configuration from others' (`"gamma=0.9"`), one a lane.
        env_id: what makes the environment again in another process, or None.
        env_name: what to call it.
        steps: environment steps first asked for.
        horizon: environment steps at which schedules end.
        evaluations: reports in `steps`, evenly spread; they go on at the same pace beyond.
        episodes: episodes of an evaluation; 0: no evaluation, training episodes are reported.
        limit: steps after which an evaluation cuts an unfinished episode.
        normalize: what is normalized.
        episode_length: time limit put on the environment, or None.
        action_repeat: how often the environment repeats each action.
        on_nan: what to do when a number is no longer finite.
        offline: whether it learns from a dataset; a step is then an update.
        extensions: the stack.
    """

    agents: tuple[Agent, ...]
    seeds: tuple[int, ...]
    labels: tuple[str, ...]
    env_id: str | None
    env_name: str
    steps: int
    horizon: int
    evaluations: int
    episodes: int
    limit: int
    normalize: Normalize
    episode_length: int | None
    action_repeat: int
    on_nan: str
    offline: bool = False
    extensions: tuple[Extension, ...] = ()

    def __post_init__(self):
        if self.on_nan not in ON_NAN:
            raise ConfigError(f"on_nan={self.on_nan!r} must be one of {ON_NAN}.{did_you_mean(self.on_nan, ON_NAN)}")
        counts = {"steps": "", "horizon": "", "evaluations": " To run no evaluation give episodes=0."}
        for name, hint in (counts | {"action_repeat": ""}).items():
            check_count(name, getattr(self, name), 1, hint)
        check_count("episodes", self.episodes, 0, " 0: no evaluation, the training episodes are reported.")
        if self.episode_length is not None:
            check_count("episode_length", self.episode_length, 1, " None: the environment's own.")
        agent = type(self.agents[0])
        if self.offline and agent.loop != "off_policy":
            raise CapabilityError(
                f"{agent.__name__} learns from what it collects itself, not from a dataset. Agents that learn from"
                " one: ASAC, CrossQ, DQN, IQL, REDQ, RVISAC, SAC, TD3."
            )
        if self.steps < self.steps_per_tick:
            raise ConfigError(
                f"steps={self.steps}: {agent.__name__} takes {self.steps_per_tick:,} environment steps"
                " at a time (n_envs times the steps between updates). Ask for at least that many."
            )

    @property
    def names(self) -> list[str]:
        """What each lane is called."""
        pairs = zip(self.labels, self.seeds, strict=True)
        return [f"{label}, seed {seed}" if label else f"seed {seed}" for label, seed in pairs]

    @property
    def steps_per_tick(self) -> int:
        """Environment steps that a lane takes at a time."""
        return loop_of(self.agents[0], self.offline).steps_per_tick(self.agents[0])

    @property
    def title(self) -> str:
        """One line that says what runs."""
        n, values = len(self.seeds), len(dict.fromkeys(self.labels))
        runs = f"{values} values x {n // values} seeds" if values > 1 else f"{n} seed{'s' * (n > 1)}"
        return f"{type(self.agents[0]).__name__} on {self.env_name}, {runs}"

    def to_json(self) -> dict[str, Any]:
        """The plan as JSON values; `extensions` are kept as configurations."""
        data = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        data = {name: int(value) if isinstance(value, np.integer) else value for name, value in data.items()}
        distinct = list({id(agent): agent for agent in self.agents}.values())  # an expert's arrays have no hash
        data["agents"] = [to_dict(agent) for agent in distinct]
        data["lanes"] = [[id(other) for other in distinct].index(id(agent)) for agent in self.agents]
        data["normalize"] = to_dict(self.normalize)
        data["extensions"] = [to_dict(extension) for extension in self.extensions]
        versions = {"ajax": ajax.__version__, "jax": jax.__version__}
        return {"format": FORMAT, "versions": versions, **data}

    @classmethod
    def from_json(
        cls, data: dict[str, Any], extensions: Sequence[Extension] | None = None, agent: Agent | None = None
    ) -> Plan:
        """The inverse of `to_json`; `extensions` stand in for those of the file, an `agent`'s objects for its agents'.

        Raises:
            ConfigError: the file has another format.
            CheckpointError: an agent or an extension holds what a file can't, and was not given or is another.
        """
        if data.get("format") != FORMAT:
            raise ConfigError(f"config.json has format {data.get('format')!r}; this version of Ajax reads {FORMAT}.")
        from ajax.agents import get

        for saved in data["agents"]:
            get(saved["config"])  # its class must be loaded to be found by name
        distinct = [_agent(saved, agent) for saved in data["agents"]]
        values = {f.name: data[f.name] for f in dataclasses.fields(cls)}
        values |= {
            "agents": tuple(distinct[i] for i in data["lanes"]),
            "seeds": tuple(data["seeds"]),
            "labels": tuple(data["labels"]),
            "normalize": from_dict(data["normalize"]),
            "extensions": _extensions(data["extensions"], extensions),
        }
        return cls(**values)


def _agent(data: dict[str, Any], given: Agent | None) -> Agent:
    """An agent of `config.json`, with the objects (an expert) of the one that is `given`."""
    objects = {name for name, value in data.items() if isinstance(value, dict) and "object" in value}
    if not objects:
        return from_dict(data)
    if given is None or type(given).__name__ != data["config"]:
        raise CheckpointError(
            f"{data['config']} holds {', '.join(sorted(objects))}, made in Python, which a results folder does not"
            f" hold. Open the run from Python, and give the agent again: agent={data['config']}(...)."
        )
    return dataclasses.replace(
        from_dict({name: value for name, value in data.items() if name not in objects}),
        **{name: vars(given)[name] for name in objects},
    )


def _extensions(data: list[dict[str, Any]], given: Sequence[Extension] | None) -> tuple[Extension, ...]:
    """The stack of `config.json`, or the one that is `given` in its place."""
    names = [extension["config"] for extension in data]
    if given is not None:
        if [type(extension).__name__ for extension in given] != names:
            raise CheckpointError(
                f"extensions={[type(e).__name__ for e in given]} are not those that the run was trained with, {names}."
            )
        return tuple(given)
    try:
        for name in names:
            load(name)
        return tuple(from_dict(extension) for extension in data)
    except (CheckpointError, UnknownName) as error:
        raise CheckpointError(f"{error} Open the run from Python, and give it again: extensions=[...].") from None


def lanes_of(sweep: Sweep, seeds: int | Iterable[int]) -> tuple[tuple[Agent, ...], tuple[int, ...], tuple[str, ...]]:
    """Every combination of a sweep's values, times the seeds: agents, seeds and labels, one a lane.

    Raises:
        ConfigError: no or repeated seeds, no values, or a swept field that is not a number.
        UnknownName: a swept field does not exist.
    """
    if isinstance(seeds, Iterable):
        seeds = tuple(seeds)
        whole = all(isinstance(seed, int | np.integer) for seed in seeds)
        if not whole or not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) >= MOST_SEEDS:
            raise ConfigError(f"seeds={list(seeds)} must be different whole numbers, none negative, all below 2**32.")
        seeds = tuple(int(seed) for seed in seeds)
    else:
        check_count("seeds", seeds, 1, " Or give a list of seeds.")
        seeds = tuple(range(seeds))
    agent, fields = sweep.agent, sweep.values
    combinations = [dict(zip(fields, values, strict=True)) for values in itertools.product(*fields.values())]
    if not combinations:
        raise ConfigError(f"sweep({fields}) has a field without values. Give at least one value each.")
    for name, given in fields.items():
        if len(set(given)) < len(given):
            raise ConfigError(f"sweep({name}={list(given)}): a value is given twice. Give each once.")
    agents, labels = [], []
    structure: Any = None
    for values in combinations:
        for name in values:
            _require_number(agent, name, values[name])
        variant = assign(agent, values)
        structure = structure or jax.tree.structure(variant)
        if jax.tree.structure(variant) != structure:
            raise ConfigError(f"sweep({fields}): one program runs all values, so each must be of one kind.")
        agents.append(variant)
        labels.append(", ".join(f"{name}={value}" for name, value in values.items()))
    n = len(seeds)
    return tuple(a for a in agents for _ in seeds), seeds * len(agents), tuple(x for x in labels for _ in range(n))


def check_count(name: str, value: Any, least: int, hint: str = "") -> None:
    """Refuse what is no count.

    Raises:
        ConfigError: `value` is not a whole number of at least `least`; the message ends with `hint`.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ConfigError(f"{name}={value!r} must be a whole number of at least {least}.{hint}")


def _require_number(agent: Agent, name: str, value: Any) -> None:
    leaves = jax.tree_util.tree_flatten_with_path(assign(agent, {name: value}))[0]
    numbers = ["".join(str(key) for key in path).lstrip(".") for path, _ in leaves]
    if resolve(agent, name) not in numbers:
        raise ConfigError(
            f"sweep: {name}={value!r} changes the compiled program. One program sweeps numbers: {', '.join(numbers)}."
        )
