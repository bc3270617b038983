"""Experts are asked for one observation at a time, in the environment's units; what they remember starts again."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.expert import Expert, Stateless, advise, memories
from ajax.core.spaces import Box, Discrete

KEY = jax.random.key(0)


class Count(Expert):
    """Does what it counts, times its step."""

    step: jax.Array

    def init(self):
        return jnp.float32(0.0)

    def act(self, memory, obs, key):
        return (self.step * memory)[None], memory + 1


def test_actions_are_mapped_into_agent_units_and_clipped():
    space = Box.of([-2.0, 0.0], [6.0, 1.0])
    seen = []

    def function(obs):
        seen.append(obs.shape)
        return jnp.stack([4.0 * obs[0], obs[1]])

    obs = jnp.array([[1.0, 0.25, 9.0], [5.0, -3.0, 9.0]])
    action, memory = advise(Stateless(function), space, (), obs, KEY)
    np.testing.assert_allclose(action, [[0.5, -0.5], [1.0, -1.0]])
    assert seen == [(3,)] and memory == ()


def test_discrete_actions_are_indices():
    action, _ = advise(Stateless(lambda obs: obs[0] > 0), Discrete(2), (), jnp.array([[1.0], [-1.0]]), KEY)
    assert action.dtype == jnp.int32 and action.tolist() == [1, 0]


def test_memories_start_again_with_their_episodes_alone():
    expert, space = Count(step=jnp.float32(0.25)), Box(-1.0, 1.0, (1,))
    memory = memories(expert, 3)
    np.testing.assert_array_equal(memory, 0.0)
    elapsed = jnp.array([2.0, 0.0, 5.0])
    action, memory = advise(expert, space, jnp.array([2.0, 7.0, 3.0]), jnp.zeros((3, 2)), KEY, elapsed)
    np.testing.assert_allclose(action[:, 0], [0.5, 0.0, 0.75])
    np.testing.assert_array_equal(memory, [3.0, 1.0, 4.0])
    action, _ = advise(expert, space, memory, jnp.zeros((3, 2)), KEY)
    np.testing.assert_allclose(action[:, 0], [0.75, 0.25, 1.0])


def test_environments_draw_apart():
    class Random(Expert):
        """Draws."""

        def act(self, memory, obs, key):
            return jax.random.uniform(key, (1,)), memory

    action, _ = advise(Random(), Box(-1.0, 1.0, (1,)), (), jnp.zeros((4, 1)), KEY)
    assert len(set(action[:, 0].tolist())) == 4


def test_an_expert_is_a_pytree_and_the_base_does_nothing():
    assert jax.tree.leaves(Count(step=2.0)) == [2.0] and jax.tree.leaves(Stateless(len)) == []
    with pytest.raises(NotImplementedError):
        Expert().act((), jnp.zeros(1), KEY)
