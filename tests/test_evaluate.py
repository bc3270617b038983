"""Evaluations against closed forms: whole episodes, the greedy policy, fresh keys, frozen statistics."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax import Box, Discrete, Step, evaluate
from ajax.training.evaluate import Evaluation
from tests.environments.identity_env import IdentityEnv
from tests.training.tiny import DISCRETE, TINY_DQN, TINY_PPO, leaves, train


@struct.dataclass
class LongPays:
    """Episodes of 1 step that return 0, or of 10 steps that return 1, with equal chance."""

    observation_space = Box(0.0, 10.0, (2,))
    action_space = Discrete(2)

    def reset(self, key):
        state = jnp.stack([jnp.float32(0.0), jax.random.bernoulli(key).astype(jnp.float32)])
        return state, state

    def step(self, key, state, action):
        t, long = state
        state = jnp.stack([t + 1, long])
        ended = jnp.where(long > 0, t + 1 >= 10, True)
        return state, Step(state, jnp.where((long > 0) & ended, 1.0, 0.0), ended, jnp.bool_(False))


def test_every_output_is_held_here():
    assert [f.name for f in dataclasses.fields(Evaluation)] == ["returns", "lengths", "finished", "metrics"]


def test_returns_and_lengths_have_their_closed_form():
    result = train(TINY_DQN, DISCRETE)
    outcome = result.evaluate(64)
    greedy = {c: result.act(np.array([[t, c] for t in range(5)], np.float32)) for c in (1.0, -1.0)}
    expected = {3.0: 30.0 + greedy[1.0][:3].sum(), 5.0: -100.0 - greedy[-1.0].sum()}
    assert set(outcome.lengths[0]) == {3.0, 5.0}
    np.testing.assert_array_equal(outcome.returns[0], [expected[length] for length in outcome.lengths[0]])
    assert outcome.finished.all()


def test_short_episodes_are_not_favored():
    """The mean over the first episodes to finish would be 0.05 here: 100 environments, 100 episodes."""
    result = train(TINY_DQN, LongPays(), 16)
    assert result.evaluate(1000).returns.mean() == pytest.approx(0.5, abs=0.06)


def test_an_unfinished_episode_is_cut_at_the_limit_and_reported():
    result = train(TINY_PPO, LongPays(), 8, episodes=64, episode_length=4)
    outcome = result.evaluate(64)
    assert set(outcome.lengths[0]) == {1.0, 4.0} and outcome.finished.all()
    result.session.lanes.limit = jnp.int32(3)
    outcome = result.evaluate(64)
    assert set(outcome.lengths[0]) == {1.0, 3.0}
    np.testing.assert_array_equal(outcome.finished[0], outcome.lengths[0] == 1)


def test_each_evaluation_episode_and_seed_draws_its_own_start():
    result = train(TINY_PPO, DISCRETE, 16, seeds=2, episodes=64)
    at_16 = result.evaluate(64).lengths
    at_24 = result.resume(24, progress=False).evaluate(64).lengths
    patterns = {tuple(lengths) for lengths in (*at_16, *at_24)}
    assert len(patterns) == 4
    assert all(0.2 < np.mean(lengths == 3.0) < 0.8 for lengths in (*at_16, *at_24))


def test_a_folders_evaluation_is_the_runs_own(tmp_path):
    result = train(TINY_DQN, "CartPole-v1", 16, seeds=2, episode_length=9, out=tmp_path / "run")
    mine, its = result.evaluate(8), evaluate(tmp_path / "run", episodes=8)
    for field in ("returns", "lengths", "finished"):
        np.testing.assert_array_equal(getattr(mine, field), getattr(its, field))
        assert getattr(its, field).shape == (2, 8)


def test_evaluating_changes_nothing_of_the_run():
    result = train(TINY_PPO, DISCRETE, normalize_observations=True, normalize_rewards=True)
    before = leaves(result)
    result.evaluate(16)
    after = leaves(result)
    assert [path for path in before if not np.array_equal(before[path], after[path])] == []


def test_the_policy_is_greedy():
    """Two evaluations of one policy with other exploration agree: PPO's would differ if it sampled."""
    result = train(TINY_PPO, IdentityEnv(continuous=True), 8)
    first = result.evaluate(64)
    returns = {length: set(first.returns[0][first.lengths[0] == length]) for length in (3.0, 5.0)}
    assert all(len(values) == 1 for values in returns.values())
