"""PPO on hand-built rollouts: advantages as they are wired, the clipped objective, and the number of its steps."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.ppo import PPO, State
from ajax.buffers.rollout import Rollout
from ajax.core.records import Batch
from ajax.core.spaces import Discrete
from ajax.training import normalise, on_policy
from ajax.training.normalise import Normalize
from ajax.training.run import Run, Task
from tests.agents.build import (
    KEY,
    LINEAR,
    SMALL,
    clock,
    first,
    gradient,
    random_batch,
    spec,
    states,
    step,
    steps_taken,
    transitions,
)

BOX, DISCRETE = spec(3, 1), spec(3, Discrete(2))
AGENT = PPO(
    gamma=0.9,
    gae_lambda=0.95,
    torso=LINEAR,
    max_grad_norm=1e9,
    learning_rate=0.01,
    standardize_advantages=False,
    rollout=Rollout(n_envs=1, n_steps=3, n_minibatches=1),
)


def state(values: Any = (0.0, 0.0, 0.0), logits: Any = (0.0, 0.0)) -> State:
    """V of each state, and the same action preferences everywhere."""
    net = first(AGENT, DISCRETE).net
    params = jax.tree.map(jnp.zeros_like, net.params)
    params["value"]["MLP_0"]["Dense_0"]["kernel"] = jnp.array(values, jnp.float32)[:, None]
    params["policy"]["MLP_0"]["Dense_0"]["bias"] = jnp.array(logits, jnp.float32)
    return State(net.at(params))


# Advantages


def rollout(values: Any, now: list, leads: list, terminated: Any = None, truncated: Any = None) -> Batch:
    """One environment's steps (time, 1), each paying 1, prepared by a value network with these values."""
    s = state(values)
    b = transitions(3, now, [0] * len(now), [1.0] * len(now), leads, terminated, truncated)
    b = b.replace(extras={"log_prob": jnp.zeros(len(now))})
    return AGENT.prepare(s, jax.tree.map(lambda x: x[:, None], b))


TWO = (2.0, 2.0, 2.0)


@pytest.mark.parametrize(
    ("terminated", "truncated", "advantage"),
    [([0, 1, 0], None, [-0.055, -1.0, 0.8]), (None, [0, 1, 0], [1.484, 0.8, 0.8]), (None, None, [2.069, 1.484, 0.8])],
)
def test_advantages_are_wired_to_the_ends_of_episodes(terminated, truncated, advantage):
    b = rollout(TWO, [0, 0, 0], [0, 0, 0], terminated, truncated)
    np.testing.assert_allclose(b.extras["advantage"][:, 0], advantage, atol=5e-4)
    np.testing.assert_allclose(b.extras["target_value"], b.extras["advantage"] + 2.0, rtol=1e-6)


def test_a_truncated_step_bootstraps_from_its_final_observation():
    # 0 -> 1 is cut short; the next episode begins in 2, whose value must not be read
    b = rollout((0.0, 10.0, 50.0), [0, 2], [1, 2], [0, 1], [1, 0])
    np.testing.assert_allclose(b.extras["advantage"][:, 0], [1 + 9.0 - 0.0, 1.0 - 50.0], rtol=1e-5)


def test_environments_are_not_mixed():
    s = state(TWO)
    one = transitions(3, [0, 0, 0], [0, 0, 0], [1.0, 1.0, 1.0], [0, 0, 0], [0, 1, 0])
    other = transitions(3, [0, 0, 0], [0, 0, 0], [1.0, 1.0, 1.0], [0, 0, 0], None, [0, 1, 0])
    b = jax.tree.map(lambda *x: jnp.stack(x, 1), one, other)
    b = AGENT.prepare(s, b.replace(extras={"log_prob": jnp.zeros((3, 2))}))
    np.testing.assert_allclose(b.extras["advantage"], np.array([[-0.055, -1.0, 0.8], [1.484, 0.8, 0.8]]).T, atol=5e-4)


# The objective


