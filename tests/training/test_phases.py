"""Every phase through every loop, by extensions of known effect on the identity task."""

from __future__ import annotations

import csv
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import load, resume
from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError, CheckpointError, ConfigError
from ajax.core.expert import Expert
from ajax.core.hooks import PHASE_BATCH_KEYS, Extension
from ajax.training import chunk, off_policy, on_policy
from ajax.training.programs import numbers
from ajax.training.run import Task
from tests.training.test_offline import dataset
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_DQN, TINY_PPO, TINY_TD3, assert_same_runs, train

NORMALIZED = {"normalize_observations": True, "normalize_rewards": True}


class Identity(gymnasium.Env):
    """The identity task in Gymnasium: see `IdentityEnv`."""

    observation_space = gymnasium.spaces.Box(np.array([0.0, -1.0], np.float32), np.array([5.0, 1.0], np.float32))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.c, self.t = float(self.np_random.choice([-1.0, 1.0])), 0
        return np.array([0.0, self.c], np.float32), {}

    def step(self, action):
        reward = self.c * (10.0 * self.t + int(action))
        self.t += 1
        obs = np.array([self.t, self.c], np.float32)
        return obs, reward, self.c > 0 and self.t >= 3, self.c < 0 and self.t >= 5, {}


HOST = "gymnasium:tests/Identity-v0"
ENVS = {"compiled": DISCRETE, "host": HOST}


@pytest.fixture(scope="module", autouse=True)
def registered():
    gymnasium.register("tests/Identity-v0", Identity)
    yield
    del gymnasium.registry["tests/Identity-v0"]


@config
class Ones(Extension):
    """Takes action 1, in training and in evaluations."""

    def act(self, action, view):
        assert view.batch.reward is None and view.batch.now.obs.shape == (action.shape[0], 2)
        return jnp.ones_like(action), view.each

    def eval_act(self, action, view):
        return jnp.ones_like(action), view.each


@config
class Swap(Extension):
    """Gives the environment the other action."""

    def execute(self, action, view):
        return 1 - action, view.each


@config
class Remember(Extension):
    """Records t, c and the steps since the episode's start, which it counts by itself."""

    def init_each(self, agent, spec, n):
        return jnp.full(n, 77.0)

    def record(self, view):
        count = jnp.where(view.elapsed == 0, 0.0, view.each + 1)
        return {"seen": view.batch.now.raw, "count": count, "elapsed": view.elapsed}, count


@config
class Compare(Extension):
    """Counts the rows of updates in which what was recorded is not what is seen, and all rows."""

    def init(self, agent, spec, key):
        return jnp.zeros(2)

    def post_update(self, view):
        b = view.batch
        raw, seen = b.now.raw, view.extra("seen")
        wrong = (raw != seen).any(-1) | (view.extra("count") != raw[..., 0]) | (view.extra("elapsed") != raw[..., 0])
        return view.own + jnp.stack([wrong.sum(), jnp.float32(wrong.size)])

    def eval_metrics(self, view):
        return {"wrong": view.own[0], "compared": view.own[1]}


@config
class Bonus(Extension):
    """Adds to every reward, and keeps the target and the reward of the last update."""

    value: float = setting(default=100.0, help="bonus")

    def init(self, agent, spec, key):
        return jnp.zeros(3)

    def reward(self, reward, view):
        return reward + self.value

    def post_update(self, view):
        return jnp.stack([view.target.min(), view.target.max(), view.batch.reward.min()])


@config
class Relabel(Extension):
    """Learns from rows whose reward is 7."""

    def sample(self, batch, view):
        return batch.replace(reward=jnp.full_like(batch.reward, 7.0))

    def init(self, agent, spec, key):
        return jnp.zeros(2)

    def post_update(self, view):
        return jnp.stack([view.batch.reward.min(), view.batch.reward.max()])


@config
class Watch(Extension):
    """Sums up the episodes of an evaluation."""

    rows: int = setting(default=8, low=1, help="steps")

    @property
    def eval_rows(self):
        return self.rows

    def eval_metrics(self, view):
        b = view.batch
        valid = b.extras["valid"]
        return {
            "total": (b.reward * valid).sum() / valid.shape[1],
            "ended": ((b.terminated + b.truncated) * valid).sum(),
            "steps": valid.sum(),
            "drawn": jax.random.uniform(view.key),
        }


class Flip(Expert):
    """Takes 0, 1, 0, ... : its memory is the last action."""

    def init(self):
        return jnp.int32(1)

    def act(self, memory, obs, key):
        return 1 - memory, 1 - memory


