"""Datasets: what they refuse, and that they become a replay in agent units."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.buffers import replay
from ajax.buffers.dataset import Dataset
from ajax.core.errors import ConfigError
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete

BOX = Spec(Box(shape=(2,)), Box.of([0.0, -4.0], [10.0, 4.0]))


def arrays(n: int = 4) -> dict[str, np.ndarray]:
    """n transitions whose time can be read off every field."""
    time = np.arange(n, dtype=np.float32)
    return {
        "obs": np.stack([time, time], -1),
        "action": np.stack([time, -time], -1),
        "reward": time,
        "terminated": time == n - 1,
        "next_obs": np.stack([time + 1, time + 1], -1),
    }


def test_a_dataset_is_a_full_replay_in_agent_units():
    store = Dataset(**arrays()).store(BOX)
    assert int(store.size) == 4
    b = replay.sample(store, jax.random.key(0), 200)
    time = b.now.obs[:, 0]
    assert sorted(set(time.tolist())) == [0, 1, 2, 3]
    np.testing.assert_allclose(b.action, jnp.stack([time / 5 - 1, -time / 4], -1), atol=1e-6)
    np.testing.assert_array_equal(b.next.obs[:, 0], time + 1)
    np.testing.assert_array_equal(b.terminated, time == 3)
    assert not b.truncated.any() and b.reward.dtype == jnp.float32


def test_whole_numbers_become_floats():
    """Whole rewards would make whole returns: 1 + 0.9 is 1.9, not 1."""
    whole = {name: array.astype(np.int64) for name, array in arrays().items()}
    rows = Dataset(**{**whole, "terminated": whole["terminated"] > 0}).store(BOX).rows
    assert {str(x.dtype) for x in jax.tree.leaves(rows)} == {"float32"}
    np.testing.assert_array_equal(rows.reward[:, 0], np.arange(4.0))


def test_truncations_are_kept_apart():
    store = Dataset(**arrays(), truncated=np.array([False, True, False, False])).store(BOX)
    np.testing.assert_array_equal(store.rows.truncated[:, 0], [0, 1, 0, 0])
    np.testing.assert_array_equal(store.rows.terminated[:, 0], [0, 0, 0, 1])


def test_discrete_actions_stay_as_they_are():
    data = arrays() | {"action": np.array([0, 2, 1, 0])}
    store = Dataset(**data).store(Spec(Box(shape=(2,)), Discrete(3)))
    np.testing.assert_array_equal(store.rows.action[:, 0], [0, 2, 1, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": np.zeros(3)}, r"same number of transitions.*'reward': 3"),
        ({"reward": np.array([0.0, np.nan, 0.0, 0.0])}, r"reward is not finite, first in row 1"),
        ({"obs": np.full((4, 2), np.inf)}, r"obs is not finite, first in row 0"),
    ],
)
def test_bad_arrays_are_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Dataset(**(arrays() | change))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"obs": np.zeros((4, 3))}, r"obs has shape \(3,\), the environment's is \(2,\)"),
        ({"action": np.zeros((4, 1))}, r"action has shape \(1,\), the environment's is \(2,\)"),
        ({"action": np.full((4, 2), 5.0)}, r"some actions lie outside"),
    ],
)
def test_data_of_another_environment_is_refused(change, message):
    with pytest.raises(ConfigError, match=message):
        Dataset(**(arrays() | change)).store(BOX)


def test_no_transitions_are_refused():
    with pytest.raises(ConfigError, match="same number of transitions"):
        Dataset(**arrays(0))