def minibatch(ratio: Any, advantage: Any, target_value: Any = 0.0) -> Batch:
    """Rows of action 0 in state 0 under an even policy, drawn when it had 1 / `ratio` of this probability."""
    ratio, advantage = jnp.atleast_1d(jnp.float32(ratio)), jnp.atleast_1d(jnp.float32(advantage))
    n = len(advantage)
    b = transitions(3, [0] * n, [0] * n, [0.0] * n, [0] * n)
    return b.replace(
        extras={
            "log_prob": jnp.log(0.5) - jnp.log(ratio),
            "advantage": advantage,
            "target_value": jnp.full(n, target_value, jnp.float32),
        }
    )


def policy_gradient(b: Batch, agent: PPO = AGENT, logits: Any = (0.0, 0.0)) -> np.ndarray:
    """The loss's slope by the two preferences."""
    after, _, _ = step(agent, state(logits=logits), b, clock(), KEY)
    return gradient(after.net)["policy"]["MLP_0"]["Dense_0"]["bias"]


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"),
    [(1.0, 2.0, -2.0), (1.1, 2.0, -2.2), (1.5, 2.0, 0.0), (0.5, 2.0, -1.0), (0.5, -2.0, 0.0), (1.5, -2.0, 3.0)],
)
def test_the_policy_moves_unless_its_gain_is_clipped(ratio, advantage, slope):
    # d ratio / d preference of the action taken is ratio (1 - pi) = ratio / 2
    np.testing.assert_allclose(policy_gradient(minibatch(ratio, advantage)), [slope / 2, -slope / 2], atol=1e-5)


def test_the_clip_is_the_one_asked_for():
    wide = dataclasses.replace(AGENT, clip=0.6)
    assert policy_gradient(minibatch(1.5, 2.0), wide)[0] == pytest.approx(-1.5, rel=1e-4)


def test_entropy_is_rewarded():
    agent = dataclasses.replace(AGENT, entropy_coef=0.1)
    slope = policy_gradient(minibatch(1.0, 0.0), agent, logits=(1.0, -1.0))
    assert slope[0] > 0 > slope[1]  # down the slope the two preferences meet
    np.testing.assert_array_equal(policy_gradient(minibatch(1.0, 0.0), logits=(1.0, -1.0)), [0.0, 0.0])


def test_the_value_is_regressed_on_its_target():
    after, metrics, y = step(AGENT, state((3.0, 0.0, 0.0)), minibatch(1.0, 0.0, target_value=5.0), clock(), KEY)
    slope = gradient(after.net)["value"]["MLP_0"]["Dense_0"]["kernel"][:, 0]
    np.testing.assert_allclose(slope, [0.5 * (3.0 - 5.0), 0.0, 0.0], rtol=1e-5)  # value_coef 1/2, loss e^2 / 2
    assert float(metrics["value_loss"]) == pytest.approx(2.0) and y.tolist() == [5.0]


def test_what_is_reported_is_a_mean_over_rows():
    b = minibatch([1.5, 1.0], [2.0, -1.0], target_value=5.0)
    _, metrics, _ = step(AGENT, state((3.0, 0.0, 0.0)), b, clock(), KEY)
    expected = {
        "policy_loss": -(1.2 * 2.0 - 1.0) / 2,
        "value_loss": 2.0,
        "entropy": np.log(2.0),
        "approx_kl": (0.5 - np.log(1.5)) / 2,
        "clip_fraction": 0.5,
    }
    assert {name: float(x) for name, x in metrics.items()} == pytest.approx(expected, rel=1e-4)


def test_values_are_read_from_the_network():
    np.testing.assert_allclose(AGENT.v(state((3.0, 1.0, 0.0)), states([0, 1], 3)), [3.0, 1.0], rtol=1e-6)


def test_the_advantage_does_not_move_the_value():
    after, _, _ = step(AGENT, state(), minibatch([1.0, 1.0], [5.0, -2.0]), clock(), KEY)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(gradient(after.net)["value"]))


