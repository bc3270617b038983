"""What the generic contracts share: every exported agent, made small, and a task that tells what was done to it.

Subjects are found from the code, so that an agent takes part as soon as it is exported.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax import Result
from ajax.agents import MODULES, get
from ajax.core.config import assign, config, paths
from ajax.core.expert import Expert
from ajax.core.hooks import Extension
from ajax.core.records import Batch, Inputs, Spec
from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.base import Step
from ajax.training.chunk import loop_of
from tests.environments.identity_env import TERMINATES_AT, TRUNCATES_AT

SUBJECTS = [(name, kind) for name in MODULES for kind in get(name).acts]
"""Every agent, once for each kind of action that it takes."""

ONE_KIND = [
    pytest.param(name, kind, marks=() if kind == get(name).acts[-1] else pytest.mark.slow) for name, kind in SUBJECTS
]
"""The same, for what the kind hardly touches: every agent once in the fast tier, the others in the slow one."""

NORMALIZED = {"normalize_observations": True, "normalize_rewards": True, "reward_normalization_gamma": 0.5}
"""Options of a run that normalizes."""

SMALL = {
    "torso.widths": (8,),
    "replay.capacity": 64,
    "replay.last_few": 8,
    "replay.max_length": 8,
    "replay.batch_size": 8,
    "replay.warmup": 8,
    "replay.n_envs": 2,
    "replay.steps": 1,
    "replay.updates": 1,
    "rollout.n_envs": 2,
    "rollout.n_steps": 8,
    "rollout.n_epochs": 1,
    "rollout.n_minibatches": 2,
}
"""What makes an agent small, by the end of a field's path."""

LOW, HIGH = -1.5, 3.0
"""The witness's box: it overhangs [-1, 1] by unequal parts."""


class Anything(Expert):
    """Does anything at all.

    Attributes:
        kind: of action.
    """

    kind: str = struct.field(pytree_node=False)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """An action of the witness's, drawn uniformly."""
        if self.kind == "discrete":
            return jax.random.randint(key, (), 0, 2), memory
        return jax.random.uniform(key, (1,), minval=LOW, maxval=HIGH), memory


def taught(name: str, kind: str) -> dict[str, Any]:
    """What an agent must be given to act in one way on the witness: an expert, if it learns from one."""
    return {"expert": Anything(kind)} if "expert" in paths(get(name)()) else {}


def tiny(name: str, **values: Any) -> Any:
    """An agent as it comes but for its size, two environments wide; `values` by field name or dotted path."""
    agent = get(name)()
    small = {path: new for path in paths(agent) for end, new in SMALL.items() if path.endswith(end)}
    return assign(assign(agent, small), {**taught(name, get(name).acts[-1]), **values})


