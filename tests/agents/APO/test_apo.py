"""APO on hand-built rollouts: its running means, differential advantages, the value constraint, and the objective."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.apo import APO, State
from ajax.buffers.rollout import Rollout
from ajax.core.records import Batch
from ajax.core.spaces import Discrete
from tests.agents.build import KEY, LINEAR, clock, first, gradient, spec, states, step, transitions

DISCRETE, BOX = spec(3, Discrete(2)), spec(3, 1)
AGENT = APO(
    gae_lambda=0.5,
    gain_rate=0.25,
    value_constraint=0.5,
    torso=LINEAR,
    max_grad_norm=1e9,
    learning_rate=0.01,
    entropy_coef=0.0,
    rollout=Rollout(n_envs=1, n_steps=3, n_minibatches=1),
)
VALUES = (1.0, 4.0, 50.0)


def state(values: Any = VALUES, logits: Any = (0.0, 0.0), **means: float) -> State:
    """V of each state, the same action preferences everywhere, and the means: `gain`, `value_mean`, `started`."""
    s = first(AGENT, DISCRETE)
    params = jax.tree.map(jnp.zeros_like, s.net.params)
    params["value"]["MLP_0"]["Dense_0"]["kernel"] = jnp.array(values, jnp.float32)[:, None]
    params["policy"]["MLP_0"]["Dense_0"]["bias"] = jnp.array(logits, jnp.float32)
    return s.replace(net=s.net.at(params), **{name: jnp.float32(x) for name, x in means.items()})


def rollout(s: State, leads: list, terminated: Any = None, truncated: Any = None, agent: APO = AGENT) -> dict:
    """What is prepared of one environment's steps 0 -> ., 0 -> ., 1 -> ., which pay 1, 2 and 3."""
    b = transitions(3, [0, 0, 1], [0, 0, 0], [1.0, 2.0, 3.0], leads, terminated, truncated)
    b = b.replace(extras={"log_prob": jnp.zeros(3)})
    extras = agent.prepare(s, jax.tree.map(lambda x: x[:, None], b)).extras
    return {name: np.asarray(x[:, 0]) for name, x in extras.items()}


# Means


def test_the_first_rollout_sets_the_means():
    extras = rollout(state(gain=9.0, value_mean=9.0), [0, 1, 1])
    np.testing.assert_allclose(extras["gain"], [2.0] * 3)
    np.testing.assert_allclose(extras["value_mean"], [2.0] * 3)  # V of the states acted in: 1, 1, 4


def test_later_rollouts_move_the_means_by_their_share():
    extras = rollout(state(gain=1.0, value_mean=-2.0, started=1.0), [0, 1, 1])
    np.testing.assert_allclose(extras["gain"], [1.25] * 3)
    np.testing.assert_allclose(extras["value_mean"], [-1.0] * 3)


def test_an_update_takes_over_the_means_of_its_rollout():
    b = minibatch(1.0, 0.0)
    b = b.replace(extras=b.extras | {"gain": jnp.array([0.7]), "value_mean": jnp.array([-0.3])})
    after, metrics, _ = step(AGENT, state(gain=0.5, started=0.0), b, clock(), KEY)
    found = [float(x) for x in (after.gain, after.value_mean, after.started)]
    assert found == pytest.approx([0.7, -0.3, 1.0])
    assert [float(metrics[name]) for name in ("gain", "value_mean")] == pytest.approx([0.7, -0.3])


# Advantages: gain 2, V = 1, 4, 50; errors are r - 2 + V(s') - V(s), the trace 0.5

HELD = {"gain": 2.0, "value_mean": 2.0, "started": 1.0}  # what the rollout's own means are


@pytest.mark.parametrize(
    ("leads", "terminated", "truncated", "advantage"),
    [
        ([0, 1, 1], None, None, [-1 + 0.5 * 3.5, 3 + 0.5 * 1, 1.0]),
        ([0, 2, 1], [0, 1, 0], None, [-1 - 0.5 * 1, -1.0, 1.0]),
        ([0, 2, 1], None, [0, 1, 0], [-1 + 0.5 * 49, 49.0, 1.0]),
    ],
)
def test_advantages_are_differential(leads, terminated, truncated, advantage):
    extras = rollout(state(**HELD), leads, terminated, truncated)
    np.testing.assert_allclose(extras["advantage"], advantage, rtol=1e-5)


