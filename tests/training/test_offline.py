"""Learning from a dataset: steps are updates, TD3+BC learns the data's actions, and datasets are checked."""

from __future__ import annotations

import dataclasses
import re

import gymnasium
import jax
import numpy as np
import pytest

from ajax import IQL, SAC, TD3, Dataset, Replay, Torso, load, resume
from ajax.core.errors import ConfigError
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_DQN, TINY_TD3, assert_same_runs, train


def dataset(n: int = 64, **changes) -> Dataset:
    """Transitions of the identity task whose action is half the sign of the observation, without reward."""
    generator = np.random.default_rng(0)
    obs = np.stack([generator.integers(0, 5, n), generator.choice([-1.0, 1.0], n)], 1).astype(np.float32)
    arrays = {"obs": obs, "action": 0.5 * obs[:, 1:], "reward": np.zeros(n), "terminated": np.ones(n, bool)}
    return Dataset(**(arrays | {"next_obs": obs} | changes))


def test_a_step_is_an_update_and_no_environment_is_stepped():
    result = train(TINY_TD3, CONTINUOUS, 12, evaluations=3, dataset=dataset())
    assert result.steps.tolist() == [4, 8, 12]
    assert (result.metrics["train/episodes"] == 0).all() and np.isnan(result.metrics["train/return"]).all()
    assert np.isfinite(result.returns).all() and np.isfinite(result.metrics["critic_loss"]).all()


def test_a_split_run_is_the_whole_run(tmp_path):
    data = dataset()
    whole = train(TINY_TD3, CONTINUOUS, 12, dataset=data)
    train(TINY_TD3, CONTINUOUS, 5, horizon=12, dataset=data, out=tmp_path / "run")
    assert_same_runs(whole, resume(tmp_path / "run", 12, env=CONTINUOUS, dataset=data, progress=False))


def test_it_can_be_looked_at_without_the_dataset_but_not_trained(tmp_path):
    result = train(TINY_TD3, CONTINUOUS, 8, dataset=dataset(), out=tmp_path / "run")
    again = load(tmp_path / "run", env=CONTINUOUS)
    assert_same_runs(result, again)
    np.testing.assert_array_equal(again.evaluate(5).returns, result.evaluate(5).returns)
    with pytest.raises(ConfigError, match=r"learns from a dataset, which a results folder does not hold\. Resume it"):
        resume(tmp_path / "run", 16, env=CONTINUOUS, progress=False)


def test_what_was_learned_offline_goes_on_in_the_environment(tmp_path):
    options = {"seeds": 2, "normalize_observations": True}
    offline = train(TINY_TD3, CONTINUOUS, 8, dataset=dataset(), **options)
    waits = dataclasses.replace(TINY_TD3, replay=dataclasses.replace(TINY_TD3.replay, warmup=16))
    online = train(waits, CONTINUOUS, 16, horizon=40, start=offline, out=tmp_path / "run", **options)
    for lane in range(2):  # nothing is learned in warm-up
        begun, learned = online.run(lane), offline.run(lane)
        jax.tree.map(np.testing.assert_array_equal, begun.agent, learned.agent)
        assert float(begun.statistics.obs.count) == 64 + 16
    whole = train(waits, CONTINUOUS, 40, start=offline, **options)
    assert_same_runs(whole, resume(tmp_path / "run", 40, env=CONTINUOUS, progress=False))
    assert np.isfinite(whole.returns).all()


def test_a_replay_becomes_a_dataset():
    """The identity task says (t, c); of 2 environments x 12 steps the ring keeps the last 2 x 8."""
    agent = dataclasses.replace(TINY_TD3, replay=Replay(n_envs=2, batch_size=4, capacity=16, warmup=4))
    result = train(agent, CONTINUOUS, 24, evaluations=1, episodes=0)
    data, store = result.dataset(), result.run().store
    assert len(data) == 16 and int(store.at) == 4
    for env in range(2):
        mine = slice(8 * env, 8 * env + 8)
        rows = jax.tree.map(lambda x, env=env: np.roll(np.asarray(x)[:, env], -4, 0), store.rows)
        np.testing.assert_array_equal(data.obs[mine], rows.now.obs)
        np.testing.assert_array_equal(data.next_obs[mine], rows.next.obs)
        np.testing.assert_array_equal(data.terminated[mine], rows.terminated)
        ends = data.terminated[mine] | data.truncated[mine]
        assert ends[-1], "windows must not run from one environment into the next"
        follows = ~ends[:-1]
        np.testing.assert_array_equal(data.next_obs[mine][:-1][follows], data.obs[mine][1:][follows])
    back = data.store(result.session.lanes.task.spec).rows
    np.testing.assert_allclose(back.action[:8, 0], np.roll(np.asarray(store.rows.action)[:, 0], -4, 0), atol=1e-6)
    assert train(TINY_TD3, CONTINUOUS, 4, dataset=data, evaluations=1, episodes=0).steps[-1] == 4