@config
class Demonstrated(Extension):
    """Keeps what it is shown before training, zeroes the agent, and is evaluated."""

    expert: Expert = setting(default=Flip(), help="expert")

    def demonstrator(self):
        return self.expert

    @property
    def pretrain_rows(self):
        return 6

    def rival(self):
        return self.expert

    def init(self, agent, spec, key):
        return jnp.zeros((6, 2, 5))

    def pretrain(self, view):
        b = view.batch
        rows = jnp.concatenate([b.now.raw, b.next.raw, b.action[..., None].astype(jnp.float32)], -1)
        return jax.tree.map(jnp.zeros_like, view.state), rows


def stored(result) -> Any:
    """The rows of the replay that were written."""
    store = result.run().store
    return jax.tree.map(lambda x: np.asarray(x)[: int(store.size)], store.rows)


@pytest.fixture(scope="module", params=ENVS.values(), ids=ENVS)
def run(request):
    """Trains for some steps, always by the same programs: in warm-up for the first 8, learning after."""

    def run(steps: int = 16, **options: Any) -> Any:
        stack = (Demonstrated(), Ones(), Remember(), Compare(), Watch())
        options = {"extensions": stack, "evaluations": 1, "episodes": 4, "normalize_observations": True} | options
        return train(TINY_DQN, request.param, steps, **options)

    return run


def test_act_is_what_the_agent_did_and_eval_act_what_is_evaluated(run):
    result = run()
    rows = stored(result)
    t, c = np.moveaxis(rows.now.obs, -1, 0)
    np.testing.assert_array_equal(rows.action, 1)
    np.testing.assert_array_equal(rows.reward, c * (10 * t + 1))
    assert set(result.evaluate(4).returns[0]) <= {33.0, -105.0}


def test_an_evaluation_shows_its_episodes(run):
    result = run(seeds=2)
    outcome = result.evaluate(4)
    np.testing.assert_allclose(outcome.metrics["total"], outcome.returns.mean(1), rtol=1e-6)
    np.testing.assert_array_equal(outcome.metrics["ended"], 4)
    np.testing.assert_array_equal(outcome.metrics["steps"], outcome.lengths.sum(1))
    assert outcome.metrics["drawn"][0] != outcome.metrics["drawn"][1]
    assert set(result.metrics) >= {"evaluation/total", "evaluation/wrong", "evaluation/expert_return"}


def test_a_rivals_return_has_its_closed_form(run):
    """It takes 0, 1, 0, ...: an episode returns 31 or -102."""
    shares = (run(seeds=4).evaluate(4).metrics["expert_return"] + 102) / 133 * 4
    np.testing.assert_allclose(shares, np.round(shares), atol=1e-4)
    assert (shares >= 0).all() and (shares <= 4).all() and len(set(np.round(shares))) > 1


def test_before_training_an_extension_is_shown_its_expert_and_may_change_the_agent(run):
    result = run(8)
    rows = np.asarray(result.run().own[0])
    t, c, next_t, next_c, action = np.moveaxis(rows, -1, 0)
    np.testing.assert_array_equal(action, t % 2)  # its memory starts again with every episode
    np.testing.assert_array_equal(next_t, t + 1)
    np.testing.assert_array_equal(c, next_c)
    np.testing.assert_array_equal(t[1:], np.where((next_t == 3) & (c > 0) | (next_t == 5), 0, next_t)[:-1])
    assert all(not np.asarray(leaf).any() for leaf in jax.tree.leaves(result.run().agent))
    assert result.run().statistics.obs.count == 12 + 8  # the expert's steps are seen by normalization
    assert any(np.asarray(leaf).any() for leaf in jax.tree.leaves(run(16).run().agent))  # and once alone


def test_what_is_recorded_is_found_again_in_updates_unnormalized(run):
    result = run(48)
    wrong, compared = result.run().own[3]
    assert wrong == 0 and compared == 20 * 4
    np.testing.assert_array_equal(result.metrics["evaluation/compared"][:, -1], compared)


@pytest.mark.parametrize("env", ENVS.values(), ids=ENVS)
def test_execute_is_what_the_environment_is_given(env):
    result = train(TINY_DQN, env, 16, extensions=(Swap(),), evaluations=1)
    rows = stored(result)
    t, c = np.moveaxis(rows.now.obs, -1, 0)
    np.testing.assert_array_equal(rows.reward, c * (10 * t + 1 - rows.action))
    assert set(np.unique(rows.action)) == {0, 1}
    greedy = {c: 1 - result.act(np.array([[t, c] for t in range(5)], np.float32)) for c in (1.0, -1.0)}
    expected = {3.0: 30.0 + greedy[1.0][:3].sum(), 5.0: -100.0 - greedy[-1.0].sum()}
    outcome = result.evaluate(2)
    np.testing.assert_array_equal(outcome.returns[0], [expected[length] for length in outcome.lengths[0]])