def test_targets_are_lowered_by_a_share_of_the_values_mean():
    extras = rollout(state(**HELD), [0, 1, 1])
    np.testing.assert_allclose(extras["target_value"], extras["advantage"] + [1.0, 1.0, 4.0] - 0.5 * 2.0, rtol=1e-5)


def test_without_the_constraint_targets_are_returns():
    free = dataclasses.replace(AGENT, value_constraint=0.0)
    extras = rollout(state(**HELD), [0, 1, 1], agent=free)
    np.testing.assert_allclose(extras["target_value"], extras["advantage"] + [1.0, 1.0, 4.0], rtol=1e-5)


# The objective


def minibatch(ratio: Any, advantage: Any, target_value: Any = 0.0) -> Batch:
    """Rows of action 0 in state 0 under an even policy, drawn when it had 1 / `ratio` of this probability."""
    ratio, advantage = jnp.atleast_1d(jnp.float32(ratio)), jnp.atleast_1d(jnp.float32(advantage))
    n = len(advantage)
    extras = {
        "log_prob": jnp.log(0.5) - jnp.log(ratio),
        "advantage": advantage,
        "target_value": jnp.full(n, target_value, jnp.float32),
        "gain": jnp.zeros(n),
        "value_mean": jnp.zeros(n),
    }
    return transitions(3, [0] * n, [0] * n, [0.0] * n, [0] * n).replace(extras=extras)


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [(1.0, 2.0, -2.0), (1.1, 2.0, -2.2), (1.5, 2.0, 0.0), (0.5, 2.0, -1.0), (0.5, -2.0, 0.0), (1.5, -2.0, 3.0)],
)
def test_the_policy_moves_unless_its_gain_is_clipped(ratio, advantage, slope):
    after, _, _ = step(AGENT, state(), minibatch(ratio, advantage), clock(), KEY)
    found = gradient(after.net)["policy"]["MLP_0"]["Dense_0"]["bias"]
    # d ratio / d preference of the action taken is ratio (1 - pi) = ratio / 2
    np.testing.assert_allclose(found, [slope / 2, -slope / 2], atol=1e-5)


def test_advantages_are_not_standardized():
    one, other = (
        step(AGENT, state(), minibatch([1.0, 1.0], [a, 2 * a]), clock(), KEY)[0]
        for a in (jnp.float32(1), jnp.float32(3))
    )
    slopes = [gradient(s.net)["policy"]["MLP_0"]["Dense_0"]["bias"][0] for s in (one, other)]
    assert slopes[1] == pytest.approx(3 * slopes[0], rel=1e-4)


def test_the_value_is_regressed_on_its_target_with_its_weight():
    agent = dataclasses.replace(AGENT, value_coef=0.5)
    after, metrics, y = step(agent, state((3.0, 0.0, 0.0)), minibatch(1.0, 0.0, 5.0), clock(), KEY)
    slope = gradient(after.net)["value"]["MLP_0"]["Dense_0"]["kernel"][:, 0]
    np.testing.assert_allclose(slope, [0.5 * (3.0 - 5.0), 0.0, 0.0], rtol=1e-5)
    assert float(metrics["value_loss"]) == pytest.approx(2.0) and y.tolist() == [5.0]


def test_entropy_is_rewarded():
    agent = dataclasses.replace(AGENT, entropy_coef=0.1)
    after, _, _ = step(agent, state(logits=(1.0, -1.0)), minibatch(1.0, 0.0), clock(), KEY)
    slope = gradient(after.net)["policy"]["MLP_0"]["Dense_0"]["bias"]
    assert slope[0] > 0 > slope[1]  # down the slope the two preferences meet


@pytest.mark.parametrize("space", [DISCRETE, BOX], ids=["discrete", "box"])
def test_acting_keeps_the_log_probability_of_a_sample_and_evaluation_takes_the_mode(space):
    s, x = first(AGENT, space), states([0, 1, 2], 3)
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    np.testing.assert_allclose(extras["log_prob"], AGENT.pi(s, x).log_prob(action), rtol=1e-6)
    mode, nothing = AGENT.act(s, x, KEY, clock(), False)
    assert (mode == AGENT.pi(s, x).mode()).all() and nothing == {} and AGENT.v(s, x).shape == (3,)
