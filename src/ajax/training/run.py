"""The run: one pytree that holds everything that changes, and the task it runs on."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Store
from ajax.core.records import Spec
from ajax.training.normalise import Normalize, Statistics


class Run(struct.PyTreeNode):
    """Everything a run is. Saving this pytree is the checkpoint; a resumed run is the same run.

    Attributes:
        key: root of all randomness of this seed.
        agent: the agent's state.
        env: states of the parallel environments, leading axis n_envs.
        obs: raw observations to act on next (n_envs, *shape).
        store: the replay (off-policy), or `()`.
        statistics: of normalization.
        own: the extensions' states.
        episode_return: reward summed since each episode's start (n_envs,), in the environment's units.
        episode_length: steps since each episode's start (n_envs,).
        each: what every extension keeps of each environment, leading axis n_envs.
        carry: by network, what its memory holds of each environment's episode (n_envs, ...); `{}` without a memory.
        commands: what the agent is asked for, or `()` for one that follows no commands.
    """

    key: jax.Array
    agent: Any
    env: Any
    obs: jax.Array
    store: Any
    statistics: Statistics
    own: tuple[Any, ...]
    episode_return: jax.Array
    episode_length: jax.Array
    each: tuple[Any, ...] = ()
    carry: dict[str, Any] = struct.field(default_factory=dict)
    commands: Any = ()


class Task(struct.PyTreeNode):
    """What a run is run on: the environment with its options. A pytree: the environment's arrays are arguments.

    Attributes:
        env: the environment, with its wrappers.
        n_envs: environments stepped in parallel.
        normalize: what is normalized.
        extensions: the stack, folded in order.
        offline: whether the agent learns from a dataset alone.
        dataset: what to learn from offline, or None: the run can then be looked at, but not trained.
    """

    env: Any
    n_envs: int = struct.field(pytree_node=False)
    normalize: Normalize = Normalize()
    extensions: tuple[Any, ...] = ()
    offline: bool = struct.field(pytree_node=False, default=False)
    dataset: Store | None = None

    @property
    def spec(self) -> Spec:
        """The environment's spaces."""
        return Spec(self.env.observation_space, self.env.action_space)

    @property
    def watched(self) -> bool:
        """Whether extensions look on, so that raw observations are kept beside normalized ones."""
        return bool(self.extensions)

    def folds(self, phase: str) -> bool:
        """Whether an extension of the stack works in a phase."""
        return any(phase in extension.phases() for extension in self.extensions)


class Finished(struct.PyTreeNode):
    """Sums over the episodes that ended: how many, their returns and lengths."""

    count: jax.Array
    total_return: jax.Array
    total_length: jax.Array

    @classmethod
    def none(cls) -> Finished:
        """No episode."""
        return cls(jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))

    def __add__(self, other: Finished) -> Finished:
        return jax.tree.map(jnp.add, self, other)
