"""Named random streams."""

from __future__ import annotations

import jax
import numpy as np

from ajax.core.keys import seed_key, stream


def bits(key: jax.Array) -> tuple:
    return tuple(np.asarray(jax.random.key_data(key)).tolist())


def test_a_name_gives_the_same_key_every_time_and_in_every_process():
    # crc32(b"env") = 4081402617, whose lower 31 bits are 1933918969: not Python's hash, which is salted
    assert bits(stream(seed_key(0), "env")) == bits(jax.random.fold_in(jax.random.key(0), 1933918969))


def test_names_and_parents_give_different_keys():
    keys = {bits(stream(seed_key(seed), name)) for seed in range(3) for name in ("act", "env", "reset", "update")}
    assert len(keys) == 12


def test_streams_are_not_correlated():
    a = jax.random.normal(stream(seed_key(0), "action"), (10_000,))
    b = jax.random.normal(stream(seed_key(0), "next_action"), (10_000,))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / 100  # the correlation of independent draws is 0 +- 1 / sqrt(n)


def test_seeds_give_different_runs():
    assert bits(seed_key(0)) != bits(seed_key(1))
