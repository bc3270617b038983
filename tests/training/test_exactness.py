"""The same seed gives the same bits, however a run is cut, chunked, evaluated, batched or continued."""

from __future__ import annotations

import numpy as np
import pytest

from ajax import resume
from ajax.training import programs, session
from tests.training.tiny import (
    CASES,
    CONTINUOUS,
    DISCRETE,
    TINY_DQN,
    TINY_PPO,
    TINY_TD3,
    assert_same_history,
    assert_same_runs,
    leaves,
    train,
)


@pytest.fixture
def short_chunks(monkeypatch):
    """Chunks of one tick."""
    monkeypatch.setattr(session, "CHUNK_SECONDS", 0.0)


@pytest.mark.parametrize("name", CASES)
def test_the_same_seed_gives_the_same_bits_and_curves(name):
    agent, env, options = CASES[name]
    first, second = (train(agent, env, **options) for _ in range(2))
    assert_same_runs(first, second)
    assert_same_history(first, second)


@pytest.mark.parametrize("name", CASES)
def test_another_seed_gives_another_run(name):
    agent, env, options = CASES[name]
    first, second = (leaves(train(agent, env, seeds=[seed], **options)) for seed in (0, 1))
    assert not any(np.array_equal(first[path], second[path]) for path in first if "params" in path and "kernel" in path)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stops", [[8], [16, 24, 40]], ids=["early", "thrice"])
def test_a_split_run_is_the_whole_run(name, stops, tmp_path):
    agent, env, options = CASES[name]
    whole = train(agent, env, **options)
    train(agent, env, stops[0], horizon=48, out=tmp_path / "run", **options)
    for steps in [*stops[1:], 48]:
        split = resume(tmp_path / "run", steps, env=env, progress=False)
    assert_same_runs(whole, split)
    assert whole.returns[:, -1].tolist() == split.returns[:, -1].tolist()


@pytest.mark.parametrize("stop", [2, 4, 6, 8, 10])
def test_a_run_can_be_split_inside_warm_up_and_just_after_it(stop, tmp_path):
    whole = train(TINY_DQN, DISCRETE, 16)
    train(TINY_DQN, DISCRETE, stop, horizon=16, out=tmp_path / "run")
    assert_same_runs(whole, resume(tmp_path / "run", 16, env=DISCRETE, progress=False))


def test_a_result_trains_on_from_where_it_stands():
    whole = train(TINY_PPO, DISCRETE)
    assert_same_runs(whole, train(TINY_PPO, DISCRETE, 16, horizon=48).resume(48, progress=False))


@pytest.mark.parametrize("name", CASES)
def test_the_length_of_chunks_changes_nothing(name, short_chunks):
    agent, env, options = CASES[name]
    ticks = train(agent, env, **options)
    session.CHUNK_SECONDS = 1e3
    whole = train(agent, env, **options)
    assert_same_runs(ticks, whole)
    assert_same_history(ticks, whole)


def test_the_evaluations_change_nothing():
    rare, often, never = (
        train(TINY_DQN, DISCRETE, evaluations=n, episodes=episodes) for n, episodes in [(1, 2), (12, 3), (3, 0)]
    )
    assert_same_runs(rare, often)
    assert_same_runs(rare, never)


@pytest.mark.parametrize("name", CASES)
def test_a_seed_in_a_batch_is_the_seed_alone(name):
    agent, env, options = CASES[name]
    batch, alone = train(agent, env, seeds=[5, 3], **options), train(agent, env, seeds=[3], **options)
    together, single = leaves(batch), leaves(alone)
    assert [path for path in single if not np.array_equal(together[path][1], single[path][0])] == []
    np.testing.assert_array_equal(batch.returns[1], alone.returns[0])


def test_a_lane_of_a_sweep_is_the_plain_run_with_its_value():
    swept = train(TINY_TD3.sweep(gamma=[0.5, 0.9], tau=[0.1]), CONTINUOUS, seeds=[0, 4])
    assert swept.lanes == [
        "gamma=0.5, tau=0.1, seed 0",
        "gamma=0.5, tau=0.1, seed 4",
        "gamma=0.9, tau=0.1, seed 0",
        "gamma=0.9, tau=0.1, seed 4",
    ]
    agent = TINY_TD3.__class__(torso=TINY_TD3.torso, replay=TINY_TD3.replay, gamma=0.9, tau=0.1)
    plain, lanes = leaves(train(agent, CONTINUOUS, seeds=[4])), leaves(swept)
    assert [path for path in plain if not np.array_equal(lanes[path][3], plain[path][0])] == []


def test_other_numbers_compile_nothing():
    train(TINY_PPO, DISCRETE)
    before = set(programs._programs)
    changed = TINY_PPO.__class__(
        torso=TINY_PPO.torso, rollout=TINY_PPO.rollout, gamma=0.5, learning_rate=TINY_PPO.learning_rate
    )
    train(changed, DISCRETE, 80, seeds=[7], evaluations=5)
    assert set(programs._programs) == before
