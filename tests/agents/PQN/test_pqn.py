"""PQN on hand-built rollouts: its lambda returns as they are wired, its regression, exploration."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.pqn import PQN, State
from ajax.core.records import Batch
from ajax.core.schedules import Linear
from ajax.core.spaces import Discrete
from tests.agents.build import (
    KEY,
    LINEAR,
    clock,
    first,
    gradient,
    spec,
    states,
    step,
    table,
    transitions,
    with_table,
)

SPEC = spec(3, Discrete(2))
AGENT = PQN(gamma=0.9, td_lambda=0.5, torso=LINEAR, learning_rate=0.01, max_grad_norm=None)
Q = [[0.3, 0.6], [2.0, 1.0], [50.0, 80.0]]  # the maxima are 0.6, 2 and 80


def state(agent: PQN = AGENT) -> State:
    return State(with_table(first(agent, SPEC).q, Q))


# The targets: three steps 0 -> 0 -> 1 -> 1 that pay 1 each


def rollout(leads: list, terminated: Any = None, truncated: Any = None, agent: PQN = AGENT) -> np.ndarray:
    """The targets of one environment's three steps, which led to these states."""
    b = transitions(3, [0, 0, 1], [0, 1, 0], [1.0, 1.0, 1.0], leads, terminated, truncated)
    b = agent.prepare(state(agent), jax.tree.map(lambda x: x[:, None], b))
    return np.asarray(b.extras["target"][:, 0])


LAST = 1 + 0.9 * 2.0  # bootstraps in full from max Q(1, .)
MIDDLE = 1 + 0.9 * (0.5 * 2.0 + 0.5 * LAST)


def test_the_targets_are_lambda_returns_of_maxima():
    np.testing.assert_allclose(rollout([0, 1, 1]), [1 + 0.9 * (0.5 * 0.6 + 0.5 * MIDDLE), MIDDLE, LAST], rtol=1e-6)


def test_a_termination_cuts_the_bootstrap_and_the_trace():
    np.testing.assert_allclose(rollout([0, 2, 1], terminated=[0, 1, 0])[1:], [1.0, LAST], rtol=1e-6)


def test_a_time_limit_bootstraps_from_its_final_observation():
    # it led to state 2; the next episode begins in state 1, which must not be read
    np.testing.assert_allclose(rollout([0, 2, 1], truncated=[0, 1, 0])[1:], [1 + 0.9 * 80.0, LAST], rtol=1e-6)


@pytest.mark.parametrize(("td_lambda", "middle"), [(0.0, 1 + 0.9 * 2.0), (1.0, 1 + 0.9 * LAST)])
def test_the_ends_of_lambda(td_lambda, middle):
    agent = dataclasses.replace(AGENT, td_lambda=td_lambda)
    assert rollout([0, 1, 1], agent=agent)[1] == pytest.approx(middle)


def test_environments_are_not_mixed():
    cut = transitions(3, [0, 0, 1], [0, 1, 0], [1.0] * 3, [0, 2, 1], [0, 1, 0])
    on = transitions(3, [0, 0, 1], [0, 1, 0], [1.0] * 3, [0, 1, 1])
    b = AGENT.prepare(state(), jax.tree.map(lambda *x: jnp.stack(x, 1), cut, on))
    np.testing.assert_allclose(b.extras["target"][1], [1.0, MIDDLE], rtol=1e-6)


# The regression


def minibatch(now: list, action: list, target: list) -> Batch:
    b = transitions(3, now, action, [0.0] * len(now), now)
    return b.replace(extras={"target": jnp.asarray(target, jnp.float32)})


def test_only_the_action_taken_is_moved_and_towards_its_target():
    after, metrics, y = step(AGENT, state(), minibatch([0], [1], [2.6]), clock(), KEY)
    # RAdam's first step is the gradient itself times the learning rate: here the error, -2
    np.testing.assert_allclose(table(after.q) - np.array(Q, np.float32), [[0, 0.02], [0, 0], [0, 0]], atol=1e-6)
    assert y.tolist() == [pytest.approx(2.6)]
    assert float(metrics["q"]) == pytest.approx(0.6) and float(metrics["loss"]) == pytest.approx(2.0)


def test_the_loss_is_a_mean_over_the_minibatch():
    after, _, _ = step(AGENT, state(), minibatch([0, 1], [1, 0], [2.6, 1.0]), clock(), KEY)
    (layers,) = gradient(after.q).values()
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][:2], [[0.0, -1.0], [0.5, 0.0]], rtol=1e-5, atol=1e-7)


def test_the_gradient_is_clipped_by_its_norm():
    agent = dataclasses.replace(AGENT, max_grad_norm=0.1)
    after, _, _ = step(agent, state(agent), minibatch([0], [1], [100.0]), clock(), KEY)
    squares = jax.tree.map(lambda g: np.square(g).sum(), gradient(after.q))
    assert sum(jax.tree.leaves(squares)) == pytest.approx(0.1**2, rel=1e-4)


def test_there_is_one_network_normalized_by_layer():
    s = first(PQN(), SPEC)
    assert [f.name for f in dataclasses.fields(s)] == ["q"]
    assert {"LayerNorm_0", "LayerNorm_1"} < set(s.q.params["MLP_0"])


# Acting


def share_of_random(step: float, agent: PQN) -> float:
    actions, extras = agent.act(state(), states([0] * 4000, 3), KEY, clock(step=step), True)
    assert extras == {}
    return 2.0 * float((actions == 0).mean())  # action 1 is the greedy one, and half of the random ones


@pytest.mark.parametrize(("step", "epsilon"), [(0, 1.0), (50, 0.5005), (100, 0.001), (900, 0.001)])
def test_epsilon_follows_the_steps_of_the_run(step, epsilon):
    assert share_of_random(step, AGENT) == pytest.approx(epsilon, abs=5 * 2 * 0.5 / 4000**0.5)


def test_evaluation_does_not_explore():
    agent = dataclasses.replace(AGENT, epsilon=Linear(start=1.0, end=1.0))
    actions, _ = agent.act(state(), states([0, 1, 2], 3), KEY, clock(), False)
    assert actions.tolist() == [1, 0, 1] and actions.dtype == jnp.int32


def test_q_is_the_networks():
    np.testing.assert_allclose(AGENT.q(state(), states([0, 1, 2], 3)), Q)
