"""Spaces, and the two maps between agent units and the environment's."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajax.core.errors import SpaceError
from ajax.core.spaces import Box, Discrete, to_agent, to_box

UNEQUAL = Box.of([0.0, -3.0, 2.0], [10.0, 1.0, 2.5])


def test_to_box_maps_the_edges_and_the_middle():
    actions = jnp.array([[-1.0, -1.0, -1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    np.testing.assert_allclose(
        to_box(UNEQUAL, actions), [[0.0, -3.0, 2.0], [5.0, -1.0, 2.25], [10.0, 1.0, 2.5]], rtol=1e-6
    )


def test_to_box_clips_and_never_leaves_the_box():
    np.testing.assert_allclose(to_box(UNEQUAL, jnp.array([[7.0, -7.0, 1.01]])), [[10.0, -3.0, 2.5]])


def test_to_agent_is_right_at_a_point():
    # 7 of [0, 10] is 0.4; -2 of [-3, 1] is -0.5; 2.5 of [2, 2.5] is 1
    np.testing.assert_allclose(to_agent(UNEQUAL, jnp.array([[7.0, -2.0, 2.5]])), [[0.4, -0.5, 1.0]], atol=1e-6)


@given(st.lists(st.floats(-1, 1, width=32), min_size=3, max_size=3))
def test_to_agent_inverts_to_box(action):
    action = jnp.array([action], jnp.float32)
    np.testing.assert_allclose(to_agent(UNEQUAL, to_box(UNEQUAL, action)), action, atol=2e-6)


def test_actions_of_a_matrix_box_are_flat_for_the_agent():
    box = Box.of(np.zeros((2, 3)), np.arange(1.0, 7.0).reshape(2, 3))
    action = jnp.zeros((4, 6))
    out = to_box(box, action)
    assert out.shape == (4, 2, 3)
    np.testing.assert_allclose(out[0], [[0.5, 1.0, 1.5], [2.0, 2.5, 3.0]])
    assert to_agent(box, out).shape == (4, 6)


def test_discrete_actions_pass_both_ways():
    action = jnp.array([0, 2])
    assert to_box(Discrete(3), action) is action and to_agent(Discrete(3), action) is action


def test_a_box_of_arrays_is_hashable_and_equal_by_value():
    assert UNEQUAL.low == (0.0, -3.0, 2.0)
    assert hash(UNEQUAL) == hash(Box.of(np.array([0.0, -3.0, 2.0]), np.array([10.0, 1.0, 2.5])))
    assert Box.of([-1, -1], [1, 1]) == Box(-1.0, 1.0, (2,))
    assert Box.of(0, 255, (2, 2), np.uint8).dtype == "uint8"


def test_bounded():
    assert UNEQUAL.bounded and not Box.of([0, -np.inf], [1, 1]).bounded and not Box(shape=(2,)).bounded


def test_box_samples_fill_the_box():
    draws = np.asarray(UNEQUAL.sample(jax.random.key(0), (4000,)))
    assert draws.shape == (4000, 3) and draws.dtype == np.float32
    assert (draws >= [0.0, -3.0, 2.0]).all() and (draws <= [10.0, 1.0, 2.5]).all()
    # the mean of n uniform draws of width w has standard deviation w / sqrt(12 n); five of them are allowed
    np.testing.assert_array_less(
        abs(draws.mean(0) - [5.0, -1.0, 2.25]), 5 * np.array([10, 4, 0.5]) / 12**0.5 / 4000**0.5
    )


def test_an_unbounded_side_is_sampled_from_the_unit_box():
    draws = Box(shape=(2,)).sample(jax.random.key(0), (100,))
    assert draws.min() >= -1.0 and draws.max() <= 1.0 and draws.std() > 0.4


def test_discrete_samples_every_value():
    draws = Discrete(3).sample(jax.random.key(1), (300,))
    np.testing.assert_array_equal(np.unique(draws), [0, 1, 2])
    assert np.bincount(draws).min() > 60


def test_zeros_have_shape_and_dtype():
    assert UNEQUAL.zeros((2,)).shape == (2, 3)
    assert Box.of(0, 255, (2, 2), "uint8").zeros().dtype == jnp.uint8
    assert Discrete(3).zeros((5,)).dtype == jnp.int32 and Discrete(3).shape == ()


def test_an_empty_set_is_refused():
    with pytest.raises(SpaceError, match=r"Discrete\(n=0\): n must be at least 1"):
        Discrete(0)
