"""What agents are told of an environment, and that records pass through compiled code."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from ajax.core.records import Batch, Clock, Inputs, Spec
from ajax.core.spaces import Box, Discrete


def test_a_discrete_spec():
    spec = Spec(Box.of(-1, 1, (4,)), Discrete(3))
    assert spec.discrete and spec.n_actions == 3
    assert spec.inputs.obs.shape == (1, 4)
    assert spec.actions.shape == (1,) and spec.actions.dtype == jnp.int32
    with pytest.raises(AssertionError):
        _ = spec.action_size


def test_a_box_spec_counts_the_elements_of_an_action():
    spec = Spec(Box.of(0, 255, (8, 8, 3), "uint8"), Box.of(-1, 1, (2, 3)))
    assert not spec.discrete and spec.action_size == 6
    assert spec.inputs.obs.shape == (1, 8, 8, 3) and spec.inputs.obs.dtype == jnp.uint8
    assert spec.actions.shape == (1, 6) and spec.actions.dtype == jnp.float32
    with pytest.raises(AssertionError):
        _ = spec.n_actions


def test_specs_hash_by_value():
    assert hash(Spec(Box(-1.0, 1.0, (4,)), Discrete(3))) == hash(Spec(Box.of(-1, 1, (4,)), Discrete(3)))


def test_records_are_pytrees_of_arrays():
    zero = jnp.zeros(2)
    batch = Batch(Inputs(zero), zero, zero, zero, zero, Inputs(zero), {"log_prob": zero})
    assert len(jax.tree.leaves(batch)) == 7
    assert jax.jit(lambda b: b)(batch).extras["log_prob"].shape == (2,)
    assert len(jax.tree.leaves(Clock(jnp.float32(0), jnp.int32(0), jnp.float32(1)))) == 3
