"""The store of whole episodes: which it keeps, that none is half, what segments of them were given and did."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ajax.buffers import episodes
from ajax.buffers.episodes import Episodes
from ajax.core.errors import ConfigError
from ajax.core.records import Batch, Inputs

add, best = jax.jit(episodes.add), jax.jit(episodes.best, static_argnums=1)
draw = jax.jit(episodes.sample, static_argnums=(2, 3))
SEGMENTS = 600


def row(steps: list[tuple[float, float, str]]) -> Batch:
    """One step of every environment: what it observed, what it was paid, and "" or how its episode ended."""
    obs, reward, ends = zip(*steps, strict=True)
    terminated, truncated = ([float(end == kind) for end in ends] for kind in ("terminated", "truncated"))
    x = Inputs(jnp.array(obs, jnp.float32)[:, None])
    return Batch(x, jnp.array(obs, jnp.int32), *(jnp.array(y, jnp.float32) for y in (reward, terminated, truncated)), x)


def played(lengths: Any, capacity: int, max_length: int = 8, n_envs: int = 1, ends: Any = None) -> episodes.Store:
    """A store after episodes of these lengths, played by one environment after another's turn.

    Step t of episode i observes 100 i + t and pays 10^t, or i where `lengths` are all 1.
    """
    store = episodes.init(row([(0.0, 0.0, "")] * n_envs), capacity, max_length)
    for i, length in enumerate(lengths):
        for t in range(length):
            end = (ends[i] if ends else "terminated") if t == length - 1 else ""
            store = add(store, row([(100.0 * i + t, 10.0**t, end)] * n_envs))
    return store


def kept(store: episodes.Store) -> list[float]:
    """Returns of the whole episodes, in order."""
    return sorted(np.asarray(store.returns)[np.asarray(store.whole)].tolist())


@pytest.mark.parametrize("end", ["terminated", "truncated"])
def test_an_episode_is_whole_once_it_has_ended_either_way(end):
    store = played([2], 3, ends=[end])
    assert kept(store) == [11.0] and int(store.lengths[store.whole][0]) == 2
    store = add(store, row([(7.0, 5.0, "")]))
    assert kept(store) == [11.0], "an episode under way is no whole one"
    store = add(store, row([(8.0, 5.0, end)]))
    assert kept(store) == [10.0, 11.0]


def test_nothing_of_an_episode_under_way_is_drawn():
    store = add(played([2], 3), row([(7.0, 5.0, "")]))
    rows, _ = draw(store, jax.random.key(0), SEGMENTS, True)
    assert set(rows.now.obs[:, 0].tolist()) == {0.0, 1.0}


def test_each_environment_has_an_episode_of_its_own():
    store = episodes.init(row([(0.0, 0.0, "")] * 2), 3, 8)
    for steps in (
        [(1.0, 1.0, ""), (10.0, 2.0, "terminated")],
        [(2.0, 1.0, ""), (20.0, 3.0, "")],
        [(3.0, 1.0, "truncated"), (21.0, 4.0, "terminated")],
    ):
        store = add(store, row(steps))
    assert kept(store) == [2.0, 3.0, 7.0]
    rows, commands = draw(store, jax.random.key(1), SEGMENTS, True)
    found = {tuple(x) for x in np.column_stack([rows.now.obs[:, 0], commands]).tolist()}
    assert found == {(1, 3, 3), (2, 2, 2), (3, 1, 1), (10, 2, 1), (20, 7, 2), (21, 4, 1)}


@given(
    returns=st.lists(st.integers(-4, 4), min_size=1, max_size=25),
    capacity=st.integers(1, 6),
    n_envs=st.sampled_from([1, 3]),
)
@settings(max_examples=30, deadline=None)
def test_the_best_are_kept_and_of_equal_ones_the_newest(returns, capacity, n_envs):
    """Episodes of one step each, in turns of `n_envs` at once, against a sorted list."""
    turns = [returns[i : i + n_envs] for i in range(0, len(returns) - n_envs + 1, n_envs)]
    store = episodes.init(row([(0.0, 0.0, "")] * n_envs), capacity, 1)
    listed: list[tuple[float, int]] = []
    for i, turn in enumerate(turns):
        store = add(store, row([(float(i * n_envs + j), float(r), "terminated") for j, r in enumerate(turn)]))
        listed = sorted([*listed, *((float(r), i * n_envs + j) for j, r in enumerate(turn))])[-capacity:]
    whole = np.asarray(store.whole)
    found = zip(np.asarray(store.returns)[whole], np.asarray(store.rows.now.obs)[whole, 0, 0], strict=True)
    assert sorted((float(r), int(i)) for r, i in found) == listed
    assert int(store.ended) == len(turns) * n_envs
    assert not set(np.asarray(store.open)) & set(np.flatnonzero(whole)), "an open slot holds a whole episode"
    top, lengths, known = best(store, capacity)
    assert sorted(np.asarray(top)[np.asarray(known)].tolist()) == [r for r, _ in listed]
    assert (np.diff(np.asarray(top)[np.asarray(known)]) <= 0).all() and (lengths[known] == 1).all()


def test_the_best_come_with_their_lengths():
    returns, lengths, known = best(played([3, 1, 2], 5), 4)
    assert returns[:3].tolist() == [111.0, 11.0, 1.0] and lengths[:3].tolist() == [3.0, 2.0, 1.0]
    assert known.tolist() == [True, True, True, False]


def test_an_episode_that_is_too_long_is_dropped_and_the_next_is_whole():
    store = played([3, 5, 3, 2], 6, max_length=3)
    assert kept(store) == [11.0, 111.0, 111.0] and int(store.ended) == 4
    rows, commands = draw(store, jax.random.key(0), SEGMENTS, False)
    assert set((rows.now.obs[:, 0] // 100).tolist()) == {0.0, 2.0, 3.0} and float(commands[:, 1].max()) == 3.0


@pytest.mark.parametrize("trailing", [True, False])
def test_a_segment_has_the_rewards_and_the_steps_from_its_first_step_to_its_end(trailing):
    store = played([3, 2], 4)
    rows, commands = draw(store, jax.random.key(0), SEGMENTS, trailing)
    found = {tuple(x) for x in np.column_stack([rows.now.obs[:, 0], rows.action, commands]).tolist()}
    whole = {(0, 0, 111, 3), (1, 1, 110, 2), (2, 2, 100, 1), (100, 100, 11, 2), (101, 101, 10, 1)}
    shorter = {(0, 0, 1, 1), (0, 0, 11, 2), (1, 1, 10, 1), (100, 100, 1, 1)}
    assert found == (whole if trailing else whole | shorter)


def test_episodes_are_drawn_alike_and_so_are_the_steps_of_one():
    store = played([1, 4], 4)
    rows, _ = draw(store, jax.random.key(2), 8_000, True)
    obs = rows.now.obs[:, 0]
    np.testing.assert_allclose(np.mean(obs == 0), 0.5, atol=0.02)
    for t in range(4):
        np.testing.assert_allclose(np.mean(obs == 100 + t), 0.125, atol=0.015)


def test_ends_are_drawn_alike():
    _, commands = draw(played([4], 4), jax.random.key(2), 8_000, False)
    # 1 of the four firsts has four ends, one has three, and so on
    for horizon, share in enumerate([25 / 48, 13 / 48, 7 / 48, 3 / 48], 1):
        np.testing.assert_allclose(np.mean(commands[:, 1] == horizon), share, atol=0.02)


def test_environments_that_start_again_forget_their_open_episodes_alone():
    store = add(played([2], 3), row([(7.0, 5.0, "")]))
    store = add(jax.jit(episodes.restart)(store), row([(8.0, 3.0, "terminated")]))
    assert kept(store) == [3.0, 11.0]
    rows, _ = draw(store, jax.random.key(0), SEGMENTS, True)
    assert set(rows.now.obs[:, 0].tolist()) == {0.0, 1.0, 8.0}


def test_more_commands_than_episodes_are_refused():
    with pytest.raises(ConfigError, match=r"Episodes\(last_few=9, capacity=4\)"):
        Episodes(last_few=9, capacity=4)
