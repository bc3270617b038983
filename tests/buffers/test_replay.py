"""The ring: what it keeps, that windows run along one environment and never across the write position, uniformity."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ajax.buffers import replay

N_ENVS = 3


def filled(steps: int, capacity: int) -> replay.Store:
    """A store after `steps` rows; every row says which environment and time it is of."""
    store = replay.init(row(0), capacity)
    add = jax.jit(replay.add)
    for t in range(steps):
        store = add(store, row(t))
    return store


def row(t: int) -> dict[str, jax.Array]:
    return {"env": jnp.arange(N_ENVS), "time": jnp.full(N_ENVS, t), "obs": jnp.full((N_ENVS, 2), 10.0 * t)}


draw = jax.jit(replay.sample, static_argnums=(2, 3))


def test_capacity_counts_transitions_over_all_environments():
    store = filled(1, capacity=11)  # three whole rows of three
    assert store.rows["obs"].shape == (3, N_ENVS, 2) and store.rows["env"].dtype == jnp.int32


@pytest.mark.parametrize(("steps", "kept"), [(1, [0]), (3, [0, 1, 2]), (4, [0, 1, 2, 3]), (9, [5, 6, 7, 8])])
def test_the_newest_rows_are_kept(steps, kept):
    store = filled(steps, capacity=12)
    sample = draw(store, jax.random.key(0), 400, 1)
    assert sorted(set(sample["time"].tolist())) == kept
    assert int(store.size) == len(kept) and int(store.at) == steps % 4
    np.testing.assert_array_equal(sample["obs"][:, 0], 10.0 * sample["time"])  # fields of one transition stay together


def test_nothing_unwritten_is_drawn():
    sample = draw(filled(2, capacity=300), jax.random.key(0), 500, 1)
    assert set(sample["time"].tolist()) == {0, 1} and set(sample["env"].tolist()) == {0, 1, 2}
    assert 0.4 < np.mean(sample["time"]) < 0.6  # what is not written yet reads as time 0


@pytest.mark.parametrize(("n_rows", "window"), [(3, 3), (7, 2), (7, 3)])
@given(steps=st.integers(3, 30), seed=st.integers(0, 99))
def test_windows_are_consecutive_steps_of_one_environment(n_rows, window, steps, seed):
    store = replay.Store(
        rows={
            # what `steps` writes leave in a ring of n_rows
            "time": np.array([[last_write(i, steps, n_rows)] * N_ENVS for i in range(n_rows)]),
            "env": np.tile(np.arange(N_ENVS), (n_rows, 1)),
        },
        at=jnp.int32(steps % n_rows),
        size=jnp.int32(min(steps, n_rows)),
    )
    sample = draw(store, jax.random.key(seed), 64, window)
    time, env = np.asarray(sample["time"]), np.asarray(sample["env"])
    assert time.shape == (window, 64)
    np.testing.assert_array_equal(np.diff(time, axis=0), 1)
    np.testing.assert_array_equal(env, np.broadcast_to(env[:1], env.shape))
    assert time.min() >= max(steps - n_rows, 0) and time.max() <= steps - 1


def last_write(slot: int, steps: int, n_rows: int) -> int:
    """Time of the newest row in a slot of the ring; -1000 where none was written."""
    written = [t for t in range(steps) if t % n_rows == slot]
    return written[-1] if written else -1000


def test_the_model_of_the_ring_is_what_adding_makes():
    np.testing.assert_array_equal(filled(9, 12).rows["time"][:, 0], [last_write(i, 9, 4) for i in range(4)])


def chi_square(counts: np.ndarray) -> float:
    expected = counts.sum() / counts.size
    return float(((counts - expected) ** 2 / expected).sum())


@pytest.mark.parametrize(("steps", "window"), [(4, 1), (9, 1), (9, 2), (3, 2)])
def test_sampling_is_uniform_over_what_is_stored(steps, window):
    store = filled(steps, capacity=15)
    sample = draw(store, jax.random.key(1), 6000, window)
    time = np.asarray(sample["time"]).reshape(window, -1)[0]
    env = np.asarray(sample["env"]).reshape(window, -1)[0]
    first, n_starts = max(steps - 5, 0), min(steps, 5) - window + 1
    counts = np.bincount((time - first) * N_ENVS + env, minlength=n_starts * N_ENVS)
    assert counts.size == n_starts * N_ENVS
    # mean k, variance 2 k for k degrees of freedom: five deviations
    k = counts.size - 1
    assert chi_square(counts) < k + 5 * (2 * k) ** 0.5


def test_draws_differ_by_key_and_repeat_with_it():
    store = filled(9, capacity=12)
    a, b, c = (draw(store, jax.random.key(seed), 64, 1)["time"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_bytes_stay_bytes():
    store = replay.init({"obs": jnp.zeros((2, 4), jnp.uint8)}, 8)
    store = replay.add(store, {"obs": jnp.full((2, 4), 255, jnp.uint8)})
    sample = replay.sample(store, jax.random.key(0), 3)
    assert sample["obs"].dtype == jnp.uint8 and (sample["obs"] == 255).all()
