"""DAgger: the loss, who acts when, and what is kept of every state that was come to."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax import DAgger, Linear, Replay, Torso, load, resume
from ajax.core.errors import CapabilityError, CheckpointError, ConfigError
from ajax.core.expert import Expert, Stateless
from ajax.core.spaces import Discrete
from tests.agents.build import (
    KEY,
    LINEAR,
    SMALL,
    clock,
    first,
    random_batch,
    spec,
    states,
    step,
    transitions,
    with_table,
)
from tests.agents.contract import HIGH, LOW, Witness
from tests.training.tiny import assert_same_runs

SPACES = {"discrete": spec(3, Discrete(3)), "continuous": spec(3, 2)}


class Marking(Expert):
    """Does what tells the step of the episode that it remembers, and the expert's hand: -1.25 and an eighth a step.

    Attributes:
        kind: of action; discrete ones are always 1.
    """

    kind: str = struct.field(pytree_node=False)

    def init(self) -> jax.Array:
        """The first step."""
        return jnp.float32(0)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The mark of the step."""
        if self.kind == "discrete":
            return jnp.int32(1), memory + 1.0
        return (0.125 * memory - 1.25).reshape(1), memory + 1.0


REPLAY = Replay(capacity=128, batch_size=8, warmup=16, n_envs=2)
RUN = {"episodes": 0, "evaluations": 1, "progress": False}


def agent(kind: str, **values: Any) -> DAgger:
    """A small DAgger whose policy starts far from the marks."""
    return DAgger(**{"expert": Marking(kind), "learning_rate": 1e-6, "torso": SMALL, "replay": REPLAY, **values})


def kept(result: Any) -> tuple[np.ndarray, ...]:
    """Of the dataset: time and first observation's time, the action taken, the expert's; each (rows, n_envs)."""
    store = result.run().store
    rows, n = jax.tree.map(np.asarray, store.rows), int(store.size)
    action, label = (x.reshape(len(x), 2, -1)[:n, :, 0] for x in (rows.action, rows.extras["label"]))
    return rows.now.obs[:n, :, 0], action, label


def test_the_loss_of_discrete_actions_is_the_cross_entropy_with_the_experts():
    agent = DAgger(torso=LINEAR)
    logits = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    s = first(agent, SPACES["discrete"])
    s = s.replace(actor=with_table(s.actor, logits))
    b = transitions(3, [0, 1], jnp.array([0, 0]), [0.0, 0.0], [1, 2], [1, 0]).replace(
        extras={"label": jnp.array([2, 1])}
    )
    _, metrics, _ = step(agent, s, b, clock(), KEY)
    log_prob = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    assert float(metrics["actor_loss"]) == pytest.approx(-(log_prob[0, 2] + log_prob[1, 1]) / 2, rel=1e-5)


def test_the_loss_in_a_box_is_the_squared_distance_from_the_experts():
    agent = DAgger(torso=LINEAR)
    s = first(agent, SPACES["continuous"])
    s = s.replace(actor=with_table(s.actor, jnp.array([[0.5, -0.5], [0.0, 0.0], [0.0, 0.0]])))
    b = transitions(3, [0, 1], jnp.zeros((2, 2)), [0.0, 0.0], [1, 2], [0, 1])
    b = b.replace(extras={"label": jnp.array([[1.0, 0.0], [0.25, 0.0]])})
    _, metrics, _ = step(agent, s, b, clock(), KEY)
    own = np.tanh(0.5)
    assert float(metrics["actor_loss"]) == pytest.approx(((1 - own) ** 2 + own**2 + 0.0625) / 2, rel=1e-5)


@pytest.mark.parametrize("kind", SPACES)
def test_neither_rewards_nor_actions_nor_ends_matter_to_what_is_learned(kind):
    agent, space = DAgger(torso=SMALL), SPACES[kind]
    s, b = first(agent, space), random_batch(space)
    other = b.replace(reward=b.reward + 1.0, action=b.action[::-1], terminated=1.0 - b.terminated, next=b.now)
    one, two = (step(agent, s, batch, clock(), KEY)[0] for batch in (b, other))
    jax.tree.map(np.testing.assert_array_equal, one.actor.params, two.actor.params)