def steps_for(agent: Any, updates: int, offline: bool = False) -> int:
    """Environment steps in which an agent takes at least this many gradient updates."""
    loop = loop_of(agent, offline)
    ticks = loop.warmup_ticks(agent) - (-updates // loop.updates_per_tick(agent))
    return ticks * loop.steps_per_tick(agent)


@struct.dataclass
class Witness:
    """The identity task with a box that overhangs, a draw of its own and the action as the environment was given it.

    Observes [t, c, u, a]: steps since the start, the sign drawn at the start, a number from [0, 1) drawn there too, and
    the last action in the environment's units. Where c is 1 the episode terminates at t = 3, else it is truncated at
    t = 5. The reward is c (10 t + a rounded), and u more at the first step: so the fraction of a return is u.
    """

    kind: str = struct.field(pytree_node=False)

    @property
    def observation_space(self) -> Box:
        """[t, c, u, a]."""
        return Box.of([0.0, -1.0, 0.0, LOW], [TRUNCATES_AT, 1.0, 1.0, HIGH])

    @property
    def action_space(self) -> Space:
        """A box of one dimension, or two actions."""
        return Box(LOW, HIGH, (1,)) if self.kind == "continuous" else Discrete(2)

    @property
    def time_limit(self) -> int:
        """Steps after which an episode is truncated."""
        return TRUNCATES_AT

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Draw c and u; returns `(state, observation)`, which are the same."""
        sign, draw = jax.random.split(key)
        c = jnp.where(jax.random.bernoulli(sign), 1.0, -1.0)
        obs = jnp.stack([jnp.float32(0.0), c, jax.random.uniform(draw), jnp.float32(0.0)])
        return obs, obs

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, Step]:
        """Count one step; returns `(next state, Step)`."""
        t, c, u, _ = state
        a = jnp.reshape(action, ()).astype(jnp.float32)
        rounded = a + jax.lax.stop_gradient(jnp.round(a) - a)  # exactly; who differentiates sees the action itself
        state = jnp.stack([t + 1.0, c, u, a])
        reward = c * (10.0 * t + rounded) + jnp.where(t == 0.0, u, 0.0)
        terminated, truncated = (c > 0) & (t + 1.0 >= TERMINATES_AT), (c < 0) & (t + 1.0 >= TRUNCATES_AT)
        return state, Step(state, reward, terminated, truncated)


def batch_rows(agent: Any) -> int:
    """Transitions in an update."""
    if agent.loop == "on_policy":
        return agent.rollout.size // agent.rollout.n_minibatches
    return agent.replay.batch_size


class Told(NamedTuple):
    """What an update was given: its target, its batch and its index."""

    target: np.ndarray
    batch: Any
    update: int


KEPT = 64
"""Updates whose batches are kept."""


class Kept(struct.PyTreeNode):
    """What `Keep` has seen.

    Attributes:
        count: updates.
        total: sum of their indices.
        trace: of their mean rewards, which later ones outweigh.
        last: batch and target of the last `KEPT` updates, leading axis `KEPT`.
    """

    count: jax.Array
    total: jax.Array
    trace: jax.Array
    last: tuple[Batch, jax.Array]


@config
class Keep(Extension):
    """Keeps the batches and targets of updates, and counts them."""

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Kept:
        """Nothing seen."""
        n = batch_rows(agent)
        inputs, zeros = Inputs(spec.observation.zeros((n,))), jnp.zeros(n)
        action = spec.action.zeros((n,)) if spec.discrete else jnp.zeros((n, spec.action_size))
        b = Batch(inputs, action, zeros, zeros, zeros, inputs)
        last = jax.tree.map(lambda x: jnp.zeros((KEPT, *x.shape), x.dtype), (b, zeros))
        return Kept(jnp.int32(0), jnp.int32(0), jnp.float32(0), last)

    def post_update(self, view: Any) -> Kept:
        """One more."""
        own, b = view.own, view.batch
        plain = Batch(Inputs(b.now.obs), b.action, b.reward, b.terminated, b.truncated, Inputs(b.next.obs))
        target = jnp.zeros_like(b.reward) if view.target is None else view.target
        last = jax.tree.map(lambda kept, new: kept.at[own.count % KEPT].set(new), own.last, (plain, target))
        trace = 0.9 * own.trace + b.reward.mean()
        return Kept(own.count + 1, own.total + view.clock.update, trace, last)

    def eval_metrics(self, view: Any) -> dict[str, jax.Array]:
        """The updates so far."""
        return {"kept": view.own.count}


def settle(arrived: Callable[[], int], expected: int) -> None:
    """Wait until as many calls as expected have arrived at the host, whose callbacks may come after a run's end."""
    late = time.monotonic() + 60.0
    while arrived() < expected and time.monotonic() < late:
        time.sleep(0.01)


@functools.cache
def witnessed(name: str, kind: str, **options: Any) -> tuple[Result, list[Told]]:
    """A small run of two seeds on the witness, once a process: what came of it, and what its updates were given."""
    agent = tiny(name, **taught(name, kind))
    result = agent.train(
        Witness(kind),
        steps_for(agent, 16 if batch_rows(agent) > 1 else 48),
        **{"seeds": 2, "evaluations": 2, "episodes": 16, "progress": False, **options},
        extensions=(Keep(),),
    )
    told = []
    for lane in range(2):
        kept = jax.tree.map(np.asarray, result.run(lane).own[0])
        first = max(0, int(kept.count) - KEPT)
        for update in range(first, int(kept.count)):
            batch, target = jax.tree.map(lambda x, i=update % KEPT: x[i], kept.last)
            told.append(Told(target, batch, update))
    return result, sorted(told, key=lambda told: told.update)


def rows(told: list[Told]) -> Any:
    """The rows of all batches as one."""
    return jax.tree.map(lambda *x: np.concatenate(x), *(t.batch for t in told))
