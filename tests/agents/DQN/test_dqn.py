"""DQN on hand-built batches: its target in every variant, the target network's period, exploration."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.dqn import DQN, State
from ajax.core.records import Batch
from ajax.core.schedules import Linear
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
    table,
    target,
    transitions,
    with_table,
)

SPEC = spec(2, Discrete(2))
AGENT = DQN(gamma=0.9, torso=LINEAR, target_period=3, learning_rate=0.01)
# state 1 is what the step leads to: online Q = (1, 0), target Q = (0, 5)
ONLINE, TARGET = [[0.3, 0.6], [1.0, 0.0]], [[0.0, 0.0], [0.0, 5.0]]
STEP = transitions(2, [0], [1], [0.0], [1])


def state(agent: DQN = AGENT) -> State:
    s = first(agent, SPEC)
    return State(q=with_table(s.q, ONLINE), target=with_table(s.target, TARGET))


@pytest.mark.parametrize(("double", "y"), [(False, 4.5), (True, 0.0)])
def test_the_target_of_a_step(double, y):
    # the online network's maximum would be 0.9
    np.testing.assert_allclose(target(dataclasses.replace(AGENT, double=double), state(), STEP), [y])


@pytest.mark.parametrize(("terminated", "truncated", "y"), [(1, 0, 2.0), (0, 1, 6.5), (1, 1, 2.0), (0, 0, 6.5)])
def test_termination_alone_cuts_the_bootstrap(terminated, truncated, y):
    b = transitions(2, [0], [1], [2.0], [1], [terminated], [truncated])
    np.testing.assert_allclose(target(AGENT, state(), b), [y])


def test_every_row_has_its_own_target():
    b = transitions(2, [0, 1, 0], [1, 0, 0], [0.0, 1.0, 2.0], [1, 0, 1], [0, 0, 1])
    np.testing.assert_allclose(target(AGENT, state(), b), [4.5, 1.0, 2.0])


def window(truncated: list[float], terminated: list[float]) -> Batch:
    """Three steps 0 -> 0 -> 0 -> 1 that pay 1 each; where one ends the episode, it led to state 1."""
    ended = np.maximum(truncated, terminated)
    leads = [int(ended[0]), int(ended[1]), 1]
    b = transitions(2, [0, 0, 0], [1, 0, 0], [1.0, 1.0, 1.0], leads, terminated, truncated)
    return jax.tree.map(lambda x: x[:, None], b)


@pytest.mark.parametrize(
    ("terminated", "truncated", "y"),
    [
        ([0, 0, 0], [0, 0, 0], 2.71 + 0.729 * 5),
        ([0, 1, 0], [0, 0, 0], 1.9),
        ([0, 0, 0], [0, 1, 0], 1.9 + 0.81 * 5),
        ([1, 0, 0], [0, 0, 0], 1.0),
    ],
)
def test_the_target_of_three_steps(terminated, truncated, y):
    agent = dataclasses.replace(AGENT, n_step=3)
    np.testing.assert_allclose(target(agent, state(), window(truncated, terminated)), [y], rtol=1e-5)


def test_the_action_of_a_window_is_its_first():
    after, _, _ = step(dataclasses.replace(AGENT, n_step=3), state(), window([0, 0, 0], [0, 0, 0]), clock(), KEY)
    assert (table(after.q) != np.array(ONLINE, np.float32)).tolist() == [[False, True], [False, False]]


def test_only_the_action_taken_is_moved_and_towards_its_target():
    after, metrics, _ = step(AGENT, state(), STEP, clock(), KEY)
    moved = table(after.q) - np.array(ONLINE, np.float32)
    np.testing.assert_allclose(moved, [[0.0, 0.01], [0.0, 0.0]], atol=1e-4)  # Adam's first step: the learning rate
    assert float(metrics["q"]) == pytest.approx(0.6)
    assert float(metrics["loss"]) == pytest.approx(4.5 - 0.6 - 0.5)  # Huber beyond 1


def test_the_error_is_clipped_and_averaged():
    b = transitions(2, [0, 0], [1, 0], [100.0, 0.5], [1, 1], [1, 1])
    after, _, _ = step(AGENT, state(), b, clock(), KEY)
    (layers,) = gradient(after.q).values()
    # errors 0.6 - 100 and 0.3 - 0.5: slopes -1 and -0.2, each halved by the mean over two rows
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][0], [-0.1, -0.5], rtol=1e-5)


def test_without_a_clip_the_slope_is_the_error():
    b = transitions(2, [0, 0], [1, 0], [100.0, 0.5], [1, 1], [1, 1])
    agent = dataclasses.replace(AGENT, error_clip=None)
    after, metrics, _ = step(agent, state(agent), b, clock(), KEY)
    (layers,) = gradient(after.q).values()
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][0], [-0.1, -49.7], rtol=1e-5)
    assert float(metrics["loss"]) == pytest.approx((0.2**2 + 99.4**2) / 4)
    assert float(metrics["q"]) == pytest.approx((0.6 + 0.3) / 2)


def test_the_target_network_is_copied_every_period_and_stands_still_between():
    s, copies = state(), []
    before = s.target
    for update in range(7):
        s, _, _ = step(AGENT, s, random_batch(SPEC, 8, update), clock(update), KEY)
        fresh = equal(s.target.params, s.q.params)
        assert fresh or equal(s.target.params, before.params)
        copies.append(fresh)
        before = s.target
    assert copies == [False, False, True, False, False, True, False]


def test_the_first_target_is_a_copy_that_nothing_trains():
    s = first(AGENT, SPEC)
    assert equal(s.q.params, s.target.params) and s.target.opt == ()
    after, _, _ = step(AGENT, s, STEP, clock(), KEY)
    assert not equal(after.q.params, after.target.params)


def test_dueling_has_two_streams():
    s = first(dataclasses.replace(AGENT, dueling=True), SPEC)
    assert set(s.q.params) == {"value", "advantage"}


# Acting: state 0 is (0.3, 0.6) online and (0, 0) for the target

MANY = states([0] * 4000, 2)
act = jax.jit(lambda agent, state, x, clock, explore: agent.act(state, x, KEY, clock, explore)[0], static_argnums=4)


def random_share(agent: DQN, step: float) -> float:
    """Share of rows that did not take the greedy action 1: half of the random ones."""
    return 2.0 * float((act(agent, state(), MANY, clock(step=step), True) == 0).mean())


def test_the_online_network_acts():
    # state 1: online prefers 0, target 1
    assert act(AGENT, state(), states([1, 0], 2), clock(), False).tolist() == [0, 1]


@pytest.mark.parametrize(("step", "epsilon"), [(0, 1.0), (50, 0.55), (100, 0.1), (900, 0.1)])
def test_epsilon_follows_the_steps_of_the_run(step, epsilon):
    assert random_share(AGENT, step) == pytest.approx(epsilon, abs=5 * 2 * 0.5 / 4000**0.5)


def test_epsilon_does_not_follow_updates():
    agent = dataclasses.replace(AGENT, epsilon=Linear(start=1.0, end=0.0))
    a, b = (act(agent, state(), MANY, clock(update=u, step=500.0), True) for u in (0, 900))
    assert (a == b).all()


def test_each_row_has_its_own_coin():
    actions = act(dataclasses.replace(AGENT, epsilon=0.5), state(), MANY, clock(), True)
    assert 0 < float((actions == 0).mean()) < 0.5


def test_the_random_action_is_drawn_from_the_key():
    agent = dataclasses.replace(AGENT, epsilon=1.0)
    drawn = [np.asarray(agent.act(state(), states([0] * 9, 2), jax.random.key(i), clock(), True)[0]) for i in range(24)]
    assert (np.ptp(drawn, axis=0) == 1).all()


def test_evaluation_does_not_explore():
    greedy = act(dataclasses.replace(AGENT, epsilon=1.0), state(), MANY, clock(), False)
    assert (greedy == 1).all() and greedy.dtype == jnp.int32


def test_q_is_the_online_networks():
    np.testing.assert_allclose(AGENT.q(state(), states([0, 1], 2)), ONLINE)
