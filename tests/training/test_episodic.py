"""Commands in a run: what the agent is told at every step, while it explores and while it is evaluated."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import UDRL, Episodes, Extension, config, load, resume
from ajax.core.commands import Goal
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.records import Inputs
from ajax.training import commands
from ajax.training.commands import Commands
from tests.agents.contract import settle
from tests.training.test_host import Sign
from tests.training.tiny import CONTINUOUS, DISCRETE, TORSO, train

AGENT = UDRL(
    torso=TORSO,
    replay=Episodes(capacity=64, max_length=5, last_few=3, batch_size=4, warmup=16, n_envs=2, steps=8, updates=2),
)
"""16 environment steps and 2 gradient steps a tick, after one tick of warm-up. 64 episodes are more than it plays."""
STEPS = 96

_heard: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []


def _hear(command: Any, obs: Any, elapsed: Any) -> None:
    _heard.append((np.asarray(command), np.asarray(obs), np.asarray(elapsed)))


@config
class Overhear(Extension):
    """Records what the agent was told with each transition, and hears it in evaluations."""

    def init_each(self, agent, spec, n):
        return jnp.zeros((n, 2))

    def act(self, action, view):
        return action, view.batch.now.command

    def record(self, view):
        return {"command": view.each}, view.each

    def eval_act(self, action, view):
        jax.debug.callback(_hear, view.batch.now.command, view.batch.now.raw, view.elapsed)
        return action, view.each


@pytest.fixture(scope="module", autouse=True)
def registered():
    gymnasium.register("tests/Sign-v0", Sign)
    yield
    del gymnasium.registry["tests/Sign-v0"]


ENVS = {"compiled": DISCRETE, "host": "tests/Sign-v0"}


@functools.cache
def trained(kind: str) -> Any:
    return train(AGENT, ENVS[kind], STEPS, extensions=(Overhear(),))


def episodes_of(run: Any) -> list[dict[str, np.ndarray]]:
    """The whole episodes of a run, in the order in which they ended: their rows, of their length."""
    store = jax.tree.map(np.asarray, run.store)
    found = []
    for slot in sorted(np.flatnonzero(store.whole), key=lambda slot: store.number[slot]):
        rows = store.rows
        arrays = {"obs": rows.now.obs, "next": rows.next.obs, "reward": rows.reward, "action": rows.action}
        arrays |= {"terminated": rows.terminated, "truncated": rows.truncated, "command": rows.extras["command"]}
        arrays |= {"before": store.before}
        found.append({name: x[slot][: store.lengths[slot]] for name, x in arrays.items()} | {"slot": slot})
    return found


@pytest.mark.parametrize("kind", ENVS)
def test_every_kept_episode_is_whole(kind):
    run = trained(kind).run()
    found = episodes_of(run)
    assert len(found) == int(run.store.ended) >= 15
    # of both environments; Gymnasium's observations may be in another order
    sign = 0 if kind == "host" else 1
    for episode in found:
        n = len(episode["reward"])
        c = episode["obs"][0, sign]
        assert n == (3 if c > 0 else 5)
        np.testing.assert_array_equal(episode["obs"][:, 1 - sign], np.arange(n))
        np.testing.assert_array_equal(episode["next"][:, 1 - sign], 1 + np.arange(n))
        np.testing.assert_array_equal(episode["reward"], c * (10 * np.arange(n) + episode["action"]))
        np.testing.assert_array_equal(episode["terminated"], (np.arange(n) == n - 1) & (c > 0))
        np.testing.assert_array_equal(episode["truncated"], (np.arange(n) == n - 1) & (c < 0))
        np.testing.assert_allclose(episode["before"], np.cumsum(episode["reward"]) - episode["reward"])
        np.testing.assert_allclose(run.store.returns[episode["slot"]], episode["reward"].sum())


@pytest.mark.parametrize("kind", ENVS)
def test_a_command_falls_by_each_reward_and_each_step(kind):
    horizons = set()
    for episode in episodes_of(trained(kind).run()):
        asked, horizon = episode["command"][0]
        earned = np.cumsum(episode["reward"]) - episode["reward"]
        np.testing.assert_allclose(episode["command"][:, 0], asked - earned, rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(episode["command"][:, 1], np.maximum(horizon - np.arange(len(earned)), 1.0))
        horizons.add(float(horizon))
    assert len(horizons) > 1


@pytest.mark.parametrize("kind", ENVS)
def test_episodes_are_asked_for_what_the_best_ones_before_the_tick_earned(kind):
    """The tick of an episode's start is not kept; but every goal that there may have been follows from the episodes."""
    run = trained(kind).run()
    found = episodes_of(run)
    goals = [(0.0, 0.0, 1.0)]
    for n in range(1, len(found) + 1):
        top = sorted(found[:n], key=lambda e: (e["reward"].sum(),))[-3:]
        returns = [e["reward"].sum() for e in top]
        goals.append((np.mean(returns), np.mean(returns) + np.std(returns), np.mean([len(e["reward"]) for e in top])))
    for i, episode in enumerate(found):
        asked, horizon = episode["command"][0]
        fits = [low - 1e-3 <= asked <= high + 1e-3 and abs(horizon - h) < 1e-4 for low, high, h in goals[: i + 1]]
        assert any(fits), (i, asked, horizon)
    np.testing.assert_allclose(jax.tree.leaves(run.commands.goal), goals[-1], rtol=1e-5)


