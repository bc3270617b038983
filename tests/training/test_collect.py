"""What is collected, stored and normalized, recognised row by row on the identity task."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from ajax import DQN, PPO, Replay, Rollout
from tests.environments.identity_env import IdentityEnv
from tests.training.tiny import CONTINUOUS, DISCRETE, TORSO, train

COLLECTS = DQN(torso=TORSO, replay=Replay(capacity=120, batch_size=4, warmup=90, n_envs=3))
"""Three environments; 30 rows of warm-up, then an update a tick."""


@pytest.fixture(scope="module")
def rows():
    """Everything stored in 96 steps: (32, 3, ...)."""
    result = train(COLLECTS, DISCRETE, 96)
    assert int(result.run().store.size) == 32
    return jax.tree.map(lambda x: np.asarray(x)[:32], result.run().store.rows)


def test_each_row_is_one_step_with_its_own_outcome(rows):
    t, c = np.moveaxis(rows.now.obs, -1, 0)
    np.testing.assert_array_equal(rows.reward, c * (10 * t + rows.action))
    np.testing.assert_array_equal(rows.next.obs, np.stack([t + 1, c], -1))
    np.testing.assert_array_equal(rows.terminated, (c > 0) & (t == 2))
    np.testing.assert_array_equal(rows.truncated, (c < 0) & (t == 4))
    assert rows.reward.dtype == rows.terminated.dtype == np.float32


def test_an_episode_follows_another_in_each_environment(rows):
    ended = np.maximum(rows.terminated, rows.truncated)[:-1].astype(bool)
    assert ended.any() and not ended.all()
    np.testing.assert_array_equal(rows.now.obs[1:][~ended], rows.next.obs[:-1][~ended])
    np.testing.assert_array_equal(rows.now.obs[1:][ended][:, 0], 0.0)
    starts = rows.now.obs[1:][ended][:, 1]
    assert {-1.0, 1.0} == set(starts)


def test_environments_draw_apart_and_get_out_of_step(rows):
    signs = [tuple(rows.now.obs[:, i, 1]) for i in range(3)]
    actions = [tuple(rows.action[:, i]) for i in range(3)]
    assert len(set(signs)) == len(set(actions)) == 3
    assert any(len(set(times)) > 1 for times in rows.now.obs[:, :, 0])


def test_training_episodes_are_counted_whole_and_in_the_environments_units():
    result = train(COLLECTS, DISCRETE, 96, episodes=0, evaluations=1, normalize_rewards=True)
    store = jax.tree.map(lambda x: np.asarray(x)[:32], result.run().store.rows)
    returns, lengths = [], []
    for i in range(3):
        total, length = 0.0, 0
        for reward, ended in zip(store.reward[:, i], (store.terminated + store.truncated)[:, i], strict=True):
            total, length = total + reward, length + 1
            if ended:
                returns.append(total)
                lengths.append(length)
                total, length = 0.0, 0
    assert result.metrics["train/episodes"][0, 0] == len(returns)
    assert result.returns[0, 0] == np.float32(np.mean(returns))
    assert result.lengths[0, 0] == np.float32(np.mean(lengths))


def test_statistics_are_those_of_what_was_seen():
    result = train(COLLECTS, DISCRETE, 96, normalize_observations=True, normalize_rewards=True)
    run = result.run()
    seen = np.asarray(run.store.rows.now.obs)[:32].reshape(-1, 2)
    assert float(run.statistics.obs.count) == 96
    np.testing.assert_allclose(run.statistics.obs.mean, seen.mean(0), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run.statistics.obs.std, seen.std(0), rtol=1e-4)
    rewards = np.asarray(run.store.rows.reward)[:32]
    np.testing.assert_allclose(run.statistics.reward.std, rewards.std(), rtol=1e-4)


def test_rewards_are_scaled_by_their_discounted_sums():
    options = {"normalize_rewards": True, "reward_normalization_gamma": 0.5}
    run = train(COLLECTS, DISCRETE, 96, **options).run()
    rewards, ended = (np.asarray(x)[:32] for x in (run.store.rows.reward, run.store.rows.terminated))
    ended = np.maximum(ended, np.asarray(run.store.rows.truncated)[:32])
    total, sums = np.zeros(3), []
    for reward, end in zip(rewards, ended, strict=True):
        total = 0.5 * total + reward
        sums.append(total)
        total = total * (1 - end)
    np.testing.assert_allclose(run.statistics.reward.std, np.std(sums), rtol=1e-4)


def test_the_probability_ratio_starts_at_one_under_normalization():
    """What PPO saw when it acted is what it is trained on: no divergence before the first step."""
    agent = PPO(torso=TORSO, rollout=Rollout(n_envs=2, n_steps=8, n_epochs=1, n_minibatches=1))
    for env in (DISCRETE, CONTINUOUS):
        result = train(agent, env, 64, evaluations=4, normalize_observations=True, normalize_rewards=True)
        np.testing.assert_allclose(result.metrics["approx_kl"], 0.0, atol=1e-5)
        assert (result.metrics["clip_fraction"] == 0.0).all()


@pytest.mark.parametrize("repeat, lengths", [(1, {3.0, 5.0}), (2, {2.0, 3.0})])
def test_action_repeat_sums_rewards_until_the_end(repeat, lengths):
    result = train(COLLECTS, DISCRETE, 96, action_repeat=repeat)
    outcome = result.evaluate(32)
    assert set(outcome.lengths[0]) == lengths
    good = outcome.returns[0] > 0
    assert ((outcome.returns[0][good] >= 30) & (outcome.returns[0][good] <= 33)).all()
    assert ((outcome.returns[0][~good] <= -100) & (outcome.returns[0][~good] >= -105)).all()


def test_episode_length_truncates():
    result = train(COLLECTS, IdentityEnv(), 96, episode_length=2)
    rows = jax.tree.map(lambda x: np.asarray(x)[:32], result.run().store.rows)
    assert rows.terminated.sum() == 0
    np.testing.assert_array_equal(rows.truncated, rows.now.obs[..., 0] == 1)
    assert set(result.evaluate(8).lengths[0]) == {2.0}
