"""A Spec as a JAX environment. Its tables are traced leaves, padded, so that Specs share compiled programs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax.core.spaces import Box, Discrete
from ajax.environments.base import Step
from ajax.probing.spec import ENDLESS, Spec, cumulative

STATES, OUTCOMES = 8, 4  # states and outcomes are padded to multiples of these


@struct.dataclass
class Place:
    """Where an episode stands.

    Attributes:
        state: the Spec's state, int32.
        clock: steps taken, plus the clock's start under `Spec.stagger`, int32.
        executed: (record, *action shape) actions as the environment received them, the newest overwriting the oldest.
        count: actions recorded in this episode, int32.
    """

    state: jax.Array
    clock: jax.Array
    executed: jax.Array
    count: jax.Array


@struct.dataclass
class TableEnv:
    """The JAX environment of a Spec; see `Spec` for what the tables hold and `Spec.env` to make one."""

    cumulative: jax.Array
    next_state: jax.Array
    reward: jax.Array
    terminated: jax.Array
    obs: jax.Array
    start: jax.Array
    limit: jax.Array
    stagger: jax.Array
    edges: jax.Array
    quadratic: jax.Array
    observation_space: Box = struct.field(pytree_node=False)
    action_space: Box | Discrete = struct.field(pytree_node=False)
    record: int = struct.field(pytree_node=False)

    @classmethod
    def of(cls, spec: Spec) -> TableEnv:
        """Return the environment of `spec`."""

        def padded(table: np.ndarray, dtype, fill: float = 0.0, outcomes: bool = False) -> jax.Array:
            widths = [(0, -table.shape[0] % STATES)] + [(0, 0)] * (table.ndim - 1)
            if outcomes:
                widths[-1] = (0, -table.shape[-1] % OUTCOMES)
            return jnp.asarray(np.pad(table, widths, constant_values=fill), dtype)

        return cls(
            cumulative=padded(cumulative(spec.probability), jnp.float32, 1.0, outcomes=True),
            next_state=padded(spec.next_state, jnp.int32, outcomes=True),
            reward=padded(spec.reward, jnp.float32, outcomes=True),
            terminated=padded(spec.terminated, bool, outcomes=True),
            obs=padded(spec.obs, jnp.float32),
            start=padded(cumulative(spec.start), jnp.float32, 1.0),
            limit=jnp.int32(ENDLESS if spec.limit is None else spec.limit),
            stagger=jnp.int32(spec.stagger),
            edges=jnp.asarray(spec.edges, jnp.float32),
            quadratic=padded(spec.quadratic, jnp.float32),
            observation_space=spec.observation_space,
            action_space=spec.action_space,
            record=spec.record,
        )

    def reset(self, key: jax.Array) -> tuple[Place, jax.Array]:
        """Start an episode; returns `(place, observation)`."""
        first, offset = jax.random.uniform(key, (2,))
        state = jnp.sum(self.start <= first).astype(jnp.int32)
        clock = jnp.floor(offset * self.stagger).astype(jnp.int32)
        return Place(state, clock, self.action_space.zeros((self.record,)), jnp.int32(0)), self.obs[state]

    def step(self, key: jax.Array, place: Place, action: jax.Array) -> tuple[Place, Step]:
        """Take `action`. At the time limit truncated is raised even if the step also terminated, as in Gymnasium."""
        row, bonus = (place.state, action), jnp.float32(0.0)
        if isinstance(self.action_space, Box):
            row = (place.state, jnp.sum(self.edges <= action[0]))
            powers = jnp.stack([jnp.ones_like(action), action, action**2], -1)
            bonus = jnp.sum(self.quadratic[place.state] * powers)
        outcome = (*row, jnp.sum(self.cumulative[row] <= jax.random.uniform(key)))
        state, clock, executed = self.next_state[outcome], place.clock + 1, place.executed
        if self.record:
            executed = executed.at[place.count % self.record].set(action)
        step = Step(
            obs=self.obs[state],
            reward=self.reward[outcome] + bonus,
            terminated=self.terminated[outcome],
            truncated=clock >= self.limit,
        )
        return Place(state, clock, executed, place.count + 1), step
