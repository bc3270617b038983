"""Whoever takes an expert hands it the raw observation, and to one that remembers its memory of the episode.

Consumers are found by their fields: the extensions and agents that hold an `Expert`.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax.agents import MODULES as AGENTS
from ajax.agents import get as agent_class
from ajax.core.config import config, members
from ajax.core.errors import AjaxError
from ajax.core.expert import Expert
from ajax.core.hooks import Extension
from ajax.core.spaces import Box, Discrete
from ajax.environments.base import Step
from ajax.extensions import MODULES as EXTENSIONS
from ajax.extensions import get
from ajax.training.driver import train
from tests.agents.contract import HIGH, LOW, SUBJECTS, Witness, settle, steps_for, tiny
from tests.environments.identity_env import TRUNCATES_AT
from tests.extensions.builders import BUILD
from tests.extensions.test_no_silent_noop import home

_asked: dict[str, list[tuple[float, np.ndarray]]] = {}


def _ask(to: str, memory: Any, obs: Any) -> None:
    _asked.setdefault(to, []).append((float(memory), np.asarray(obs)))


class Counting(Expert):
    """Counts the steps of an episode, tells what it is given, and does always 1.

    Attributes:
        to: name under which it is kept.
        shape: of an action.
    """

    to: str = struct.field(pytree_node=False)
    shape: tuple[int, ...] = struct.field(pytree_node=False)

    def init(self) -> jax.Array:
        """No step yet."""
        return jnp.float32(0)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action, and one step more."""
        jax.debug.callback(functools.partial(_ask, self.to), memory, obs)
        return jnp.ones(self.shape), memory + 1.0


class Forgetful(Counting):
    """The same without a memory, for those who refuse one."""

    def init(self) -> Any:
        """Nothing."""
        return ()

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action."""
        jax.debug.callback(functools.partial(_ask, self.to), jnp.nan, obs)
        return jnp.ones(self.shape), memory


def takes_an_expert(cls: type) -> bool:
    """Whether a configuration has a field for an expert."""
    return any(Expert in members(f.type) for f in dataclasses.fields(cls))


CONSUMERS = [name for name in EXTENSIONS if takes_an_expert(get(name))]
AGENT_CONSUMERS = [(name, kind) for name, kind in SUBJECTS if takes_an_expert(agent_class(name))]


def check_asked(to: str) -> None:
    """Every observation was raw, and every memory as old as its episode."""
    settle(lambda: len(_asked.get(to, [])), 12)
    asked = list(_asked.pop(to))
    memory, obs = np.array([m for m, _ in asked]), np.stack([o for _, o in asked])
    assert set(obs[:, 0]) <= set(range(TRUNCATES_AT + 1)) and set(obs[:, 1]) <= {-1.0, 1.0}
    assert ((obs[:, 2] >= 0) & (obs[:, 2] < 1)).all() and ((obs[:, 3] >= LOW) & (obs[:, 3] <= HIGH)).all()
    assert len(set(obs[:, 0])) > 1
    known = ~np.isnan(memory)
    np.testing.assert_array_equal(memory[known], obs[known, 0])


FAST = ("BehaviorCloning", "Imitation", "ExpertReturn")


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CONSUMERS]
)
def test_an_extension_asks_with_raw_observations_and_the_episodes_memory(name):
    agent, env = home(name)
    stack = BUILD[name](env)
    for kind in (Counting, Forgetful):
        try:
            stack = (*stack[:-1], dataclasses.replace(stack[-1], expert=kind(to=name, shape=env.action_space.shape)))
            break
        except AjaxError:
            assert kind is Counting, "it refuses experts without a memory too"
    options = {"normalize_observations": True, "evaluations": 2, "episodes": 4, "progress": False}
    train(agent, env, steps_for(agent, 8), extensions=stack, **options)
    check_asked(name)


@pytest.mark.parametrize(("name", "kind"), AGENT_CONSUMERS)
def test_an_agent_asks_with_raw_observations_and_the_episodes_memory(name, kind):
    env = Witness(kind)
    agent = tiny(name, expert=Counting(to=name, shape=env.action_space.shape))
    options = {"normalize_observations": True, "evaluations": 2, "episodes": 4, "progress": False}
    train(agent, env, steps_for(agent, 8), **options)
    check_asked(name)


@config
class Shown(Extension):
    """Keeps what it is shown of an expert before training."""

    @property
    def pretrain_rows(self) -> int:
        return 12

    def demonstrator(self) -> Expert:
        return Counting(to="shown", shape=(1,))

    def init(self, agent, spec, key):
        return tuple(jnp.zeros((12, 2, *shape)) for shape in ((1,), (4,), (4,), (4,)))

    def pretrain(self, view):
        b = view.batch
        return view.state, (b.action, b.now.obs, b.now.raw, b.next.raw)


def test_what_is_cloned_is_in_agent_units_and_raw_beside_normalized():
    agent = tiny("SAC")
    options = {"normalize_observations": True, "evaluations": 1, "episodes": 0, "progress": False}
    result = agent.train(Witness("continuous"), steps_for(agent, 2), extensions=(Shown(),), **options)
    action, obs, raw, after = (np.asarray(x) for x in result.run().own[0])
    np.testing.assert_allclose(action, (1.0 - LOW) / (HIGH - LOW) * 2.0 - 1.0, rtol=1e-6)  # 1 in the box's units
    np.testing.assert_allclose(after[..., 3], 1.0, rtol=1e-6)
    np.testing.assert_array_equal(after[..., 0], raw[..., 0] + 1)
    assert not np.allclose(obs, raw)
    np.testing.assert_allclose(obs.reshape(-1, 4).mean(0)[:3], 0.0, atol=1e-5)
    check_asked("shown")


@struct.dataclass
class Three:
    """Three steps, observed as t; each pays 10 t and the action."""

    observation_space = Box(0.0, 3.0, (1,))
    action_space = Box(LOW, HIGH, (1,))

    def reset(self, key):
        return jnp.float32(0.0), jnp.zeros(1)

    def step(self, key, state, action):
        state = state + 1
        return state, Step(state[None], 10.0 * (state - 1.0) + action[0], state >= 3.0, jnp.bool_(False))


class Half(Counting):
    """Does a quarter of its memory and a quarter of what it sees: half of t."""

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action."""
        return 0.25 * (memory + obs), memory + 1.0


def test_the_experts_return_has_its_closed_form():
    extension = get("ExpertReturn")(expert=Half(to="", shape=(1,)))
    agent = tiny("TD3")
    options = {"normalize_observations": True, "normalize_rewards": True, "evaluations": 2, "progress": False}
    result = agent.train(Three(), steps_for(agent, 4), extensions=(extension,), episodes=3, **options)
    np.testing.assert_allclose(result.metrics["evaluation/expert_return"], 30.0 + 0.5 * (0 + 1 + 2), rtol=1e-6)


def test_there_are_consumers():
    assert set(CONSUMERS) >= {"BehaviorCloning", "ExpertReturn"} and set(dict(AGENT_CONSUMERS)) <= set(AGENTS)
    assert Discrete(2).shape == ()