def test_standardized_advantages_ignore_their_unit():
    agent = dataclasses.replace(AGENT, standardize_advantages=True)
    plain = np.array([1.0, 2.0, 6.0], np.float32)
    ratio = [1.0, 1.1, 0.9]
    slope, other = (policy_gradient(minibatch(ratio, a), agent) for a in (plain, 100.0 * plain - 7.0))
    np.testing.assert_allclose(slope, other, rtol=1e-4)
    assert not np.allclose(policy_gradient(minibatch(ratio, plain)), slope)


def test_the_gradient_is_clipped_by_its_norm_over_policy_and_value():
    agent = dataclasses.replace(AGENT, max_grad_norm=0.5)
    b = minibatch(1.0, 2.0, target_value=5.0)
    after, _, _ = step(agent, state(), b, clock(), KEY)
    whole, _, _ = step(AGENT, state(), b, clock(), KEY)
    norm = np.sqrt(sum(np.square(g).sum() for g in jax.tree.leaves(gradient(whole.net))))
    expected = jax.tree.map(lambda g: 0.5 / norm * g, gradient(whole.net))
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-7), gradient(after.net), expected)


@pytest.mark.parametrize("space", [BOX, DISCRETE], ids=["box", "discrete"])
def test_the_ratio_is_one_at_the_first_step_and_not_after_it(space):
    agent = dataclasses.replace(AGENT, torso=SMALL)
    s = first(agent, space)
    b = random_batch(space)
    action, extras = agent.act(s, b.now, KEY, clock(), True)
    advantage = jnp.linspace(-1.0, 1.0, 32)
    b = b.replace(action=action, extras=extras | {"advantage": advantage, "target_value": advantage})
    s, at_first, _ = step(agent, s, b, clock(), KEY)
    _, later, _ = step(agent, s, b, clock(1), KEY)
    assert float(at_first["approx_kl"]) == pytest.approx(0.0, abs=1e-6) and float(at_first["clip_fraction"]) == 0.0
    assert float(later["approx_kl"]) > 1e-5


# Acting, and the number of steps


@pytest.mark.parametrize("space", [BOX, DISCRETE], ids=["box", "discrete"])
def test_acting_keeps_what_the_update_needs(space):
    s, x = first(AGENT, space), random_batch(space).now
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    np.testing.assert_allclose(extras["log_prob"], AGENT.pi(s, x).log_prob(action), rtol=1e-6)
    mode, nothing = AGENT.act(s, x, KEY, clock(), False)
    assert (mode == AGENT.pi(s, x).mode()).all() and nothing == {}


def test_samples_follow_the_policy():
    s = state(logits=(np.log(0.3), np.log(0.7)))
    action, _ = AGENT.act(s, states([0] * 4000, 3), KEY, clock(), True)
    assert float(action.mean()) == pytest.approx(0.7, abs=5 * 0.46 / 4000**0.5)


@pytest.mark.parametrize(("n_epochs", "n_minibatches"), [(1, 32), (2, 4)])
def test_a_rollout_is_learned_from_in_as_many_steps_as_asked_for(n_epochs, n_minibatches):
    sizes = Rollout(n_envs=4, n_steps=16, n_epochs=n_epochs, n_minibatches=n_minibatches)
    agent = dataclasses.replace(AGENT, rollout=sizes)
    assert on_policy.updates_per_tick(agent) == n_epochs * n_minibatches
    rows = random_batch(DISCRETE, 64)
    s = first(agent, DISCRETE)
    rows = rows.replace(extras=agent.act(s, rows.now, KEY, clock(), True)[1])
    rows = jax.tree.map(lambda x: x.reshape(16, 4, *x.shape[1:]), rows)
    zero = jnp.zeros(4)
    run = Run(KEY, s, (), zero, (), normalise.init(Normalize(), (3,), 4), (), zero, zero)
    learn = jax.jit(lambda agent, run, rows: on_policy.learn_from(agent, Task(None, 4), run, rows, KEY, clock())[0])
    assert steps_taken(learn(agent, run, rows).agent.net) == n_epochs * n_minibatches
