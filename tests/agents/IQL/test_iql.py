"""IQL on hand-built batches: the expectile of the smaller critic, the weights of the data's actions, the targets."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
import optax
import pytest

from ajax.agents.iql import IQL, State
from ajax.core.distributions import Normal
from ajax.core.errors import SpaceError
from ajax.core.schedules import Cosine
from ajax.core.spaces import Discrete
from tests.agents.build import (
    KEY,
    LINEAR,
    SMALL,
    clock,
    equal,
    first,
    gradient,
    spec,
    states,
    step,
    table,
    target,
    transitions,
    with_table,
)

SPEC = spec(2, 1)
TINY = 1e-9  # a step size that leaves the value network where it is, to six digits
AGENT = IQL(gamma=0.9, torso=LINEAR, learning_rate=0.01, value_learning_rate=TINY, actor_learning_rate=0.01)
# critics are linear in (s0, s1, a): at s0 the target's say 2 + a and 4 - a
TARGETS = [[2.0, 0.0, 1.0], [4.0, 0.0, -1.0]]
STEP = transitions(2, [0], [[0.5]], [1.0], [1])


def state(agent: IQL = AGENT, v: Any = (0.0, 3.0), targets: Any = TARGETS, online: Any = None) -> State:
    """A state with V at s0 and s1 and these target critics, whose policy is at 0 with a deviation of 1."""
    s = first(agent, SPEC)
    s = with_mean(s, 0.0)
    critic = s.critic if online is None else with_table(s.critic, online)
    return State(s.actor, critic, with_table(s.target, targets), with_table(s.value, [[x] for x in v]))


def with_mean(s: State, mean: float, log_std: float = 0.0) -> State:
    """The same with a policy whose mean is tanh(mean) everywhere."""
    layer = {"kernel": jnp.zeros((2, 1)), "bias": jnp.full(1, mean)}
    return s.replace(actor=s.actor.at({"MLP_0": {"Dense_0": layer}, "log_std": jnp.full(1, log_std)}))


@pytest.mark.parametrize(("terminated", "truncated", "y"), [(0, 0, 3.7), (1, 0, 1.0), (0, 1, 3.7), (1, 1, 1.0)])
def test_the_critics_target_is_the_value_and_termination_alone_cuts_it(terminated, truncated, y):
    b = transitions(2, [0], [[0.5]], [1.0], [1], [terminated], [truncated])
    np.testing.assert_allclose(target(AGENT, state(), b), [y], rtol=1e-5)


def test_the_target_reads_the_value_after_its_step():
    agent = dataclasses.replace(AGENT, value_learning_rate=0.5)
    b = transitions(2, [1], [[0.5]], [1.0], [1])  # Q'(s1) is 0.5 and -0.5: V(s1) falls from 3 by a step of Adam
    np.testing.assert_allclose(target(agent, state(), b), [1.0 + 0.9 * 2.0], rtol=1e-4)  # weight and bias: 0.5 each


@pytest.mark.parametrize(
    ("v", "slope"),
    [
        (1.0, -2 * 0.7 * 1.5),  # the smaller critic says 2.5, above V
        (4.0, 2 * 0.3 * 1.5),  # and below it
    ],
)
def test_the_value_follows_an_expectile_of_the_smaller_target_critic(v, slope):
    after, metrics, _ = step(AGENT, state(v=(v, 0.0)), STEP, clock(), KEY)
    (layers,) = gradient(after.value).values()
    np.testing.assert_allclose(layers["Dense_0"]["bias"], [slope], rtol=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(abs(slope) / 2 * 1.5, rel=1e-5)


def test_every_critic_is_moved_by_its_own_error():
    s = state(online=[[1.0, 0.0, 0.0], [7.0, 0.0, 0.0]])
    after, metrics, _ = step(AGENT, s, STEP, clock(), KEY)
    (layers,) = gradient(after.critic).values()
    np.testing.assert_allclose(layers["Dense_0"]["bias"][:, 0], [2 * (1 - 3.7), 2 * (7 - 3.7)], rtol=1e-4)
    assert float(metrics["critic_loss"]) == pytest.approx(2.7**2 + 3.3**2, rel=1e-4)


@pytest.mark.parametrize(
    ("v", "weight"),
    [(2.5, 1.0), (2.3, np.exp(3 * 0.2)), (3.0, np.exp(-3 * 0.5)), (0.0, 100.0)],
    ids=["average", "better", "worse", "at the limit"],
)
def test_the_data_s_action_is_weighed_by_its_advantage(v, weight):
    """At mean 0 and deviation 1 the slope of -w log pi(a) in the mean is -w a, and in log std w (1 - a^2)."""
    after, metrics, _ = step(AGENT, state(v=(v, 0.0)), STEP, clock(), KEY)
    found = optax.tree.get(after.actor.opt, "mu")
    np.testing.assert_allclose(np.asarray(found["MLP_0"]["Dense_0"]["bias"]) / 0.1, [-weight * 0.5], rtol=1e-4)
    np.testing.assert_allclose(np.asarray(found["log_std"]) / 0.1, [weight * 0.75], rtol=1e-4)
    assert float(metrics["weight"]) == pytest.approx(weight, rel=1e-4)


def test_without_weight_it_clones():
    agent = dataclasses.replace(AGENT, beta=0.0)
    assert float(step(agent, state(), STEP, clock(), KEY)[1]["weight"]) == 1.0


def test_targets_move_a_share_tau_towards_the_critics_after_their_step():
    s = state()
    after, _, _ = step(AGENT, s, STEP, clock(), KEY)
    np.testing.assert_allclose(table(after.target), 0.995 * table(s.target) + 0.005 * table(after.critic), rtol=1e-5)


def test_the_actors_step_size_falls_along_half_a_cosine():
    agent = dataclasses.replace(AGENT, actor_learning_rate=Cosine(start=0.01))

    def moved(progress: float) -> float:
        after, _, _ = step(agent, state(), STEP, clock(step=1000.0 * progress), KEY)
        return float(agent.pi(after, states([1], 2)).loc[0, 0])  # s1: the bias alone, by one step of Adam

    np.testing.assert_allclose([moved(0.0), moved(0.5), moved(1.0)], np.tanh([0.01, 0.005, 0.0]), rtol=1e-3, atol=1e-8)


def test_the_policy_is_a_gaussian_around_a_squashed_mean_with_a_bounded_deviation():
    for log_std, bounded in ((9.0, 2.0), (0.3, 0.3), (-9.0, -5.0)):
        pi = AGENT.pi(with_mean(state(), 3.0, log_std), states([0], 2))
        assert isinstance(pi, Normal) and float(pi.log_std[0, 0]) == pytest.approx(bounded)
        np.testing.assert_allclose(pi.loc, [[np.tanh(3.0)]], rtol=1e-6)


def test_acting_samples_within_the_box_and_evaluation_takes_the_mean():
    s, x = with_mean(state(), 1.0), states([0] * 400, 2)
    explored, extras = AGENT.act(s, x, KEY, clock(), True)
    assert float(jnp.abs(explored).max()) == 1.0 and float(explored.std()) > 0.3 and extras == {}
    np.testing.assert_allclose(AGENT.act(s, x, KEY, clock(), False)[0], np.tanh(1.0), rtol=1e-6)


def test_the_first_state():
    agent = dataclasses.replace(AGENT, torso=SMALL)
    s = first(agent, SPEC)
    assert equal(s.critic.params, s.target.params) and s.target.opt == ()
    q = agent.q(s, states([0, 1], 2), jnp.zeros((2, 1)))
    assert q.shape == (2, 2) and (q[0] != q[1]).all() and agent.v(s, states([0, 1], 2)).shape == (2,)


def test_what_it_refuses():
    with pytest.raises(SpaceError, match="IQL needs continuous actions"):
        IQL().check_spaces(spec(2, Discrete(2)))
