"""Memory in a run: what is stored and restored, sequences, evaluations, the host loop, and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import DQN, GRU, PPO, TD3, CrossQ, Replay, Rollout, Torso, resume
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.records import Batch, Inputs
from ajax.training import memory
from tests.agents.build import clock
from tests.environments.identity_env import IdentityEnv
from tests.training.recurrent import LOOPS, assert_remembered, recurrent
from tests.training.test_host import registered as registered
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_DQN, assert_same_history, assert_same_runs, leaves, train


def sequences(length: int, n: int) -> Batch:
    """Rows whose numbers say where they are: 10 t + s, and the next observation 10 t + s + 0.5."""
    at = 10.0 * jnp.arange(length)[:, None] + jnp.arange(n)[None]
    carry = {"q_encoder": at[..., None] + 0.25}
    now, following = Inputs(at[..., None], None, 0.0 * at, carry), Inputs(at[..., None] + 0.5)
    return Batch(now, at, -at, 0.0 * at, 0.0 * at, following, {"log_prob": 2.0 * at})


def test_rows_of_a_sequence_come_after_its_burn_in_each_with_its_past():
    agent, _ = recurrent("DQN", burn_in=1)
    b = memory.unrolled(agent, sequences(3, 2))
    rows = [10.0, 11.0, 20.0, 21.0]
    assert b.action.tolist() == b.now.obs[:, 0].tolist() == rows
    assert b.next.obs[:, 0].tolist() == [row + 0.5 for row in rows]
    assert b.reward.tolist() == [-row for row in rows] and b.extras["log_prob"].tolist() == [2 * row for row in rows]
    assert b.now.before.obs[..., 0].tolist() == [[0, 1], [10, 11]]  # the last row of `now` follows these
    assert b.next.before.obs[..., 0].tolist() == [[0, 1], [10, 11], [20, 21]]  # and what it led to follows it as well
    assert b.now.carry["q_encoder"][:, 0].tolist() == b.next.carry["q_encoder"][:, 0].tolist() == [0.25, 1.25]


def test_a_rollout_is_cut_into_sequences_that_stay_whole():
    agent = PPO(torso=Torso(memory=GRU(length=2)), rollout=Rollout(n_envs=2, n_steps=6, n_minibatches=3))
    pieces, n = memory.cut(agent, sequences(6, 2))
    assert n == 6 and pieces.action.shape == (2, 6)
    together = {tuple(piece) for piece in np.asarray(pieces.action).T.tolist()}
    assert together == {(10.0 * t + s, 10.0 * t + 10.0 + s) for t in (0, 2, 4) for s in (0, 1)}
    b = memory.take(agent, pieces, jnp.array([3, 0]))
    first = pieces.action[0, jnp.array([3, 0])]
    assert b.action.tolist() == [*first.tolist(), *(first + 10.0).tolist()]
    assert b.now.carry["q_encoder"][:, 0].tolist() == (first + 0.25).tolist()


def test_without_a_memory_nothing_is_carried_stored_or_changed():
    run = train(TINY_DQN, DISCRETE, 16).run()
    assert run.carry == {} and run.store.rows.now.carry is None and run.store.rows.now.reset is None
    b = sequences(3, 2)
    assert memory.unrolled(TINY_DQN, b) is b
    assert jax.tree.leaves(memory.recall(run, Inputs(run.obs)).replace(obs=())) == []


@pytest.fixture(scope="module")
def warm():
    """A run that only collected."""
    agent, env = recurrent("DQN", "GRU")
    run = train(agent, env, 32).run()
    return agent, run, jax.tree.map(lambda x: np.asarray(x)[:16], run.store.rows)


def test_each_stored_carry_is_what_was_remembered_before_the_row(warm):
    agent, run, rows = warm
    np.testing.assert_array_equal(rows.now.reset, rows.now.obs[..., 0] == 0)
    after = jax.tree.map(lambda stored, last: np.concatenate([stored[1:], last[None]]), rows.now.carry, run.carry)
    assert_remembered(agent, run.agent, rows, after)
    assert rows.next.carry is None and rows.next.reset is None


def test_an_evaluation_remembers_each_episode_from_its_start(warm):
    agent, run, _ = warm
    q = run.agent.q
    state = run.agent.replace(q=q.at(jax.tree.map(lambda x: 3.0 * x, q.params)))  # so that the carry decides
    lanes = train(agent, DISCRETE, 32).session.lanes
    lanes.runs[0] = run.replace(agent=state)
    measured = lanes.evaluate(0, 16)
    expected = {}
    for c, length in ((1.0, 3), (-1.0, 5)):
        total, carry = 0.0, None
        for t in range(length):
            x = Inputs(jnp.array([[t, c]], jnp.float32), None, None, carry)
            action, _ = agent.act(state, x, jax.random.key(0), clock(), False)
            total, carry = total + c * (10.0 * t + float(action[0])), memory.remember(agent, state, x)
        expected[length] = total
    assert set(measured.lengths[0].tolist()) == {3.0, 5.0}
    np.testing.assert_allclose(measured.returns[0], [expected[int(n)] for n in measured.lengths[0]])


@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_a_split_run_with_a_memory_is_the_whole_run(name, tmp_path):
    agent, env = recurrent(name, "GRU" if name == "DQN" else "LSTM")
    whole = train(agent, env, 48)
    train(agent, env, 40, horizon=48, out=tmp_path / "run")
    split = resume(tmp_path / "run", 48, env=env, progress=False)
    assert_same_runs(whole, split)
    assert whole.returns[:, -1].tolist() == split.returns[:, -1].tolist()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["LSTM", "Transformer", "Mamba"])
@pytest.mark.parametrize("name", ["ASAC", "DQN", "PPO", "SAC", "TD3", "REDQ"])
def test_every_agent_trains_with_every_memory_and_every_network_moves(name, kind):
    agent, env = recurrent(name, kind, burn_in=int(name != "PPO"))
    often = {"DQN": {"target_period": 5}, "REDQ": {"policy_delay": 5}}  # of the 16 updates or so
    agent = dataclasses.replace(agent, **often.get(name, {}))
    short, long = (leaves(train(agent, env, n, horizon=64, normalize_observations=True)) for n in (40, 64))
    cells = [path for path in short if "cell" in path and ".opt" not in path]
    # a step of Adam that is less than a weight's last digit moves nothing, but leaves its moment
    moments = {path for path in long if "cell" in path and ".mu[" in path and long[path].any()}
    learned = {path.partition(".opt")[0] + ".params" + path.partition(".mu")[2] for path in moments}
    assert cells and learned and all(np.isfinite(long[path]).all() for path in cells)
    assert {path for path in cells if np.array_equal(short[path], long[path])} <= learned | {
        path
        for path in cells
        if "['key']['bias']" in path  # softmax does not see a shift of every key
    }


def test_a_gymnasium_run_remembers_alike_and_a_resumed_one_begins_anew(tmp_path):
    agent, _ = recurrent("DQN", "GRU")
    result = train(agent, "tests/Sign-v0", 32, out=tmp_path / "run")
    run = result.run()
    rows = jax.tree.map(lambda x: np.asarray(x)[:16], run.store.rows)
    after = jax.tree.map(lambda stored, last: np.concatenate([stored[1:], last[None]]), rows.now.carry, run.carry)
    assert_remembered(agent, run.agent, rows, after)
    resumed = resume(tmp_path / "run", 34, progress=False).run()
    assert np.asarray(resumed.store.rows.now.reset)[16].tolist() == [1.0, 1.0]
    jax.tree.map(np.testing.assert_array_equal, jax.tree.map(lambda x: x[16], resumed.store.rows.now.carry), run.carry)


def test_a_gymnasium_run_with_a_memory_trains_on_rollouts():
    agent, _ = recurrent("PPO", "LSTM")
    one, other = (train(agent, "tests/Sign-v0", 32) for _ in range(2))
    assert_same_runs(one, other)
    assert_same_history(one, other)


def with_gru(agent: Any, **fields: int) -> Any:
    return dataclasses.replace(agent, torso=Torso(widths=(8,), memory=GRU(size=4, **fields)))


REPLAY = Replay(capacity=64, batch_size=8, warmup=8, n_envs=4)

REFUSED = {
    "batch and sequence": (
        lambda: train(with_gru(DQN(replay=REPLAY), length=3), DISCRETE),
        ConfigError,
        r"DQN\(torso.memory=GRU\(length=3, burn_in=0\), replay.batch_size=8\): a batch is made of whole sequences."
        " Give a multiple of 3 as batch_size",
    ),
    "window longer than the buffer": (
        lambda: train(with_gru(TD3(replay=REPLAY), length=8, burn_in=9), CONTINUOUS),
        ConfigError,
        "each of the 4 environments keeps 16 transitions, fewer than one sequence with its burn-in, 17. Raise capacity",
    ),
    "sequence and rollout": (
        lambda: train(with_gru(PPO(rollout=LOOPS["on_policy"]["rollout"]), length=3), DISCRETE),
        ConfigError,
        r"rollout.n_steps=4\): rollouts are cut into sequences of length 3, which must divide n_steps",
    ),
    "minibatches": (
        lambda: train(with_gru(PPO(rollout=Rollout(n_envs=2, n_steps=8, n_minibatches=4)), length=8), DISCRETE),
        ConfigError,
        "a rollout of 2 environments has 2. Give a divisor of 2 as n_minibatches",
    ),
    "burn-in of a rollout": (
        lambda: train(with_gru(PPO(rollout=LOOPS["on_policy"]["rollout"]), length=2, burn_in=1), DISCRETE),
        ConfigError,
        "burn_in is for replay; in a rollout a memory goes on from where it stood",
    ),
    "an agent without": (
        lambda: train(CrossQ(critic_torso=Torso(memory=GRU())), CONTINUOUS),
        CapabilityError,
        "CrossQ has no memory: leave it out of its torsos. APG, ASAC, DQN, IQL, PPO, REDQ, SAC and TD3 can have one",
    ),
    "several steps": (
        lambda: train(with_gru(DQN(n_step=3, replay=REPLAY), length=4), DISCRETE),
        CapabilityError,
        "targets of several steps and a memory don't go together. Set n_step=1",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_fit_is_refused_before_anything_is_compiled(name):
    ask, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        ask()


def test_a_dataset_is_refused():
    from ajax import Dataset

    zeros = np.zeros((4, 2), np.float32)
    dataset = Dataset(obs=zeros, action=zeros[:, :1], reward=zeros[:, 0], terminated=zeros[:, 0] > 0, next_obs=zeros)
    with pytest.raises(CapabilityError, match="a dataset is learned from without a memory"):
        train(with_gru(TD3(replay=REPLAY), length=4), IdentityEnv(continuous=True), dataset=dataset)
