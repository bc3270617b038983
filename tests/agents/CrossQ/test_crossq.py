"""CrossQ on hand-built batches: the joint pass, its soft target, which statistics are used where, the delay."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.crossq import CrossQ, State
from ajax.core.errors import SpaceError
from ajax.core.keys import stream
from ajax.core.records import Batch
from ajax.core.spaces import Discrete
from tests.agents.build import (
    KEY,
    SMALL,
    clock,
    equal,
    first,
    gradient,
    random_batch,
    spec,
    states,
    step,
    steps_taken,
    target,
)

SPEC = spec(3, 2)
AGENT = CrossQ(gamma=0.9, torso=SMALL, critic_torso=SMALL, alpha=0.5, learning_rate=0.01, actor_learning_rate=0.01)
DUE = AGENT.policy_delay - 1
BATCH = random_batch(SPEC)


def state(agent: CrossQ = AGENT) -> State:
    """A state whose running statistics are those of other data than `BATCH`."""
    s = first(agent, SPEC)
    for update in range(2):
        s, _, _ = step(agent, s, random_batch(SPEC, seed=1), clock(update), KEY)
    return s


def joint(s: State, b: Batch) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Q(s, a), Q(s', a') of one pass over both, each (2, batch), and log pi(a'|s')."""
    action, log_prob = s.actor(b.next).sample_and_log_prob(stream(KEY, "next_action"))
    both = jax.tree.map(lambda *rows: jnp.concatenate(rows), b.now, b.next)
    values, _ = s.critic.train(both, jnp.concatenate([b.action, action]))
    return np.asarray(values[:, :32]), np.asarray(values[:, 32:]), np.asarray(log_prob)


@pytest.mark.parametrize("ended", ["terminated", "truncated"])
def test_the_target_is_the_joint_passs_and_termination_alone_cuts_it(ended):
    s, flags = state(), (np.arange(32) % 3 == 0).astype(np.float32)
    b = BATCH.replace(terminated=np.zeros_like(flags), truncated=np.zeros_like(flags)).replace(**{ended: flags})
    _, next_q, log_prob = joint(s, b)
    alive = 1.0 - b.terminated
    expected = b.reward + 0.9 * alive * (next_q.min(0) - 0.5 * log_prob)
    np.testing.assert_allclose(target(AGENT, s, b), expected, rtol=1e-4, atol=1e-5)


def test_the_loss_is_that_of_the_joint_pass():
    s = state()
    q, _, _ = joint(s, BATCH)
    _, metrics, y = step(AGENT, s, BATCH, clock(), KEY)
    assert float(metrics["critic_loss"]) == pytest.approx(float(0.5 * np.square(q - y[None]).mean(1).sum()), rel=1e-4)
    assert float(metrics["q"]) == pytest.approx(float(q.mean()), rel=1e-3, abs=1e-5)
    alone, _ = s.critic.train(BATCH.now, BATCH.action)
    assert np.abs(q - np.asarray(alone)).max() > 1e-2  # else the test says nothing


def test_both_halves_of_the_pass_reach_the_critics_statistics():
    s = state()
    for changed in (BATCH.replace(now=BATCH.next), BATCH.replace(next=BATCH.now)):
        one, other = (step(AGENT, s, b, clock(), KEY)[0] for b in (BATCH, changed))
        assert not equal(one.critic.statistics, other.critic.statistics)


def test_the_actor_learns_from_this_state_by_running_statistics_of_the_critic():
    s = state()
    after, metrics, _ = step(AGENT, s, BATCH, clock(DUE), KEY)
    pi, statistics = s.actor.train(BATCH.now)
    action, log_prob = pi.sample_and_log_prob(stream(KEY, "action"))
    loss = (0.5 * log_prob - after.critic(BATCH.now, action).min(0)).mean()
    # alpha has moved from 0.5, but this update still used it
    assert float(metrics["actor_loss"]) / AGENT.policy_delay == pytest.approx(float(loss), rel=1e-4)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), after.actor.statistics, statistics)


