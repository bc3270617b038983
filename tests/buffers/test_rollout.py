"""Dealing a rollout into minibatches."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ajax.buffers.rollout import Rollout, deal


def test_each_epoch_is_a_partition_of_the_rollout():
    indices = np.asarray(deal(jax.random.key(0), 24, 3, 4))
    assert indices.shape == (12, 6)
    for epoch in indices.reshape(3, 24):
        assert sorted(epoch.tolist()) == list(range(24))


def test_epochs_are_shuffled_afresh():
    first, second, third = np.asarray(deal(jax.random.key(0), 24, 3, 4)).reshape(3, 24)
    assert (first != second).any() and (second != third).any() and (first != np.arange(24)).any()


def test_keys_give_other_deals():
    a, b, c = (np.asarray(deal(jax.random.key(seed), 24, 2, 4)) for seed in (0, 0, 1))
    assert (a == b).all() and (a != c).any()


@pytest.mark.parametrize("n_minibatches", [1, 32, 64])
def test_the_number_of_minibatches_is_the_one_asked_for(n_minibatches):
    assert deal(jax.random.key(0), 64, 2, n_minibatches).shape == (2 * n_minibatches, 64 // n_minibatches)


def test_size_counts_all_environments():
    assert Rollout(n_envs=3, n_steps=8, n_minibatches=4).size == 24
