"""AVG on single transitions: its target, the scale of its errors, and the action that both losses share."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.avg import AVG, State
from ajax.core.keys import stream
from ajax.core.records import Batch
from ajax.core.statistics import ReturnScale
from tests.agents.build import KEY, clock, equal, first, gradient, spec, states, step, transitions

SPEC = spec(2, 1)
AGENT = AVG(gamma=0.9, alpha=0.5, learning_rate=0.01, actor_learning_rate=0.01)
NOISE = [[0.7]]


def transition(s: State, terminated: int = 0, truncated: int = 0, reward: float = 1.0) -> Batch:
    """One step 0 -> 1 with the action that NOISE makes."""
    noise = jnp.asarray(NOISE)
    action, _ = s.actor(states([0], 2)).from_noise(noise)
    b = transitions(2, [0], action, [reward], [1], [terminated], [truncated])
    return b.replace(extras={"noise": noise})


def biased(s: State, value: float) -> State:
    """The state whose critic says `value` everywhere."""
    params = jax.tree.map(jnp.zeros_like, s.critic.params)
    last = params["VmapMLP_0"]["Dense_2"]
    last["bias"] = jnp.full_like(last["bias"], value)
    return s.replace(critic=s.critic.at(params))


@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_target_is_soft_and_cut_by_termination_alone(terminated, truncated):
    s = biased(first(AGENT, SPEC), 3.0)
    _, _, y = step(AGENT, s, transition(s, terminated, truncated), clock(), KEY)
    _, log_prob = s.actor(states([1], 2)).sample_and_log_prob(stream(KEY, "next_action"))
    expected = 1.0 + (0.0 if terminated else 0.9 * (3.0 - 0.5 * float(log_prob[0])))
    np.testing.assert_allclose(y, [expected], rtol=1e-5)


def test_the_error_is_divided_by_sigma_of_rewards_with_entropy():
    s = biased(first(AGENT, SPEC), 3.0)
    stats = ReturnScale.zeros()
    for reward in (5.0, -3.0):
        stats = stats.add(jnp.float32(reward), jnp.float32(0), jnp.float32(0), 0.9)
    s = s.replace(scale=stats)
    after, metrics, y = step(AGENT, s, transition(s), clock(), KEY)
    log_prob = float(s.actor(states([0], 2)).from_noise(jnp.asarray(NOISE))[1][0])
    sigma = np.std([5.0, -3.0, 1.0 - 0.5 * log_prob])
    assert float(metrics["sigma"]) == pytest.approx(sigma, rel=1e-5)
    error = (float(y[0]) - 3.0) / sigma
    assert float(metrics["critic_loss"]) == pytest.approx(error**2, rel=1e-4)
    slope = jax.tree.map(lambda m: m * 0.1, gradient(after.critic))  # Adam's first moment is the gradient: b1 is 0
    np.testing.assert_allclose(slope["VmapMLP_0"]["Dense_2"]["bias"], [[-2 * error / sigma]], rtol=1e-4)
    assert float(after.scale.reward.count) == 3


def test_the_actor_climbs_the_critic_at_the_action_taken():
    """The gradient of alpha log pi(a|s) - Q(s, a), with a as a function of the policy and Q as it was before."""
    s = first(AGENT, SPEC)
    b = transition(s)
    after, metrics, _ = step(AGENT, s, b, clock(), KEY)

    def loss(params: Any) -> jax.Array:
        action, log_prob = s.actor.at(params)(b.now).from_noise(jnp.asarray(NOISE))
        return (0.5 * log_prob - s.critic(b.now, action)[0]).sum()

    slope = jax.tree.map(lambda m: m * 0.1, gradient(after.actor))
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6), slope, jax.grad(loss)(s.actor.params)
    )
    assert float(metrics["entropy"]) == pytest.approx(-float(s.actor(b.now).from_noise(b.extras["noise"])[1][0]))


def test_the_first_step_is_the_learning_rate_against_the_sign():
    s = first(AGENT, SPEC)
    after, _, _ = step(AGENT, s, transition(s), clock(), KEY)
    for net, old in ((after.actor, s.actor), (after.critic, s.critic)):
        moved = jax.tree.map(lambda a, b: np.abs(a - b).max(), net.params, old.params)
        assert max(jax.tree.leaves(moved)) == pytest.approx(0.01, rel=1e-3)


def test_acting_keeps_the_noise_that_made_the_action():
    s, x = first(AGENT, SPEC), states([0, 1], 2)
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    assert (AGENT.pi(s, x).from_noise(extras["noise"])[0] == action).all() and action.shape == (2, 1)
    mode, nothing = AGENT.act(s, x, KEY, clock(), False)
    assert (mode == jnp.tanh(s.actor(x).loc)).all() and nothing == {}


def test_the_output_is_bounded_by_the_last_layer():
    s = first(AGENT, SPEC)
    last = s.critic.params["VmapMLP_0"]["Dense_2"]
    bound = float(jnp.linalg.norm(last["kernel"]))
    q = AGENT.q(s, states([0, 1], 2).replace(obs=1e4 * jnp.eye(2)), jnp.array([[0.5], [-0.5]]))
    assert q.shape == (1, 2) and float(jnp.abs(q).max()) <= bound * 1.0001


def test_an_observation_of_zeros_is_no_accident():
    s = first(AGENT, SPEC)
    noise = jnp.zeros((1, 1))
    b = transitions(2, [0], jnp.zeros((1, 1)), [1.0], [1]).replace(extras={"noise": noise})
    b = jax.tree.map(jnp.zeros_like, b)
    after, _, _ = step(AGENT, s, b, clock(), KEY)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(after))


def test_momentum_is_a_field():
    s = first(AGENT, SPEC)
    one, other = (step(a, s, transition(s), clock(), KEY)[0] for a in (AGENT, dataclasses.replace(AGENT, adam_b1=0.9)))
    assert equal(one.scale, other.scale)
    assert not equal(one.actor.opt, other.actor.opt) and not equal(one.critic.opt, other.critic.opt)
