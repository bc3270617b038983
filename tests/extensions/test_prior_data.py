"""Prior data: the share of a batch that they take, in agent units, windows included."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import DQN, SAC, Dataset
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.prior_data import PriorData
from tests.extensions.build import batch, view

LINE = Spec(Box(-9.0, 9.0, (1,)), Box(-2.0, 6.0, (1,)))
DATA = Dataset(
    obs=np.arange(6.0)[:, None],
    action=np.full((6, 1), 4.0),
    reward=10.0 + np.arange(6),
    terminated=np.ones(6, bool),
    next_obs=1.0 + np.arange(6.0)[:, None],
)


@pytest.mark.parametrize("share, n", [(0.5, 4), (0.25, 2), (0.0, 0), (1.0, 8), (0.4, 3)])
def test_the_first_rows_are_prior_data(share, n):
    ours = batch([[-1.0]] * 8, [[0.0]] * 8, [0.0] * 8, [[-1.0]] * 8)
    extension = PriorData(data=DATA, share=share).bind(LINE)
    mixed = extension.sample(ours, view(SAC(), None, ours, extension, LINE))
    prior = mixed.reward >= 10
    np.testing.assert_array_equal(prior, np.arange(8) < n)
    np.testing.assert_array_equal(mixed.now.obs[:, 0], np.where(prior, mixed.reward - 10, -1.0))
    np.testing.assert_array_equal(mixed.next.obs[:, 0], np.where(prior, mixed.reward - 9, -1.0))
    np.testing.assert_array_equal(mixed.action[:, 0], np.where(prior, 0.5, 0.0))
    np.testing.assert_array_equal(mixed.terminated, prior)


def test_windows_are_consecutive_rows():
    data = dataclasses.replace(DATA, action=np.zeros(6, np.int32))
    where = Spec(Box(-9.0, 9.0, (1,)), Discrete(2))
    extension = PriorData(data=data, share=0.5).bind(where)
    one = batch([[-1.0]] * 16, [1] * 16, [0.0] * 16, [[-1.0]] * 16)
    ours = jax.tree.map(lambda x: jnp.stack([x, x]), one)
    mixed = extension.sample(ours, view(DQN(n_step=2), None, ours, extension, where))
    np.testing.assert_array_equal(mixed.reward[1] - mixed.reward[0], [1.0] * 8 + [0.0] * 8)
    np.testing.assert_array_equal(mixed.action, [[0] * 8 + [1] * 8] * 2)


def test_every_row_is_drawn():
    ours = batch([[-1.0]] * 200, [[0.0]] * 200, [0.0] * 200, [[-1.0]] * 200)
    extension = PriorData(data=DATA, share=1.0).bind(LINE)
    mixed = extension.sample(ours, view(SAC(), None, ours, extension, LINE))
    assert set(np.asarray(mixed.reward)) == {10.0, 11.0, 12.0, 13.0, 14.0, 15.0}


def test_it_is_refused_beside_what_is_recorded_and_where_it_does_not_fit():
    ours = batch([[-1.0]] * 2, [[0.0]] * 2, [0.0] * 2, [[-1.0]] * 2, seen=[0.0, 0.0])
    extension = PriorData(data=DATA).bind(LINE)
    with pytest.raises(CapabilityError, match="PriorData has no seen"):
        extension.sample(ours, view(SAC(), None, ours, extension, LINE))
    with pytest.raises(ConfigError, match="lie outside"):
        PriorData(data=DATA).bind(Spec(Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (1,))))