@pytest.mark.parametrize("kind", SPACES)
def test_the_policy_acts_by_its_best_action(kind):
    agent = DAgger(torso=SMALL)
    s, x = first(agent, SPACES[kind]), states([0, 1], 3)
    pi = agent.pi(s, x)
    for explore in (True, False):
        action, extras = agent.act(s, x, KEY, clock(), explore)
        np.testing.assert_array_equal(action, pi if kind == "continuous" else pi.mode())
        assert extras == {}


def test_the_first_iteration_is_the_experts_and_the_others_the_policys():
    t, action, label = kept(agent("continuous").train(Witness("continuous"), 64, **RUN))
    mark = 2.0 * (0.125 * t - 1.25 - LOW) / (HIGH - LOW) - 1.0
    np.testing.assert_allclose(label, mark, rtol=1e-5)  # every state, whoever acted, by the memory of its episode
    own = np.abs(action - label) > 1e-6
    assert not own[:8].any() and own[8:].all()  # a warm-up of 16 steps by two environments


def test_labels_of_discrete_actions_are_the_experts_too():
    _, action, label = kept(agent("discrete").train(Witness("discrete"), 64, **RUN))
    assert (label == 1).all() and (action[:8] == 1).all() and label.dtype == np.int32


def test_the_mixture_tosses_a_coin_for_every_environment_at_every_step():
    replay = dataclasses.replace(REPLAY, capacity=512)
    result = agent("continuous", beta=0.25, replay=replay).train(Witness("continuous"), 256, **RUN)
    _, action, label = kept(result)
    expert = np.abs(action - label)[8:] < 1e-6
    n = expert.size
    assert abs(expert.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / n)
    both = (expert[:, 0] & expert[:, 1]).mean()
    assert both < 0.18  # 1/16 where they are independent, 1/4 with one coin
    changes = (expert[1:] != expert[:-1]).mean()
    assert 0.2 < changes < 0.55  # 3/8


def test_beta_follows_a_schedule_of_the_run():
    result = agent("continuous", beta=Linear(start=1.0, end=0.0, fraction=0.5)).train(Witness("continuous"), 128, **RUN)
    _, action, label = kept(result)
    expert = np.abs(action - label) < 1e-6
    assert expert[:12].mean() > 0.7 and not expert[32:].any()


def test_a_sweep_mixes_each_lane_by_its_own_beta():
    result = agent("continuous").sweep(beta=[0.0, 1.0]).train(Witness("continuous"), 48, **RUN)
    shares = []
    for lane in range(2):
        rows, n = result.run(lane).store.rows, int(result.run(lane).store.size)
        shares.append(float((np.abs(np.asarray(rows.action - rows.extras["label"]))[8:n] < 1e-6).mean()))
    assert shares == [0.0, 1.0]


def test_what_can_not_be_is_refused():
    with pytest.raises(ConfigError, match=r"DAgger\(expert=None\): whom should it imitate"):
        DAgger().train(Witness("discrete"), 2_000, **RUN)
    from tests.extensions.builders import data

    env = Witness("continuous")
    with pytest.raises(CapabilityError, match="works in act, record, which DAgger does not fold"):
        agent("continuous").train(env, 16, dataset=data(env), **RUN)
    with pytest.raises(CapabilityError, match="DAgger has no memory"):
        from ajax import GRU

        agent("continuous", torso=Torso(memory=GRU())).train(env, 64, **RUN)


def test_a_run_is_resumed_with_the_expert_given_again(tmp_path):
    env, made = Witness("continuous"), agent("continuous", beta=0.5)
    whole = made.train(env, 64, **RUN)
    made.train(env, 32, horizon=64, out=tmp_path / "run", **RUN)
    with pytest.raises(CheckpointError, match=r"DAgger holds expert, made in Python.* agent=DAgger\(...\)"):
        load(tmp_path / "run", env=env)
    with pytest.raises(CheckpointError, match="give the agent again"):
        from ajax import SAC

        resume(tmp_path / "run", 64, env=env, agent=SAC(), progress=False)
    again = DAgger(expert=Marking("continuous"))  # the other fields are those of the folder
    assert_same_runs(whole, resume(tmp_path / "run", 64, env=env, agent=again, progress=False))


@pytest.mark.slow
def test_it_balances_as_its_expert_does():
    expert = Stateless(function=lambda obs: (obs[2] + 0.5 * obs[3] + 0.05 * obs[1] > 0).astype(int))
    result = DAgger(expert=expert, learning_rate=1e-3).train("CartPole-v1", 4_000, evaluations=1, progress=False)
    assert result.returns[0, -1] > 450
