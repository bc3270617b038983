"""A linear system with a quadratic cost, which can be differentiated: for agents that learn through the environment.

The tables of a `Spec` know no derivative of what a step leads to; here every step is smooth. Its best actions have a
closed form (`best`), from the step's own cost and what the rest of the episode makes of where it leads (Bellman's
recursion; Bertsekas 2017, section 3.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.spaces import Box
from ajax.environments.base import Step

FEATURES = 8  # as many as a Spec's, so that probes share networks' shapes


class Place(NamedTuple):
    """Where an episode stands.

    Attributes:
        x: the system's state.
        t: steps taken, int32.
    """

    x: jax.Array
    t: jax.Array


@struct.dataclass
class LinearEnv:
    """x' = drift x + a, at the cost x'^2 + effort a^2. Observes x, then the number of steps taken, one-hot.

    Attributes:
        start: x at an episode's start.
        drift: what the system makes of its state.
        effort: cost of an action, in the box's units.
        n_steps: steps of an episode, at most 7.
        terminates: whether its end is the task's; else a time limit.
        action_space: a box of one dimension.
    """

    start: float
    drift: float
    effort: float
    n_steps: int = struct.field(pytree_node=False)
    terminates: bool = struct.field(pytree_node=False)
    action_space: Box = struct.field(pytree_node=False)

    @property
    def observation_space(self) -> Box:
        """x and the steps taken."""
        return Box(shape=(FEATURES,))

    @property
    def time_limit(self) -> int:
        """Steps of an episode."""
        return self.n_steps

    def env(self) -> LinearEnv:
        """The environment, which a `Spec` would make: itself."""
        return self

    def obs(self, x: jax.Array | float, t: jax.Array | int) -> jax.Array:
        """What is observed at x after t steps."""
        return jnp.concatenate([jnp.reshape(jnp.asarray(x, jnp.float32), (1,)), jax.nn.one_hot(t, FEATURES - 1)])

    def reset(self, key: jax.Array) -> tuple[Place, jax.Array]:
        """Start an episode; nothing is drawn."""
        x, t = jnp.asarray(self.start, jnp.float32), jnp.int32(0)
        return Place(x, t), self.obs(x, t)

    def step(self, key: jax.Array, place: Place, action: jax.Array) -> tuple[Place, Step]:
        """Take `action`."""
        a = action[0]
        x, t = self.drift * place.x + a, place.t + 1
        ends = t >= self.n_steps
        terminated, truncated = ends & self.terminates, ends & (not self.terminates)
        return Place(x, t), Step(self.obs(x, t), -(x**2) - self.effort * a**2, terminated, truncated)

    def best(self, follow: Sequence[float]) -> list[float]:
        """The best action at each step of an episode, as a multiple of x.

        Args:
            follow: what the costs of the rest of an episode weigh at each step, beside the step's own: the discount,
                or a share of it where the horizon ends between the two.
        """
        gains, rest = [], 0.0  # the rest of an episode costs `rest` x^2 at the best
        for weight in reversed(follow):
            whole = 1.0 + weight * rest
            gains.append(-self.drift * whole / (whole + self.effort))
            rest = self.drift**2 * whole * self.effort / (whole + self.effort)
        return gains[::-1]
