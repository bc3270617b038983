"""TD3 on hand-built batches: its target and the noise on it, the delay, and the actor's two objectives."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.td3 import TD3, State
from tests.agents.build import (
    KEY,
    LINEAR,
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
    transitions,
    with_table,
)

SPEC = spec(2, 1)
AGENT = TD3(gamma=0.9, torso=LINEAR, target_noise=0.0, learning_rate=0.01, actor_learning_rate=0.01)
STEP = transitions(2, [0], [[0.2]], [1.0], [1])
# critics are linear in (s0, s1, a); Q_1'(s1, a) = 3 + 2 a, Q_2'(s1, a) = 5 - a
TARGETS = [[0.0, 3.0, 2.0], [0.0, 5.0, -1.0]]


def state(agent: TD3 = AGENT, mu: float = 0.5, critics: Any = TARGETS, online: Any = None) -> State:
    """A state whose target policy takes `mu` everywhere, with these target critics; the online ones are theirs."""
    s = first(agent, SPEC)
    return State(
        actor=s.actor if online is None else with_table(s.actor, [[0.0], [0.0]]),
        critic=s.critic if online is None else with_table(s.critic, online),
        target_actor=with_table(s.target_actor, [[np.arctanh(mu)]] * 2),
        target_critic=with_table(s.target_critic, critics),
    )


@pytest.mark.parametrize(("terminated", "truncated", "y"), [(0, 0, 4.6), (1, 0, 1.0), (0, 1, 4.6), (1, 1, 1.0)])
def test_the_target_takes_the_smaller_critic_and_termination_alone_cuts_it(terminated, truncated, y):
    # at a' = 0.5 the critics are 4 and 4.5; the larger would give 5.05, the mean 4.825
    b = transitions(2, [0], [[0.2]], [1.0], [1], [terminated], [truncated])
    np.testing.assert_allclose(target(AGENT, state(), b), [y], rtol=1e-5)


MANY = transitions(2, [0] * 4000, [[0.2]] * 4000, [0.0] * 4000, [1] * 4000)


def smoothed(mu: float, noise: float, clip: float) -> np.ndarray:
    """The target actions of many rows: the first critic is the action, the second is far above."""
    agent = dataclasses.replace(AGENT, gamma=1.0, target_noise=noise, target_noise_clip=clip)
    return target(agent, state(mu=mu, critics=[[0.0, 0.0, 1.0], [9.0, 9.0, 0.0]]), MANY)


def test_the_noise_has_its_deviation_and_is_drawn_for_each_row():
    actions = smoothed(0.0, 0.2, 0.99)
    assert actions.std() == pytest.approx(0.2, rel=5 / (2 * 4000) ** 0.5)
    assert abs(actions.mean()) < 5 * 0.2 / 4000**0.5


def test_the_noise_is_drawn_from_the_key():
    agent = dataclasses.replace(AGENT, target_noise=0.2)
    assert not equal(target(agent, state(), MANY), target(agent, state(), MANY, jax.random.key(8)))


def test_the_noise_is_clipped():
    actions = smoothed(0.0, 100.0, 0.5)
    assert np.abs(actions).max() == pytest.approx(0.5, abs=1e-6)
    assert np.mean(np.abs(actions) > 0.499) > 0.98


def test_the_smoothed_action_stays_in_the_box():
    actions = smoothed(0.9, 100.0, 0.5)
    assert actions.max() == pytest.approx(1.0, abs=1e-6) and actions.min() == pytest.approx(0.4, abs=1e-5)


def test_each_critic_is_moved_by_its_own_error():
    s = state(online=[[1.0, 0.0, 0.0], [7.0, 0.0, 0.0]])  # Q(s0) = 1 and 7, y = 4.6
    after, _, y = step(AGENT, s, STEP, clock(), KEY)
    (layers,) = gradient(after.critic).values()
    np.testing.assert_allclose(y, [4.6], rtol=1e-5)
    np.testing.assert_allclose(layers["Dense_0"]["bias"][:, 0], [2 * (1 - 4.6), 2 * (7 - 4.6)], rtol=1e-4)


def test_the_loss_is_a_mean_over_rows_and_a_sum_over_critics():
    two = transitions(2, [0, 0], [[0.2]] * 2, [1.0] * 2, [1, 1])
    _, metrics, _ = step(AGENT, state(online=[[1.0, 0.0, 0.0], [7.0, 0.0, 0.0]]), two, clock(), KEY)
    assert float(metrics["critic_loss"]) == pytest.approx((1 - 4.6) ** 2 + (7 - 4.6) ** 2, rel=1e-5)
    assert float(metrics["q"]) == pytest.approx((1.0 + 7.0) / 2)


def test_the_actor_and_the_targets_move_every_second_update():
    agent = dataclasses.replace(AGENT, torso=SMALL)
    s = first(agent, SPEC)
    for update in range(4):
        before = s
        s, _, _ = step(agent, s, random_batch(SPEC, 8, update), clock(update), KEY)
        still = [equal(getattr(s, n), getattr(before, n)) for n in ("actor", "target_actor", "target_critic")]
        assert still == [update % 2 == 0] * 3 and not equal(s.critic, before.critic)
    assert (steps_taken(s.critic), steps_taken(s.actor)) == (4, 2)


@pytest.mark.parametrize("delay", [1, 3])
def test_the_delay_is_the_one_asked_for(delay):
    agent = dataclasses.replace(AGENT, policy_delay=delay)
    s = first(agent, SPEC)
    for update in range(6):
        s, _, _ = step(agent, s, random_batch(SPEC, 8, update), clock(update), KEY)
        assert (steps_taken(s.critic), steps_taken(s.actor)) == (update + 1, (update + 1) // delay)


def test_targets_move_a_share_tau_towards_the_networks_after_their_step():
    agent = dataclasses.replace(AGENT, tau=0.005)
    s = state(agent)
    after, _, _ = step(agent, s, STEP, clock(update=1), KEY)
    for old, new, online in (
        (s.target_critic, after.target_critic, after.critic),
        (s.target_actor, after.target_actor, after.actor),
    ):
        expected = jax.tree.map(lambda t, o: 0.995 * t + 0.005 * o, old.params, online.params)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), new.params, expected)


def moved(agent: TD3, online: Any, action: float = 0.2) -> tuple[float, dict]:
    """How far one update moves the policy at s0, from 0."""
    b = transitions(2, [0], [[action]], [0.0], [1], [1])
    after, metrics, _ = step(agent, state(agent, online=online), b, clock(update=1), KEY)
    return float(agent.pi(after, states([0], 2))[0, 0]), metrics


def test_the_actor_climbs_the_first_critic_alone():
    up, down = [[0.0, 0.0, 1.0], [0.0, 0.0, -5.0]], [[0.0, 0.0, -1.0], [0.0, 0.0, 5.0]]
    assert moved(AGENT, up)[0] > 0 > moved(AGENT, down)[0]


def test_behavior_cloning_pulls_to_the_data():
    agent = dataclasses.replace(AGENT, bc_alpha=2.5)
    flat = [[3.0, 3.0, 0.0], [3.0, 3.0, 0.0]]  # Q says nothing about the action
    assert moved(agent, flat, action=0.8)[0] > 0 > moved(agent, flat, action=-0.8)[0]


def test_behavior_cloning_weighs_the_value_by_its_size():
    """-lambda mean Q + mean (mu - a)^2 with lambda = alpha / mean |Q|; the critic is read after its own step."""
    agent = dataclasses.replace(AGENT, bc_alpha=2.5, learning_rate=1e-12)
    online = [[-4.0, 1.0, 0.0], [0.0, 0.0, 0.0]]
    b = transitions(2, [0, 1], [[0.5], [-0.1]], [0.0, 0.0], [1, 1], [1, 1])
    _, metrics, _ = step(agent, state(agent, online=online), b, clock(update=1), KEY)
    # mu = 0, Q = (-4, 1): mean Q = -1.5, mean |Q| = 2.5; without the absolute value the weight would be -5 / 3
    loss = float(metrics["actor_loss"]) / agent.policy_delay  # an actor step stands for all updates of its delay
    assert loss == pytest.approx(2.5 / 2.5 * 1.5 + (0.25 + 0.01) / 2, rel=1e-4)


def test_the_size_of_the_value_is_a_weight_and_not_climbed_itself():
    agent = dataclasses.replace(AGENT, bc_alpha=2.5)
    # where all Q are above 0, Q / |Q| is 1 whatever the action; the data's action is the policy's own
    assert moved(agent, [[3.0, 3.0, 1.0]] * 2, action=0.0)[0] > 0


def test_acting_adds_noise_within_the_box_and_evaluation_none():
    s = state(online=TARGETS)
    x = states([0] * 4000, 2)
    noisy, extras = AGENT.act(s, x, KEY, clock(), True)
    assert float(noisy.std()) == pytest.approx(0.1, rel=5 / (2 * 4000) ** 0.5) and extras == {}
    loud = dataclasses.replace(AGENT, exploration_noise=5.0).act(s, x, KEY, clock(), True)[0]
    assert float(jnp.abs(loud).max()) == 1.0
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == AGENT.pi(s, x)).all()


def test_the_first_state():
    s = first(dataclasses.replace(AGENT, torso=SMALL), SPEC)
    assert equal(s.actor.params, s.target_actor.params) and equal(s.critic.params, s.target_critic.params)
    assert s.target_actor.opt == () and s.target_critic.opt == ()
    q = AGENT.q(s, states([0, 1], 2), jnp.zeros((2, 1)))
    assert q.shape == (2, 2) and (q[0] != q[1]).all()


def test_values_are_read_from_the_critics_asked_for():
    s = state(online=[[1.0, 0.0, 0.0], [7.0, 0.0, 0.0]])
    x, a = states([0, 1], 2), jnp.array([[0.5], [0.5]])
    np.testing.assert_allclose(AGENT.q(s, x, a), [[1.0, 0.0], [7.0, 0.0]], atol=1e-6)
    np.testing.assert_allclose(AGENT.target_q(s, x, a), [[1.0, 4.0], [-0.5, 4.5]], atol=1e-6)