@pytest.mark.parametrize("kind", ENVS)
def test_an_evaluation_asks_for_the_mean_of_the_best_and_counts_down(kind):
    result = trained(kind)
    jax.effects_barrier()
    _heard.clear()
    outcome = result.evaluate(6)
    settle(lambda: len(_heard), 5)
    goal, earned = result.run().commands.goal, np.zeros(6)
    heard = sorted(_heard, key=lambda x: x[2][0])
    assert [x[2][0] for x in heard] == [0, 1, 2, 3, 4] and not np.array_equal(outcome.returns, np.zeros(6))
    for t, (command, obs, _) in enumerate(heard):
        alive = t < outcome.lengths[0]
        np.testing.assert_allclose(command[alive, 1], max(float(goal.horizon) - t, 1.0), rtol=1e-6)
        np.testing.assert_allclose(command[alive, 0], float(goal.low) - earned[alive], rtol=1e-5, atol=1e-3)
        # the reward of the step: what the action was is told by none, but a whole return tells it in the end
        sign = obs[:, 0] if kind == "host" else obs[:, 1]
        if t + 1 < len(heard):
            paid = heard[t][0][:, 0] - heard[t + 1][0][:, 0]
            assert (np.isin(np.round(sign * paid - 10 * t, 2), (0.0, 1.0)) | (t + 1 >= outcome.lengths[0])).all()
            earned += np.where(t < outcome.lengths[0], paid, 0.0)


def test_a_command_is_drawn_where_an_episode_starts_alone():
    goal = Goal(jnp.float32(4.0), jnp.float32(7.0), jnp.float32(5.0))
    now = Commands(goal, jnp.full((3, 2), -1.0))
    after = commands.renewed(now, jnp.array([0.0, 2.0, 0.0]), jax.random.key(0)).first
    assert after[1].tolist() == [-1.0, -1.0]
    assert (after[[0, 2], 1] == 5.0).all() and len(set(after[:, 0].tolist())) == 3
    assert ((after[[0, 2], 0] >= 4.0) & (after[[0, 2], 0] < 7.0)).all()


def test_normalized_rewards_scale_what_is_asked_for_and_nothing_is_clipped():
    result = train(AGENT, DISCRETE, STEPS, extensions=(Overhear(),), normalize_rewards=True)
    scale = float(result.run().statistics.reward.std)
    goal = result.run().commands.goal
    jax.effects_barrier()
    _heard.clear()
    result.evaluate(2)
    settle(lambda: len(_heard), 5)
    first = next(command for command, _, elapsed in _heard if elapsed[0] == 0)
    np.testing.assert_allclose(first, [[float(goal.low) / scale, float(goal.horizon)]] * 2, rtol=1e-5)
    paid = [float(e["reward"].sum()) for e in episodes_of(result.run())]
    assert max(np.abs(paid)) > 20.0, "the store's rewards are the environment's"


def test_nothing_is_learned_before_an_episode_has_ended():
    replay = Episodes(capacity=8, last_few=2, batch_size=4, warmup=0, n_envs=2, steps=1, updates=2)
    run = train(UDRL(torso=TORSO, replay=replay), DISCRETE, 4, evaluations=1, episodes=0).run()  # two steps of each
    assert int(run.store.ended) == 0
    assert all(not np.asarray(m).any() for m in jax.tree.leaves(run.agent.behavior.opt))


def test_a_resumed_host_run_keeps_no_half_of_an_episode(tmp_path):
    options = {"extensions": (Overhear(),), "evaluations": 1}
    train(AGENT, "tests/Sign-v0", 48, horizon=96, out=tmp_path / "run", **options)
    open_before = load(tmp_path / "run", extensions=(Overhear(),)).run().store
    assert np.asarray(open_before.lengths)[np.asarray(open_before.open)].sum() == 0  # the host's start again
    result = resume(tmp_path / "run", 96, progress=False, extensions=(Overhear(),))
    for episode in episodes_of(result.run()):
        np.testing.assert_array_equal(episode["obs"][:, 1], np.arange(len(episode["reward"])))
        asked = episode["command"][0, 0]
        np.testing.assert_allclose(episode["command"][-1, 0], asked - episode["before"][-1], rtol=1e-5, atol=1e-4)


def test_an_environment_whose_episodes_are_too_long_is_refused():
    with pytest.raises(ConfigError, match=r"UDRL\(replay.max_length=5\).*up to 500 steps.*Give max_length=500"):
        train(AGENT, "CartPole-v1", 32)


def test_what_depends_on_rewards_is_no_expert():
    with pytest.raises(CapabilityError, match="UDRL can't be an expert"):
        trained("compiled").expert()


def test_a_result_acts_as_at_an_evaluations_start():
    result = train(AGENT, CONTINUOUS, 48)
    obs = np.array([[0.0, 1.0], [2.0, -1.0]], np.float32)
    run = result.run()
    x = commands.told(
        Inputs(jnp.asarray(obs)), run.statistics, commands.to_follow(run.commands, 2), jnp.zeros(2), jnp.zeros(2)
    )
    np.testing.assert_allclose(result.act(obs), AGENT.behavior(run.agent, x).mode(), rtol=1e-4)


def test_a_dataset_is_refused():
    from ajax import Dataset

    zeros = np.zeros((4, 2), np.float32)
    data = Dataset(obs=zeros, action=np.zeros(4, int), reward=np.zeros(4), terminated=np.ones(4, bool), next_obs=zeros)
    with pytest.raises(CapabilityError, match="UDRL learns from what it collects itself"):
        train(AGENT, DISCRETE, 16, dataset=data)
