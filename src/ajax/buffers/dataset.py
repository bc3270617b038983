"""Datasets: transitions recorded beforehand, to learn from without an environment."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from ajax.buffers.replay import Store
from ajax.core.errors import ConfigError
from ajax.core.records import Batch, Inputs, Spec
from ajax.core.spaces import Discrete, to_agent


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """Recorded transitions in the order in which they happened, as arrays of one length.

    Attributes:
        obs: observations (n, *observation shape).
        action: actions in the *environment's* units (n, *action shape).
        reward: (n,).
        terminated: (n,) bool: the task ended there.
        next_obs: what each step led to (n, *observation shape).
        truncated: (n,) bool: the episode was cut there; all False unless given.

    Raises:
        ConfigError: arrays of different lengths, or numbers that are not finite.
    """

    obs: np.ndarray
    action: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    next_obs: np.ndarray
    truncated: np.ndarray | None = None

    def __post_init__(self):
        if self.truncated is None:
            object.__setattr__(self, "truncated", np.zeros(len(self.reward), bool))
        arrays = {f.name: np.asarray(getattr(self, f.name)) for f in dataclasses.fields(self)}
        lengths = {name: len(array) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1 or not lengths["reward"]:
            raise ConfigError(f"Dataset: every array must hold the same number of transitions; these hold {lengths}.")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)
            if np.issubdtype(array.dtype, np.floating) and not np.isfinite(array).all():
                row = int(np.argwhere(~np.isfinite(array.reshape(len(array), -1)).all(1))[0, 0])
                raise ConfigError(f"Dataset: {name} is not finite, first in row {row}. Leave such transitions out.")

    def __len__(self) -> int:
        return len(self.reward)

    def store(self, spec: Spec) -> Store:
        """The dataset as a full replay of one environment's steps, actions in agent units.

        Raises:
            ConfigError: shapes differ from the environment's spaces, or actions lie outside its box.
        """
        self._check(spec)
        action = jnp.asarray(self.action, spec.action.dtype)
        rows = Batch(
            now=Inputs(jnp.asarray(self.obs, spec.observation.dtype)),
            action=to_agent(spec.action, action),
            reward=jnp.asarray(self.reward, jnp.float32),
            terminated=jnp.asarray(self.terminated, jnp.float32),
            truncated=jnp.asarray(self.truncated, jnp.float32),
            next=Inputs(jnp.asarray(self.next_obs, spec.observation.dtype)),
        )
        return Store(jax.tree.map(lambda x: x[:, None], rows), jnp.int32(0), jnp.int32(len(self)))

    def _check(self, spec: Spec) -> None:
        for name, space in (("obs", spec.observation), ("next_obs", spec.observation), ("action", spec.action)):
            shape = getattr(self, name).shape[1:]
            if shape != space.shape:
                raise ConfigError(f"Dataset: {name} has shape {shape}, the environment's is {space.shape}.")
        if isinstance(spec.action, Discrete):
            inside = (self.action >= 0) & (self.action < spec.action.n)
        else:
            inside = (self.action >= np.array(spec.action.low) - 1e-5) & (
                self.action <= np.array(spec.action.high) + 1e-5
            )
        if not np.all(inside):
            raise ConfigError(f"Dataset: some actions lie outside the environment's {spec.action}; give its units.")


def concatenate(datasets: Sequence[Dataset]) -> Dataset:
    """One dataset after another."""
    names = [f.name for f in dataclasses.fields(Dataset)]
    return Dataset(**{name: np.concatenate([getattr(d, name) for d in datasets]) for name in names})
