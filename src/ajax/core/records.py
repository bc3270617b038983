"""The records that pass between environments, agents and loops: arrays only, so that each is a pytree."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.core.spaces import Box, Discrete, Space

Array = jax.Array | np.ndarray
"""An array on a device, or on the host."""


class Inputs(struct.PyTreeNode):
    """All that a network may read. Networks take `Inputs`, not arrays, so that agents need not know what they use.

    `reset`, `carry` and `before` are None where no network has a memory. What a row remembers is what a network makes
    of `carry` along the stream `before`; the rows are (steps, sequences) in one axis, and the last of them follows the
    whole stream.

    Attributes:
        obs: observations (batch, *observation shape), already normalized where a run normalizes.
        unscaled: the same before normalization, where a run normalizes and has extensions; else None. Ask for `raw`.
        reset: float32 0 or 1 (batch,): the row is the first of its episode, and remembers nothing.
        carry: by network, what its memory held at the start of the stream (sequences, ...); a network that is not in
            it held nothing.
        before: the stream, (time, sequences, ...); None: the rows follow `carry` at once.
        command: the return asked for, and the steps to earn it in (batch, 2), for agents that follow commands; the
            return is in units of the rewards' deviation where a run normalizes them.
    """

    obs: jax.Array
    unscaled: jax.Array | None = None
    reset: jax.Array | None = None
    carry: dict[str, Any] | None = None
    before: Inputs | None = None
    command: jax.Array | None = None

    @property
    def raw(self) -> jax.Array:
        """The observations as the environment gave them: what an expert is given."""
        return self.obs if self.unscaled is None else self.unscaled


class Batch(struct.PyTreeNode):
    """Transitions. Leading axes are (batch,), (window, batch) for n-step windows, or (time, n_envs) for a rollout.

    Attributes:
        now: what the agent saw.
        action: what it did, in agent units: [-1, 1] for a box, an index for discrete actions.
        reward: float32, one number a transition.
        terminated: float32 0 or 1: the task ended; nothing follows. The only thing that cuts a bootstrap.
        truncated: float32 0 or 1: the episode was cut short here; the value of `next` still counts.
        next: what the step led to; at an episode's end its final observation, never the next episode's first.
        extras: further arrays by name, written by the agent's `act` (PPO: `log_prob`).
    """

    now: Inputs
    action: jax.Array
    reward: jax.Array
    terminated: jax.Array
    truncated: jax.Array
    next: Inputs
    extras: dict[str, jax.Array] = struct.field(default_factory=dict)


class Clock(struct.PyTreeNode):
    """Where a run stands. Unbatched under the seed axis, so that what it gates stays a real branch.

    Attributes:
        step: environment steps taken so far, float32 (it never wraps; the host counts exactly).
        update: index of this gradient update, int32, from 0.
        horizon: environment steps that the whole run will take, however it is split; schedules end there.
    """

    step: jax.Array
    update: jax.Array
    horizon: jax.Array

    @classmethod
    def start(cls) -> Clock:
        """The clock before training, and in evaluations, where nothing depends on the horizon."""
        return cls(jnp.float32(0), jnp.int32(0), jnp.float32(1))


class Net(struct.PyTreeNode):
    """A network's parameters and their optimizer state; call it as a function of its inputs.

    `module` is a linen module, compared by value. `opt` is `()` for a network that nothing trains (a target).
    `statistics` is what its normalization layers have seen, if it has such layers: no gradient changes it.
    """

    params: Any
    opt: Any
    module: Any = struct.field(pytree_node=False)
    statistics: Any = struct.field(default_factory=dict)

    def __call__(self, *inputs):
        return self.module.apply({"params": self.params, "batch_stats": self.statistics}, *inputs)

    def train(self, *inputs) -> tuple[Any, Any]:
        """A call in which normalization layers use the inputs' own statistics; returns also the running ones then."""
        variables = {"params": self.params, "batch_stats": self.statistics}
        outputs, after = self.module.apply(variables, *inputs, mutable=["batch_stats"])
        return outputs, after["batch_stats"]

    def at(self, params: Any) -> Net:
        """The same network with other parameters."""
        return self.replace(params=params)

    def frozen(self) -> Net:
        """A copy that carries no optimizer state, to be used as a target network."""
        return self.replace(opt=())


@dataclasses.dataclass(frozen=True)
class Spec:
    """What an agent is told of its environment when its networks are made."""

    observation: Space
    action: Space

    @property
    def inputs(self) -> Inputs:
        """Zero inputs of batch 1, to shape networks with."""
        return Inputs(self.observation.zeros((1,)))

    @property
    def actions(self) -> jax.Array:
        """A zero action of batch 1, in agent units: (1,) int32, or (1, action_size) float32 for a box."""
        return self.action.zeros((1,)) if self.discrete else jnp.zeros((1, self.action_size))

    @property
    def discrete(self) -> bool:
        """Whether actions are indices."""
        return isinstance(self.action, Discrete)

    @property
    def n_actions(self) -> int:
        """Number of discrete actions."""
        assert isinstance(self.action, Discrete)
        return self.action.n

    @property
    def action_size(self) -> int:
        """Number of elements of a box action."""
        assert isinstance(self.action, Box)
        return math.prod(self.action.shape)
