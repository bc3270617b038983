"""SAC on hand-built batches: its soft target, the temperature's direction, exact sums over discrete actions."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.sac import SAC, State, soft_value
from ajax.core.keys import stream
from ajax.core.records import Spec
from ajax.core.spaces import Discrete
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
    target,
    transitions,
    with_table,
)

BOX, DISCRETE = spec(2, 2), spec(2, Discrete(2))
AGENT = SAC(gamma=0.9, torso=LINEAR, alpha=0.5, learning_rate=0.01, actor_learning_rate=0.01)
# discrete, state 1: pi = (0.25, 0.75); target critics (1, 4) and (3, 2), so that their minimum is (1, 2)
PI = [[0.0, 0.0], [np.log(0.25), np.log(0.75)]]
TARGETS = [[[0.0, 0.0], [1.0, 4.0]], [[0.0, 0.0], [3.0, 2.0]]]


def discrete(agent: SAC = AGENT, pi: Any = PI, critics: Any = TARGETS, online: Any = None) -> State:
    s = first(agent, DISCRETE)
    critic = s.critic if online is None else with_table(s.critic, online)
    return s.replace(actor=with_table(s.actor, pi), target=with_table(s.target, critics), critic=critic)


@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_discrete_target_is_an_exact_sum(terminated, truncated):
    b = transitions(2, [0], [1], [1.0], [1], [terminated], [truncated])
    value = 0.25 * (1 - 0.5 * np.log(0.25)) + 0.75 * (2 - 0.5 * np.log(0.75))
    np.testing.assert_allclose(target(AGENT, discrete(), b), [1.0 + (0 if terminated else 0.9 * value)], rtol=1e-5)


@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1)])
def test_the_target_on_a_box_is_soft_and_takes_the_smaller_critic(terminated, truncated):
    b = transitions(2, [0], [[0.1, 0.2]], [1.0], [1], [terminated], [truncated])
    s = first(AGENT, BOX)
    s = s.replace(target=with_table(s.target, [[0.0, 3.0, 2.0, 0.0], [0.0, 3.1, -1.0, 0.5]]))
    action, log_prob = s.actor(b.next).sample_and_log_prob(stream(KEY, "next_action"))
    q = min(3.0 + 2.0 * float(action[0, 0]), 3.1 - float(action[0, 0]) + 0.5 * float(action[0, 1]))
    expected = 1.0 + (0.0 if terminated else 0.9 * (q - 0.5 * float(log_prob[0])))
    np.testing.assert_allclose(target(AGENT, s, b), [expected], rtol=1e-5)


def test_soft_value_and_entropy_of_discrete_actions():
    s = discrete()
    value, entropy = soft_value(s.actor, s.target, states([1], 2), jnp.float32(0.0), KEY)
    np.testing.assert_allclose(value, [0.25 * 1 + 0.75 * 2], rtol=1e-6)
    np.testing.assert_allclose(entropy, [-(0.25 * np.log(0.25) + 0.75 * np.log(0.75))], rtol=1e-6)


def test_entropy_on_a_box_is_minus_the_log_probability_of_the_sample():
    s, x = first(AGENT, BOX), states([0, 1], 2)
    _, log_prob = s.actor(x).sample_and_log_prob(KEY)
    np.testing.assert_allclose(soft_value(s.actor, s.target, x, jnp.float32(0.5), KEY)[1], -log_prob, rtol=1e-6)


def test_each_critic_is_moved_by_its_own_error():
    b = transitions(2, [0], [1], [5.0], [1], [1])
    s = discrete(online=[[[0.0, 1.0], [0.0, 0.0]], [[0.0, 7.0], [0.0, 0.0]]])
    after, _, _ = step(AGENT, s, b, clock(), KEY)
    (layers,) = gradient(after.critic).values()
    # half the square, so the slope is the error; the action that was not taken stays
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][:, 0], [[0.0, -4.0], [0.0, 2.0]], rtol=1e-5)


def test_what_is_reported_is_a_mean_over_rows():
    agent = dataclasses.replace(AGENT, learning_rate=1e-9)
    s = discrete(online=[[[0.0, 1.0], [0.0, 0.0]], [[0.0, 7.0], [0.0, 0.0]]])
    _, metrics, _ = step(agent, s, transitions(2, [0, 0], [1, 1], [5.0, 5.0], [1, 1], [1, 1]), clock(), KEY)
    soft = 0.5 * 0.0 + 0.5 * 1.0 + 0.5 * math.log(2)  # of the smaller critic, pi = (1/2, 1/2), alpha = 1/2
    expected = {"critic_loss": 0.5 * (4**2 + 2**2), "q": 4.0, "actor_loss": -soft, "entropy": math.log(2), "alpha": 0.5}
    assert {name: float(x) for name, x in metrics.items()} == pytest.approx(expected, rel=1e-5)


def test_values_are_read_from_the_critics_asked_for():
    s = discrete(online=[[[0.0, 1.0], [0.0, 0.0]], [[0.0, 7.0], [0.0, 0.0]]])
    np.testing.assert_allclose(AGENT.q(s, states([0, 1], 2), jnp.array([1, 1])), [[1.0, 0.0], [7.0, 0.0]], atol=1e-6)
    read = AGENT.target_q(s, states([0, 1], 2), jnp.array([1, 1]))
    np.testing.assert_allclose(read, [[0.0, 4.0], [0.0, 2.0]], atol=1e-6)


TEMPERATURE = [(BOX, -2.0), (DISCRETE, 0.98 * math.log(2))]


@pytest.mark.parametrize(("space", "default"), TEMPERATURE, ids=["box", "discrete"])
def test_the_temperature_steers_entropy_to_its_target(space: Spec, default):
    """d/d log alpha of alpha (entropy - target): alpha falls where there is too much entropy."""
    after, metrics, _ = step(AGENT, first(AGENT, space), random_batch(space), clock(), KEY)
    expected = 0.5 * (float(metrics["entropy"]) - default)
    np.testing.assert_allclose(gradient(after.log_alpha)["value"], expected, rtol=1e-4)


@pytest.mark.parametrize(("wanted", "direction"), [(100.0, 1), (-100.0, -1)])
def test_too_little_entropy_raises_alpha(wanted, direction):
    agent = dataclasses.replace(AGENT, target_entropy=wanted)
    s = first(agent, BOX)
    after, metrics, _ = step(agent, s, random_batch(BOX), clock(), KEY)
    assert np.sign(float(after.log_alpha()) - float(s.log_alpha())) == direction
    assert float(metrics["alpha"]) == pytest.approx(0.5)  # the one this update was made with


def test_a_fixed_temperature_stays():
    agent = dataclasses.replace(AGENT, alpha_learning_rate=None)
    s = first(agent, BOX)
    after, _, _ = step(agent, s, random_batch(BOX), clock(), KEY)
    assert equal(after.log_alpha, s.log_alpha)
    assert float(jnp.exp(after.log_alpha())) == pytest.approx(0.5)


def probability(agent: SAC, online: Any, logits: Any) -> float:
    """pi(1 | s0) after one update of the actor, given the online critics."""
    s = discrete(agent, pi=logits, online=online)
    b = transitions(2, [0], [1], [0.0], [1], [1])
    after, _, _ = step(agent, s, b, clock(), KEY)
    return float(jnp.exp(agent.pi(after, states([0], 2)).log_probs)[0, 1])


def test_the_actor_climbs_the_smaller_critic():
    agent = dataclasses.replace(AGENT, alpha=1e-6, learning_rate=1e-9)
    # the minimum is (2, 1): the first critic alone, or their maximum or mean, prefer action 1
    online = [[[2.0, 9.0], [0.0, 0.0]], [[3.0, 1.0], [0.0, 0.0]]]
    assert probability(agent, online, [[0.0, 0.0], [0.0, 0.0]]) < 0.5


def test_entropy_is_a_bonus_not_a_cost():
    agent = dataclasses.replace(AGENT, alpha=10.0, learning_rate=1e-9)
    flat = [[[0.0, 0.0], [0.0, 0.0]]] * 2
    assert 0.5 < probability(agent, flat, [[0.0, 1.0], [0.0, 0.0]]) < 1 / (1 + math.exp(-1.0))


def test_the_target_moves_a_share_tau_towards_the_critics_after_their_step():
    s = discrete()
    after, _, _ = step(AGENT, s, random_batch(DISCRETE), clock(), KEY)
    expected = jax.tree.map(lambda t, o: 0.995 * t + 0.005 * o, s.target.params, after.critic.params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), after.target.params, expected)
    assert after.target.module == s.target.module and after.target.opt == ()


@pytest.mark.parametrize("space", [BOX, DISCRETE], ids=["box", "discrete"])
def test_the_first_state(space: Spec):
    s = first(AGENT, space)
    assert float(s.log_alpha()) == pytest.approx(math.log(0.5))
    assert equal(s.critic.params, s.target.params) and s.target.opt == ()
    b = random_batch(space)
    q = AGENT.q(s, b.now, b.action)
    assert q.shape == (2, 32) and (q[0] != q[1]).all()
    after, _, _ = step(AGENT, s, b, clock(), KEY)
    assert not equal(after.critic.params, after.target.params)


def test_acting_samples_and_evaluation_takes_the_mode():
    s, x = discrete(), states([1] * 4000, 2)
    explored, extras = AGENT.act(s, x, KEY, clock(), True)
    assert float(explored.mean()) == pytest.approx(0.75, abs=5 * 0.433 / 4000**0.5) and extras == {}
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == 1).all()
    box = first(AGENT, BOX)
    assert (AGENT.act(box, x, KEY, clock(), False)[0] == jnp.tanh(box.actor(x).loc)).all()


def test_the_next_action_and_the_actors_own_are_drawn_from_the_key_apart():
    s, other = first(AGENT, BOX), jax.random.key(8)
    b = random_batch(BOX)
    assert not equal(target(AGENT, s, b), target(AGENT, s, b, other))
    ended = b.replace(terminated=jnp.ones(32))  # the target is the reward, whatever is drawn
    (one, *_), (two, *_) = step(AGENT, s, ended, clock(), KEY), step(AGENT, s, ended, clock(), other)
    assert equal(one.critic, two.critic) and not equal(one.actor, two.actor)