def test_the_actor_and_the_temperature_wait_statistics_included():
    agent, s = AGENT, first(AGENT, SPEC)
    for update in range(6):
        before = s
        s, metrics, _ = step(agent, s, random_batch(SPEC, 8, update), clock(update), KEY)
        still = [equal(getattr(s, n), getattr(before, n)) for n in ("actor", "log_alpha")]
        assert still == [update % 3 != 2] * 2
        assert (metrics["actor_loss"] != 0) == (metrics["entropy"] != 0) == (update % 3 == 2)
    assert (steps_taken(s.critic), steps_taken(s.actor), steps_taken(s.log_alpha)) == (6, 2, 2)
    counts = {int(np.ravel(x["steps"])[0]) for x in s.critic.statistics["VmapMLP_0"].values()}
    assert counts == {6} and int(s.actor.statistics["MLP_0"]["BatchRenorm_0"]["steps"]) == 2


@pytest.mark.parametrize(("wanted", "default"), [(None, -2.0), (2.0, 2.0)])
def test_the_temperature_steers_entropy_to_its_target(wanted, default):
    """d/d log alpha of alpha (entropy - target): alpha falls where there is too much entropy."""
    agent = dataclasses.replace(AGENT, target_entropy=wanted)
    after, metrics, _ = step(agent, first(agent, SPEC), BATCH, clock(DUE), KEY)
    entropy = float(metrics["entropy"]) / agent.policy_delay  # an actor step stands for all updates of its delay
    np.testing.assert_allclose(gradient(after.log_alpha)["value"], 0.5 * (entropy - default), rtol=1e-4)


def test_a_fixed_temperature_stays():
    agent = dataclasses.replace(AGENT, alpha_learning_rate=None)
    s = first(agent, SPEC)
    after, metrics, _ = step(agent, s, BATCH, clock(DUE), KEY)
    assert equal(after.log_alpha, s.log_alpha) and float(metrics["alpha"]) == pytest.approx(0.5)


def test_the_correction_begins_after_its_warmup():
    late, soon = AGENT, dataclasses.replace(AGENT, renorm_warmup=1)
    one, other = first(late, SPEC), first(soon, SPEC)
    for update in range(2):
        assert equal(one, other), "the first update is plain batch normalization"
        one, _, _ = step(late, one, BATCH, clock(update), KEY)
        other, _, _ = step(soon, other, BATCH, clock(update), KEY)
    assert not equal(one, other)


def test_acting_and_reading_use_and_keep_the_running_statistics():
    s, x = state(), states([0, 1, 2], 3)
    one = AGENT.q(s, states([0], 3), jnp.zeros((1, 2)))
    np.testing.assert_allclose(AGENT.q(s, x, jnp.zeros((3, 2)))[:, :1], one, rtol=1e-5)  # whatever else is in the batch
    explored, extras = AGENT.act(s, states([0] * 200, 3), KEY, clock(), True)
    assert explored.shape == (200, 2) and float(explored.std()) > 0.1 and extras == {}
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == AGENT.pi(s, x).mode()).all()


def test_the_first_state():
    s = first(AGENT, SPEC)
    assert [f.name for f in dataclasses.fields(s)] == ["actor", "critic", "log_alpha"]  # no target
    assert float(s.log_alpha()) == pytest.approx(np.log(0.5))


def test_the_papers_defaults():
    agent = CrossQ()
    assert agent.critic_torso.widths == (2048, 2048) and agent.torso.widths == (256, 256)
    assert (agent.replay.updates, agent.policy_delay, agent.adam_b1) == (1, 3, 0.5)


def test_what_it_refuses():
    with pytest.raises(SpaceError, match="CrossQ needs continuous actions"):
        CrossQ().check_spaces(spec(2, Discrete(2)))
