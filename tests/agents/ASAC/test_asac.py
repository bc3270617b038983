"""ASAC on hand-built batches: its differential target, the gain, the temperature, the actor."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.asac import ASAC, State
from ajax.core.keys import stream
from tests.agents.build import (
    KEY,
    LINEAR,
    clock,
    equal,
    first,
    gradient,
    random_batch,
    spec,
    states,
    step,
    transitions,
    with_table,
)

SPEC = spec(2, 1)
AGENT = ASAC(torso=LINEAR, alpha=0.5, gain_rate=0.25, reset_cost=8.0, learning_rate=0.01, actor_learning_rate=0.01)
# of an observation (2) and an action (1): target critics 3 + 2a and 3.1 - a in state 1
TARGETS = [[0.0, 3.0, 2.0], [0.0, 3.1, -1.0]]


def state(agent: ASAC = AGENT, critics: Any = TARGETS, gain: float = 0.7, reset_cost: float = 3.0) -> State:
    s = first(agent, SPEC)
    return s.replace(target=with_table(s.target, critics), gain=jnp.float32(gain), reset_cost=jnp.float32(reset_cost))


@pytest.mark.parametrize("critics", [TARGETS, TARGETS[::-1]], ids=["", "swapped"])  # the smaller is the first, or last
@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_target_is_differential_soft_and_takes_the_smaller_critic(terminated, truncated, critics):
    b, s = transitions(2, [0], [[0.1]], [1.0], [1], [terminated], [truncated]), state(critics=critics)
    action, log_prob = s.actor(b.next).sample_and_log_prob(stream(KEY, "next_action"))
    a = float(action[0, 0])
    value = min(3.0 + 2.0 * a, 3.1 - a) - 0.5 * float(log_prob[0])
    _, _, y = step(AGENT, s, b, clock(), KEY)
    # the cost moves a quarter from 3 to 8 times the mean reward of what ended nothing: to 2.25 where this row did end
    np.testing.assert_allclose(y, [1.0 - 0.7 + (-2.25 if terminated else value)], rtol=1e-5)


def test_the_reset_cost_moves_by_its_share_to_so_many_mean_rewards_of_what_ended_nothing():
    b = transitions(2, [0, 1, 0, 1], [[0.1]] * 4, [1.0, 2.0, 3.0, 10.0], [1, 0, 1, 0], [0, 0, 0, 1], [0, 0, 1, 0])
    after, metrics, y = step(AGENT, state(critics=np.zeros((2, 3, 1))), b, clock(), KEY)
    assert float(after.reset_cost) == pytest.approx(3.0 + 0.25 * (8.0 * 6.0 / 4 - 3.0)) == float(metrics["reset_cost"])
    assert float(y[3]) == pytest.approx(10.0 - 5.25 - 0.7)  # the new one is charged


def test_the_gain_moves_by_its_share_to_reward_less_cost_and_entropy():
    b, s = transitions(2, [0, 1], [[0.1], [0.3]], [1.0, 2.0], [1, 0], [1, 0]), state()
    _, log_prob = s.actor(b.now).sample_and_log_prob(stream(KEY, "action"))
    after, metrics, _ = step(AGENT, s, b, clock(), KEY)
    cost = 3.0 + 0.25 * (8.0 * 2.0 / 2 - 3.0)
    expected = 0.7 + 0.25 * (float((b.reward - cost * b.terminated - 0.5 * log_prob).mean()) - 0.7)
    assert float(after.gain) == pytest.approx(expected, rel=1e-5) == float(metrics["gain"])


def test_gain_and_cost_start_at_0_and_a_rate_of_0_keeps_them():
    agent = dataclasses.replace(AGENT, gain_rate=0.0)
    after, _, _ = step(agent, first(agent, SPEC), random_batch(SPEC), clock(), KEY)
    assert float(after.gain) == float(after.reset_cost) == 0.0


def test_each_critic_is_moved_by_its_own_error():
    b = transitions(2, [0], [[0.0]], [7.95], [1], [1])
    s = state()
    s = s.replace(critic=with_table(s.critic, [[1.0, 0.0, 0.0], [7.0, 0.0, 0.0]]))
    after, _, _ = step(AGENT, s, b, clock(), KEY)
    (layers,) = gradient(after.critic).values()
    # half the square, so the slope is the error: 1 - 5 and 7 - 5, the reward less a cost of 2.25 and a gain of 0.7
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][:, 0, 0], [-4.0, 2.0], rtol=1e-5)


@pytest.mark.parametrize(("wanted", "direction"), [(100.0, 1), (-100.0, -1)])
def test_too_little_entropy_raises_alpha(wanted, direction):
    agent = dataclasses.replace(AGENT, target_entropy=wanted)
    s = first(agent, SPEC)
    after, metrics, _ = step(agent, s, random_batch(SPEC), clock(), KEY)
    assert np.sign(float(after.log_alpha()) - float(s.log_alpha())) == direction
    assert float(metrics["alpha"]) == pytest.approx(0.5)  # the one this update was made with


def test_the_default_target_entropy_is_minus_the_actions_size():
    after, metrics, _ = step(AGENT, first(AGENT, SPEC), random_batch(SPEC), clock(), KEY)
    expected = 0.5 * (float(metrics["entropy"]) + 1.0)
    np.testing.assert_allclose(gradient(after.log_alpha)["value"], expected, rtol=1e-4)


def test_a_fixed_temperature_stays():
    agent = dataclasses.replace(AGENT, alpha_learning_rate=None)
    s = first(agent, SPEC)
    after, _, _ = step(agent, s, random_batch(SPEC), clock(), KEY)
    assert equal(after.log_alpha, s.log_alpha)


def test_the_actor_climbs_the_smaller_critic_after_its_step_and_keeps_its_entropy():
    agent = dataclasses.replace(AGENT, learning_rate=1e-9)
    s, b = state(agent), random_batch(SPEC)
    after, _, _ = step(agent, s, b, clock(), KEY)

    def loss(params: Any) -> jax.Array:
        action, log_prob = s.actor.at(params)(b.now).sample_and_log_prob(stream(KEY, "action"))
        return (0.5 * log_prob - s.critic(b.now, action).min(0)).mean()

    expected = jax.grad(loss)(s.actor.params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), gradient(after.actor), expected)


def test_the_target_moves_a_share_tau_towards_the_critics_after_their_step():
    s = state()
    after, _, _ = step(AGENT, s, random_batch(SPEC), clock(), KEY)
    expected = jax.tree.map(lambda t, o: 0.995 * t + 0.005 * o, s.target.params, after.critic.params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), after.target.params, expected)


def test_acting_samples_and_evaluation_takes_the_mode():
    s, x = first(AGENT, SPEC), states([0, 1], 2)
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    assert (action == AGENT.pi(s, x).sample(KEY)).all() and extras == {}
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == jnp.tanh(s.actor(x).loc)).all()
    assert AGENT.q(s, x, action).shape == (2, 2)