def test_a_run_without_a_replay_has_no_dataset():
    offline = train(TINY_TD3, CONTINUOUS, 4, dataset=dataset(), evaluations=1, episodes=0)
    with pytest.raises(ConfigError, match=r"<TD3 on .*> has no transitions in a replay: agents that learn from"):
        offline.dataset()


def test_it_goes_on_in_a_gymnasium_environment():
    agent, env = IQL(torso=Torso(widths=(8,)), replay=Replay(batch_size=4, warmup=4)), gymnasium.make("Pendulum-v1")
    begun = train(agent, env, 6, evaluations=1, episodes=0)
    again = train(agent, env, 4, start=begun, evaluations=1, episodes=0)
    jax.tree.map(np.testing.assert_array_equal, again.run(0).agent, begun.run(0).agent)
    assert int(again.run(0).store.size) == 4


@pytest.mark.parametrize(
    ("agent", "options", "text"),
    [
        (TINY_TD3, {"seeds": 3}, "start holds 1 runs, and 3 are to be trained"),
        (TINY_TD3, {"normalize_observations": True}, "start is a TD3 on .* Both need the same agent, networks"),
        (dataclasses.replace(TINY_TD3, torso=Torso(widths=(5,))), {}, "whose arrays are not those of this TD3"),
        (SAC(), {}, "whose arrays are not those of this SAC"),
    ],
)
def test_a_start_that_does_not_fit_is_refused(agent, options, text):
    offline = train(TINY_TD3, CONTINUOUS, 4, dataset=dataset())
    with pytest.raises(ConfigError, match=text):
        train(agent, CONTINUOUS, 8, start=offline, **options)


def test_discrete_agents_learn_offline_too():
    data = dataset(action=np.arange(64) % 2)
    assert train(TINY_DQN, DISCRETE, 8, dataset=data).steps[-1] == 8


@pytest.mark.slow
def test_td3_bc_learns_the_actions_of_the_data():
    """All are paid alike, so that Q is flat and the pull to the data's actions decides."""
    agent = TD3(
        bc_alpha=2.5,
        learning_rate=1e-3,
        actor_learning_rate=1e-3,
        torso=Torso(widths=(32,)),
        replay=Replay(batch_size=32),
    )
    data = dataset(2048, reward=np.ones(2048))
    spread = np.random.default_rng(1).uniform(-0.5, 0.5, (2048, 1))  # else Q is free to slope off the data
    result = train(agent, CONTINUOUS, 3_000, dataset=dataset(2048, reward=data.reward, action=data.action + spread))
    obs = np.array([[t, c] for t in range(5) for c in (-1.0, 1.0)], np.float32)
    np.testing.assert_allclose(result.act(obs)[:, 0], 0.5 * obs[:, 1], atol=0.2)


FAULTS = {
    "lengths": ({"reward": np.zeros(63)}, "every array must hold the same number of transitions"),
    "nan": ({"reward": np.r_[np.zeros(9), np.nan, np.zeros(54)]}, "reward is not finite, first in row 9."),
    "observation shape": ({"obs": np.zeros((64, 3))}, "obs has shape (3,), the environment's is (2,)."),
    "action shape": ({"action": np.zeros(64)}, "action has shape (), the environment's is (1,)."),
    "outside the box": ({"action": np.full((64, 1), 1.5)}, "some actions lie outside the environment's"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_dataset_that_does_not_fit_is_refused(fault):
    changes, text = FAULTS[fault]
    with pytest.raises(ConfigError, match=re.escape(text)):
        train(TINY_TD3, CONTINUOUS, 8, dataset=dataset(**changes))
