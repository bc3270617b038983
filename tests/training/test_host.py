"""The host loop: the same agents, results and checkpoints around Gymnasium environments."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from ajax import DQN, PPO, SAC, TD3, Dataset, load, resume
from tests.training.tiny import (
    REPLAY,
    TINY_DQN,
    TINY_PPO,
    TINY_SAC,
    TINY_TD3,
    TINY_UDRL,
    TORSO,
    assert_same_runs,
    leaves,
    train,
)


class Sign(gymnasium.Env):
    """Observes {"sign": c, "time": t}; terminates at t = 3 where c is 1, is truncated at t = 5 where it is -1.

    The reward is c * (10 t + a), as the identity environment's.
    """

    observation_space = spaces.Dict(sign=spaces.Box(-1, 1, (1,)), time=spaces.Box(0, 5, (1,)))
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.c, self.t = float(self.np_random.choice([-1.0, 1.0])), 0
        return self._obs(), {}

    def step(self, action):
        reward = self.c * (10.0 * self.t + int(action))
        self.t += 1
        return self._obs(), reward, self.c > 0 and self.t >= 3, self.c < 0 and self.t >= 5, {}

    def _obs(self):
        return {"sign": np.array([self.c], np.float32), "time": np.array([self.t], np.float32)}


@pytest.fixture(scope="module", autouse=True)
def registered():
    gymnasium.register("tests/Sign-v0", Sign)
    yield
    del gymnasium.registry["tests/Sign-v0"]


CASES = {
    "PPO discrete": (TINY_PPO, "gymnasium:CartPole-v1"),
    "PPO continuous": (TINY_PPO, "gymnasium:Pendulum-v1"),
    "DQN": (TINY_DQN, "gymnasium:CartPole-v1"),
    "SAC": (TINY_SAC, "gymnasium:Pendulum-v1"),
    "TD3": (TINY_TD3, "gymnasium:Pendulum-v1"),
    "DQN dict": (TINY_DQN, "tests/Sign-v0"),
    "UDRL": (TINY_UDRL, "tests/Sign-v0"),
}
FAST = ("PPO continuous", "TD3", "DQN dict")
SHORT = {"steps": 32, "episode_length": 12}


@pytest.mark.parametrize(
    "name", [name if name in FAST else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_it_trains_the_same_twice_and_seeds_differ(name):
    agent, env = CASES[name]
    first, second = (train(agent, env, seeds=2, normalize_observations=True, **SHORT) for _ in range(2))
    assert_same_runs(first, second)
    assert first.steps.tolist() == [16, 32] and first.returns.shape == (2, 2)
    np.testing.assert_array_equal(first.returns, second.returns)
    for path, leaf in leaves(first).items():
        if "kernel" in path and "params" in path:
            assert not np.array_equal(leaf[0], leaf[1])
    alone = leaves(train(agent, env, seeds=[1], normalize_observations=True, **SHORT))
    assert [path for path in alone if not np.array_equal(alone[path][0], leaves(first)[path][1])] == []


def test_evaluation_takes_any_number_of_episodes():
    result = train(TINY_DQN, "tests/Sign-v0", 32)
    outcome = result.evaluate(40)
    assert outcome.returns.shape == (1, 40) and outcome.finished.all()
    good = outcome.lengths[0] == 3
    assert set(outcome.lengths[0]) == {3.0, 5.0}
    assert ((outcome.returns[0] >= 30) == good).all() and (outcome.returns[0][~good] <= -100).all()
    np.testing.assert_array_equal(outcome.returns, result.evaluate(40).returns)


def test_the_replay_holds_each_steps_own_outcome():
    agent = DQN(torso=TORSO, replay=REPLAY.__class__(capacity=128, batch_size=4, warmup=120, n_envs=3))
    result = train(agent, "tests/Sign-v0", 60)
    rows = result.run().store.rows
    (sign, time), action = np.moveaxis(np.asarray(rows.now.obs)[:20], -1, 0), np.asarray(rows.action)[:20]
    np.testing.assert_array_equal(np.asarray(rows.next.obs)[:20, :, 0], sign)
    np.testing.assert_array_equal(np.asarray(rows.next.obs)[:20, :, 1], time + 1)
    np.testing.assert_array_equal(np.asarray(rows.reward)[:20], sign * (10 * time + action))
    np.testing.assert_array_equal(np.asarray(rows.terminated)[:20], (sign > 0) & (time == 2))
    np.testing.assert_array_equal(np.asarray(rows.truncated)[:20], (sign < 0) & (time == 4))
    assert np.asarray(rows.truncated)[:20].any() and np.asarray(rows.terminated)[:20].any()


def test_an_instance_and_its_options():
    result = train(TINY_DQN, gymnasium.make("CartPole-v1"), 32, episode_length=4, action_repeat=2, episodes=3)
    outcome = result.evaluate(5)
    assert (outcome.lengths <= 4).all() and (outcome.returns <= 8).all() and (outcome.returns > 4).all()


def test_a_resumed_run_goes_on_with_new_episodes(tmp_path):
    train(TINY_DQN, "tests/Sign-v0", 16, horizon=32, out=tmp_path / "run")
    before = load(tmp_path / "run")
    result = resume(tmp_path / "run", 32, progress=False)
    assert result.steps.tolist() == [8, 16, 24, 32]
    stored = np.asarray(result.run().store.rows.now.obs)
    np.testing.assert_array_equal(stored[:8], np.asarray(before.run().store.rows.now.obs)[:8])
    assert (stored[8, :, 1] == 0).all()
    assert int(result.run().env) == 1


def test_a_resumed_runs_episodes_are_not_those_of_its_start(tmp_path):
    train(TINY_DQN, "gymnasium:CartPole-v1", 16, horizon=32, out=tmp_path / "run")
    stored = np.asarray(resume(tmp_path / "run", 32, progress=False).run().store.rows.now.obs)
    assert not np.array_equal(stored[0], stored[8])


def test_it_learns_offline(tmp_path):
    generator = np.random.default_rng(0)
    obs = generator.uniform(-1, 1, (64, 3)).astype(np.float32)
    data = Dataset(obs, np.zeros((64, 1)), np.zeros(64), np.zeros(64, bool), obs)
    whole = train(TINY_TD3, "gymnasium:Pendulum-v1", 16, dataset=data, episode_length=5)
    train(TINY_TD3, "gymnasium:Pendulum-v1", 8, horizon=16, dataset=data, episode_length=5, out=tmp_path / "run")
    split = resume(tmp_path / "run", 16, dataset=data, progress=False)
    first, second = leaves(whole), leaves(split)
    assert [path for path in first if ".agent" in path and not np.array_equal(first[path], second[path])] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "agent, env, steps, least",
    [
        (PPO(), "gymnasium:CartPole-v1", 60_000, 300),
        (SAC(torso=TORSO.__class__(widths=(64, 64))), "gymnasium:Pendulum-v1", 12_000, -300),
    ],
)
def test_it_learns(agent, env, steps, least):
    assert train(agent, env, steps, episodes=20).mean_return > least


def test_agents_may_be_swept():
    swept = train(TINY_TD3.sweep(gamma=[0.5, 0.9]), "gymnasium:Pendulum-v1", 16, episode_length=5)
    plain = train(TD3(torso=TORSO, replay=REPLAY, gamma=0.9), "gymnasium:Pendulum-v1", 16, episode_length=5)
    first, second = leaves(plain), leaves(swept)
    assert [path for path in first if not np.array_equal(first[path][0], second[path][1])] == []