def test_rewards_are_folded_after_their_normalization_and_stored_as_they_came():
    agent = TINY_DQN.__class__(torso=TINY_DQN.torso, replay=TINY_DQN.replay, gamma=0.0)
    result = train(agent, DISCRETE, 16, extensions=(Bonus(),), **NORMALIZED)
    low, high, reward = result.run().own[0]
    assert 90 <= low <= high <= 110 and reward == low
    rows = stored(result)
    np.testing.assert_array_equal(rows.reward, rows.now.obs[..., 1] * (10 * rows.now.obs[..., 0] + rows.action))


def test_on_policy_rewards_are_folded_before_the_advantages_and_what_is_recorded_is_dealt_with_its_row():
    agent = TINY_PPO.__class__(torso=TINY_PPO.torso, rollout=TINY_PPO.rollout, gamma=0.0)
    run = train(agent, DISCRETE, 16, extensions=(Bonus(), Remember(), Compare()), **NORMALIZED).run()
    low, high, reward = run.own[0]
    assert 90 <= low <= high <= 110 and np.isclose(reward, low, rtol=1e-5)
    np.testing.assert_array_equal(run.own[2], [0, 16])


def test_samples_may_be_replaced_online_and_offline():
    online = train(TINY_DQN, DISCRETE, 16, extensions=(Relabel(),)).run().own[0]
    np.testing.assert_allclose(online, [7.0, 7.0 + 0.99 * 7.0])  # windows of two steps, or of an episode's last
    offline = train(TINY_TD3, CONTINUOUS, 8, dataset=dataset(), extensions=(Relabel(),))
    np.testing.assert_array_equal(offline.run().own[0], 7.0)


def test_an_evaluation_shows_no_more_rows_than_asked_for_and_is_written_down(tmp_path):
    result = train(TINY_DQN, DISCRETE, 16, extensions=(Watch(rows=2),), out=tmp_path / "run")
    assert (result.metrics["evaluation/steps"] == 4).all() and (result.metrics["evaluation/ended"] == 0).all()
    with open(tmp_path / "run" / "progress.csv") as file:
        rows = list(csv.DictReader(file))
    written = [float(row["evaluation/total"]) for row in rows]
    np.testing.assert_array_equal(written, result.metrics["evaluation/total"][0])


def test_the_dataset_is_shown_where_nobody_demonstrates():
    @config
    class Shown(Extension):
        """Keeps the actions that it is shown."""

        def init(self, agent, spec, key):
            return jnp.zeros((64, 1, 1))

        def pretrain(self, view):
            return view.state, view.batch.action

    data = dataset()
    result = train(TINY_TD3, CONTINUOUS, 4, dataset=data, extensions=(Shown(),))
    np.testing.assert_array_equal(result.run().own[0][:, 0], np.float32(data.action))


STACK = (Demonstrated(), Remember(), Compare(), Bonus(value=1.0), Watch())


@pytest.mark.parametrize("agent, stop", [(TINY_DQN, 8), (TINY_DQN, 24), (TINY_PPO, 16)], ids=["8", "24", "PPO"])
def test_a_split_run_with_extensions_is_the_whole_run(agent, stop, tmp_path):
    options = {"extensions": STACK, **NORMALIZED}
    whole = train(agent, DISCRETE, 32, **options)
    train(agent, DISCRETE, stop, horizon=32, out=tmp_path / "run", **options)
    split = resume(tmp_path / "run", 32, env=DISCRETE, extensions=STACK, progress=False)
    assert_same_runs(whole, split)
    np.testing.assert_equal(whole.metrics["evaluation/total"][:, -1], split.metrics["evaluation/total"][:, -1])


def test_a_stack_that_holds_objects_is_asked_for_again(tmp_path):
    train(TINY_DQN, DISCRETE, 8, extensions=(Demonstrated(), Bonus(value=2.0)), out=tmp_path / "run")
    with pytest.raises(CheckpointError, match=r"Flip is an object made in Python.* give it again: extensions"):
        load(tmp_path / "run", env=DISCRETE)
    with pytest.raises(CheckpointError, match=r"\['Bonus'\] are not those that the run was trained with, \['Dem"):
        load(tmp_path / "run", env=DISCRETE, extensions=(Bonus(),))
    again = load(tmp_path / "run", env=DISCRETE, extensions=(Demonstrated(), Bonus(value=2.0)))
    assert again.session.plan.extensions == (Demonstrated(), Bonus(value=2.0))


