"""Agents of Stable-Baselines3 (PyTorch), and of SBX (the same interface in JAX), as subjects.

Both are imported when an agent trains, so that cases and their answers are there without them.
"""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ajax.core.errors import CapabilityError, ConfigError, unknown_name
from ajax.core.spaces import Box
from ajax.probing.spec import Spec

PACKAGES = {"sb3": "stable_baselines3", "sbx": "sbx"}
"""Library, as commands call it: the package to import."""

INSTALL = {"sb3": "pip install stable-baselines3", "sbx": "pip install sbx-rl"}
"""Library: how to get it."""

STATES = {"qf_state", "actor_state", "vf_state", "ent_coef_state"}  # where SBX keeps parameters


@dataclasses.dataclass(frozen=True)
class Decay:
    """A learning rate in the form that both libraries take: a function of the share of the run that remains."""

    start: float
    end: float

    def __call__(self, remaining: float) -> float:
        """Return the rate, `start` at 1 and `end` at 0."""
        return self.end + remaining * (self.start - self.end)


@dataclasses.dataclass(frozen=True, eq=False)
class BaselinesSubject:
    """An agent of Stable-Baselines3 or SBX; seeds train one after another, PyTorch on one thread.

    Attributes:
        library: `"sb3"` or `"sbx"`.
        agent: DQN, PPO, SAC or TD3.
        settings: arguments of its constructor.
        widths: of the hidden layers; SBX's DQN has two, both of the first width.
        activation: `"relu"` or `"tanh"`.
        exploration_noise: standard deviation of the noise that is added to actions, in units of [-1, 1].
        n_envs: copies of the environment.
        cls: a subclass of the agent to train in its place.
    """

    library: str
    agent: str
    settings: Mapping[str, Any]
    widths: tuple[int, ...] = (32, 32)
    activation: str = "tanh"
    exploration_noise: float = 0.0
    n_envs: int = 4
    cls: type | None = None

    @property
    def name(self) -> str:
        """`sb3:DQN`, or the subclass's name."""
        return f"{self.library}:{self.agent}" if self.cls is None else self.cls.__name__

    def train(self, spec: Spec, budget: int, seeds: Sequence[int]) -> BaselinesTrained:
        """Make and train one model a seed.

        Raises:
            ConfigError: the library is not installed.
        """
        made: list[Any] = []
        with _one_thread(self.library):
            for seed in seeds:
                model = self._model(spec, seed)
                if self.library == "sbx" and made:
                    _share(model, made[0])
                if budget:
                    model.learn(budget)
                made.append(model)
        return BaselinesTrained(self.name, self.library, self.agent, spec, tuple(made))

    def _model(self, spec: Spec, seed: int) -> Any:
        cls = self.cls or getattr(package(self.library), self.agent)
        from stable_baselines3.common.noise import NormalActionNoise
        from stable_baselines3.common.vec_env import DummyVecEnv

        given = dict(self.settings)
        if self.exploration_noise and isinstance(spec.box, Box):
            scale = np.full(spec.box.shape, self.exploration_noise)
            given["action_noise"] = NormalActionNoise(np.zeros_like(scale), scale)
        policy = {"net_arch": list(self.widths), "activation_fn": _activation(self.library, self.activation)}
        envs = DummyVecEnv([spec.gymnasium] * self.n_envs)
        return cls("MlpPolicy", envs, seed=seed, policy_kwargs=policy, device="cpu", **given)


@dataclasses.dataclass(frozen=True, eq=False)
class BaselinesTrained:
    """Trained models, one a seed; see `Trained`. What an agent learns decides what it answers."""

    name: str
    library: str
    agent: str
    spec: Spec
    models: tuple[Any, ...]

    def q(self, obs: np.ndarray, action: np.ndarray | None = None) -> np.ndarray:
        """See `Trained.q`; the smallest of several critics."""
        if self.agent == "PPO":
            raise CapabilityError(f"{self.name} learns no Q: read v or act off it.")
        return np.stack([self._q(model, obs, action) for model in self.models])

    def v(self, obs: np.ndarray) -> np.ndarray:
        """See `Trained.v`."""
        if self.agent != "PPO":
            raise CapabilityError(f"{self.name} learns no V: read q or act off it.")
        if self.library == "sbx":
            return np.stack([_applied(model.policy.vf_state, obs)[:, 0] for model in self.models])
        import torch

        with torch.no_grad():
            return np.stack([model.policy.predict_values(torch.as_tensor(obs))[:, 0].numpy() for model in self.models])

    def act(self, obs: np.ndarray) -> np.ndarray:
        """See `Trained.act`."""
        return np.stack([model.predict(obs, deterministic=True)[0] for model in self.models])

    def _q(self, model: Any, obs: np.ndarray, action: np.ndarray | None) -> np.ndarray:
        # critics read actions in units of [-1, 1]
        pair = (obs,) if action is None else (obs, model.policy.scale_action(np.asarray(action, np.float32)))
        if self.library == "sbx":
            found = _applied(model.policy.qf_state, *pair)
            return found if action is None else found.min(0)[:, 0]
        import torch

        with torch.no_grad():
            tensors = [torch.as_tensor(x, dtype=torch.float32) for x in pair]
            if action is None:
                return model.policy.q_net(*tensors).numpy()
            return torch.cat(model.policy.critic(*tensors), 1).min(1).values.numpy()


def package(library: str) -> Any:
    """Import a library.

    Raises:
        UnknownName: none is called so.
        ConfigError: it is not installed.
    """
    if library not in PACKAGES:
        raise unknown_name("library", library, PACKAGES)
    try:
        return importlib.import_module(PACKAGES[library])
    except ModuleNotFoundError as error:
        raise ConfigError(f"{library} needs the package {error.name!r}: {INSTALL[library]}") from error


def version(library: str) -> str:
    """Return the name and version of an installed library: `"stable_baselines3 2.9.2"`. Raises as `package` does."""
    return f"{PACKAGES[library]} {package(library).__version__}"


def origin(cls: type, agents: Sequence[str]) -> tuple[str, str] | None:
    """Return the library and the agent (one of `agents`) that a class derives from, or None. Imports nothing."""
    for library, name in PACKAGES.items():
        if name not in sys.modules:
            continue
        for agent in agents:
            base = vars(sys.modules[name]).get(agent)
            if base is not None and issubclass(cls, base):
                return library, agent
    return None


def _activation(library: str, name: str) -> Any:
    if library == "sbx":
        from flax import linen

        return {"relu": linen.relu, "tanh": linen.tanh}[name]
    from torch import nn

    return {"relu": nn.ReLU, "tanh": nn.Tanh}[name]


def _applied(state: Any, *given: np.ndarray) -> np.ndarray:
    return np.asarray(state.apply_fn(state.params, *(np.asarray(x, np.float32) for x in given)))


def _share(model: Any, first: Any) -> None:
    """Give a model of SBX the functions of an earlier one that is made alike, so that JAX compiles them once."""
    for holder, other in ((model.policy, first.policy), (model, first)):
        for name in STATES & vars(holder).keys():
            alike = vars(other)[name]
            setattr(holder, name, vars(holder)[name].replace(apply_fn=alike.apply_fn, tx=alike.tx))


@contextmanager
def _one_thread(library: str) -> Iterator[None]:
    """PyTorch on one thread: more slow networks this small down, and collapse on a busy machine."""
    package(library)
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