def test_a_stack_of_numbers_is_found_again(tmp_path):
    train(TINY_DQN, DISCRETE, 8, extensions=(Bonus(value=2.0), Watch(rows=3)), out=tmp_path / "run")
    assert load(tmp_path / "run", env=DISCRETE).session.plan.extensions == (Bonus(value=2.0), Watch(rows=3))


def test_a_stack_that_fails_leaves_the_folder_free(tmp_path):
    with pytest.raises(ConfigError, match="a name that is taken"):
        train(TINY_DQN, DISCRETE, 16, extensions=(Watch(), Watch()), out=tmp_path / "run")
    train(TINY_DQN, DISCRETE, 8, out=tmp_path / "run")


def test_two_extensions_that_give_one_name_are_refused():
    with pytest.raises(
        ConfigError, match=r"Watch\.eval_metrics gives drawn, ended, steps, total, a name that is taken"
    ):
        train(TINY_DQN, DISCRETE, 16, extensions=(Watch(), Watch()))
    with pytest.raises(ConfigError, match=r"Remember\.record gives count, elapsed, seen, a name that is taken"):
        train(TINY_DQN, DISCRETE, 16, extensions=(Remember(), Remember()))


def test_what_nobody_recorded_is_named():
    with pytest.raises(
        CapabilityError, match=r"the batch has no 'seen': nothing recorded it\. It holds nothing beside"
    ):
        train(TINY_DQN, DISCRETE, 16, extensions=(Compare(),))


@pytest.mark.parametrize("stack", [(Watch(), Watch()), (Remember(), Remember()), (Compare(),)])
def test_around_gymnasium_a_stack_is_refused_before_a_step_too(stack, monkeypatch):
    monkeypatch.delattr(Identity, "step")
    with pytest.raises((CapabilityError, ConfigError), match=r"a name that is taken|nothing recorded"):
        train(TINY_DQN, HOST, 16, extensions=stack)


def test_phases_that_a_loop_does_not_fold_are_refused():
    with pytest.raises(
        CapabilityError, match=r"Ones works in act, which PPO does not fold\. PPO folds pretrain, execute"
    ):
        train(TINY_PPO, DISCRETE, extensions=(Ones(),))
    with pytest.raises(CapabilityError, match="Remember works in record, which TD3 does not fold"):
        train(TINY_TD3, CONTINUOUS, 8, dataset=dataset(), extensions=(Remember(),))


def test_every_phase_says_what_its_batch_holds():
    assert set(PHASE_BATCH_KEYS) == {n for n in vars(Extension) if n in PHASE_BATCH_KEYS}


@pytest.mark.parametrize("agent, loop", [(TINY_DQN, off_policy), (TINY_PPO, on_policy)], ids=["DQN", "PPO"])
def test_an_empty_stack_costs_nothing(agent, loop, monkeypatch):
    """The compiled program is that of an agent whose hooks are constants, and of a stack without phases."""

    @config
    class Idle(Extension):
        """Works in no phase."""

    class Nothing:
        def on_target(self, target, state, batch):
            return jax.lax.stop_gradient(target)

        def critic_loss(self, *_):
            return 0.0

        actor_loss = critic_loss

        def post_update(self, state, batch):
            return ()

        def sample(self, state, batch):
            return batch

        reward = sample

    def program(*extensions: Extension) -> str:
        task = numbers(Task(DISCRETE, 2, extensions=extensions))
        run, _ = jax.eval_shape(chunk.begin, numbers(agent), task, jax.random.key(0))
        args = numbers(agent), task, run, jnp.int32(0), jnp.int32(1), jnp.float32(8)
        return jax.jit(lambda *args: chunk.chunk(*args, learn=True)).lower(*args).as_text()

    empty, idle = program(), program(Idle())
    monkeypatch.setattr(loop, "hooks_of", lambda *_: Nothing())
    assert empty == program() == idle


def test_each_extension_is_shown_as_many_rows_as_it_asks_for():
    @config
    class Rows(Extension):
        """Counts what it is shown."""

        rows: int = setting(default=0, low=0, help="steps")

        @property
        def eval_rows(self):
            return self.rows

        def eval_metrics(self, view):
            return {f"shown_{self.rows}": 0 if view.batch is None else len(view.batch.reward)}

    stack = tuple(Rows(rows=n) for n in (2, 5, 0))
    metrics = train(TINY_DQN, DISCRETE, steps=8, extensions=stack).metrics
    assert [int(metrics[f"evaluation/shown_{n}"][0, -1]) for n in (2, 5, 0)] == [2, 5, 0]
