"""Measurements against their closed forms on known rollouts and tables."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import APO, DQN, PPO, SAC, TD3, Torso
from ajax.agents import td3
from ajax.core.errors import CapabilityError
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions import MODULES
from ajax.extensions.metrics import (
    ExplainedVariance,
    Features,
    GradientNorms,
    QBias,
    TDErrors,
    dormant_units,
    effective_rank,
)
from ajax.extensions.networks import hidden_units
from ajax.networks.memory import GRU
from tests.agents.build import KEY
from tests.extensions.build import batch, fixed, view

LINE = Spec(Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (1,)))
CRITIC = fixed(lambda k, x, a: jnp.stack([k[0] * x.obs[:, 0], k[1] * a[:, 0]]), jnp.array([1.0, 2.0]))
"""Q_1 = k_1 s, Q_2 = k_2 a."""
ACTOR = fixed(lambda w, x: w * x.obs, jnp.float32(0.5))
STATE = td3.State(actor=ACTOR, critic=CRITIC, target_actor=ACTOR, target_critic=CRITIC)
ROWS = batch([[1.0], [2.0]], [[0.5], [-0.5]], [0.0, 0.0], [[0.0], [0.0]])


def measured(extension, **parts):
    seen = view(TD3(gamma=0.5), STATE, ROWS, extension, LINE, **parts)
    return extension.eval_metrics(seen.replace(own=extension.post_update(seen)))


def test_td_errors():
    """Q = (1, 2), (1, -1), targets (2, 0): errors 1, -2, 1, 1."""
    found = measured(TDErrors(), target=jnp.array([2.0, 0.0]))
    errors = np.array([1.0, -2.0, 1.0, 1.0])
    np.testing.assert_allclose(
        [found[name] for name in ("td_error", "td_error_std", "td_error_max")], [errors.mean(), errors.std(), 2.0]
    )


def test_gradient_norms():
    """Critic: mean of (Q - y) dQ/dk = ((-1)(1) + (2)(2)) / 2 and ((-1)(0.5) + (-1)(-0.5)) / 2.

    Actor: Q_2 = 2 w s is the least of the two at w = 0.3 for both states, so that dQ/dw is mean(2 s) = 3.
    """
    state = STATE.replace(actor=ACTOR.at(jnp.float32(0.3)))
    extension = GradientNorms()
    own = extension.post_update(view(TD3(), state, ROWS, extension, LINE, target=jnp.array([2.0, 0.0])))
    np.testing.assert_allclose([own["critic"], own["actor"]], [1.5, 3.0], rtol=1e-6)
    assert set(measured(extension, target=jnp.zeros(2))) == {"critic_gradient_norm", "actor_gradient_norm"}


@pytest.mark.parametrize("agent, discrete, names", [(DQN(), True, {"critic"}), (PPO(), False, {"critic"})])
def test_gradient_norms_without_a_q_of_boxes(agent, discrete, names):
    where = Spec(LINE.observation, Discrete(2)) if discrete else LINE
    state = agent.init(where, KEY)
    b = batch([[1.0]], [0] if discrete else [[0.5]], [0.0], [[0.0]])
    extension = GradientNorms()
    own = extension.post_update(view(agent, state, b, extension, where, target=jnp.array([2.0])))
    assert set(own) == names and own["critic"] > 0


def test_an_agent_without_targets_is_named():
    with pytest.raises(CapabilityError, match="TD3 regresses no critic on a target"):
        measured(TDErrors())


@pytest.mark.parametrize(
    "matrix, rank",
    [
        (np.eye(4), 4),
        (np.ones((5, 3)), 1),
        (np.diag([100.0, 1.0]), 1),
        (np.diag([98.0, 2.0]), 2),
        (np.zeros((3, 2)), 1),
    ],
)
def test_effective_rank(matrix, rank):
    assert effective_rank(jnp.asarray(matrix, jnp.float32), 0.01) == rank


def test_dormant_units():
    """Mean magnitudes 0, 0.06 and 30 of the rows that count; their mean is 10.02."""
    activations = jnp.array([[0.0, 0.12, -30.0], [0.0, 0.0, 30.0], [9.0, 9.0, 9.0]])
    valid = jnp.array([1.0, 1.0, 0.0])
    np.testing.assert_array_equal(dormant_units(activations, valid, 0.025), [1, 1, 0])
    np.testing.assert_array_equal(dormant_units(activations, valid, 0.001), [1, 0, 0])


def evaluation(obs, action, reward, terminated, truncated, valid):
    """Rows (time, episodes), from lists over episodes."""
    b = batch(*(np.swapaxes(np.array(x, np.float32), 0, 1) for x in (obs, action, reward, obs, terminated)))
    flags = {"truncated": np.transpose(truncated).astype(np.float32)}
    return b.replace(extras={"valid": jnp.asarray(np.transpose(valid), jnp.float32)}, **flags)


EPISODES = evaluation(
    obs=[[[1.0], [2.0], [7.0]], [[4.0], [9.0], [9.0]], [[9.0], [9.0], [9.0]]],
    action=[[[0.5], [1.0], [0.0]], [[0.0], [9.0], [9.0]], [[9.0], [9.0], [9.0]]],
    reward=[[1.0, 2.0, 4.0], [3.0, 50.0, 50.0], [5.0, 5.0, 5.0]],
    terminated=[[0, 0, 1], [0, 1, 0], [0, 0, 0]],
    truncated=[[0, 0, 0], [1, 0, 0], [0, 0, 0]],
    valid=[[1, 1, 1], [1, 0, 0], [1, 1, 1]],
)
"""Three steps to a termination, one to a time limit, and an episode whose end is not seen."""
RETURNS = np.array([1 + 0.5 * (2 + 0.5 * 4), 2 + 0.5 * 4, 4.0, 3.0])
VALUES = np.array([(1 + 1.0) / 2, (2 + 2.0) / 2, (7 + 0.0) / 2, (4 + 0.0) / 2])
"""Means over critics."""


def evaluated(extension):
    return extension.eval_metrics(view(TD3(gamma=0.5), STATE, EPISODES, extension, LINE))


def test_the_bias_of_q():
    found, error = evaluated(QBias()), VALUES - RETURNS
    np.testing.assert_allclose(found["q_bias"], error.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["q_bias_std"], error.std(), rtol=1e-6)
    np.testing.assert_allclose(found["q_bias_normalized"], error.mean() / RETURNS.mean(), rtol=1e-6)
    np.testing.assert_allclose(found["q_bias_std_normalized"], error.std() / RETURNS.mean(), rtol=1e-6)


def test_the_explained_variance():
    expected = 1 - np.var(RETURNS - VALUES) / np.var(RETURNS)
    np.testing.assert_allclose(evaluated(ExplainedVariance())["explained_variance"], expected, rtol=1e-5)
    assert QBias(steps=7).eval_rows == ExplainedVariance(steps=7).eval_rows == Features(steps=7).eval_rows == 7


SMALL = Torso(widths=(5, 3))
CRITICS = {
    "DQN": (DQN(torso=SMALL), Discrete(2), [(4, 5), (4, 3)]),
    "DQN dueling": (DQN(torso=SMALL, dueling=True), Discrete(2), [(4, 5), (4, 3)] * 2),
    "PPO": (PPO(torso=SMALL), Discrete(2), [(4, 5), (4, 3)]),
    "SAC": (SAC(torso=SMALL), LINE.action, [(2, 4, 5), (2, 4, 3)]),
    "SAC discrete": (SAC(torso=SMALL), Discrete(2), [(2, 4, 5), (2, 4, 3)]),
    "TD3": (TD3(torso=SMALL), LINE.action, [(2, 4, 5), (2, 4, 3)]),
}


@pytest.mark.parametrize("name", CRITICS)
def test_hidden_layers_are_found_and_are_those_that_the_values_are_made_of(name):
    agent, space, shapes = CRITICS[name]
    where = Spec(LINE.observation, space)
    state = agent.init(where, KEY)
    action = [0, 1, 0, 1] if where.discrete else [[0.5]] * 4
    b = batch([[1.0], [2.0], [-1.0], [0.5]], action, [0.0] * 4, [[0.0]] * 4, valid=[1.0] * 4)
    critic = getattr(state, agent.critic)
    layers = hidden_units(critic, b)
    assert [layer.shape for layer in layers] == shapes
    seen = view(agent, state, jax.tree.map(lambda x: x[:, None], b), Features(), where)
    found = Features(threshold=0.0).eval_metrics(seen)
    dead = [(np.abs(layer).max(-2) == 0).reshape(-1) for layer in layers]
    np.testing.assert_allclose(found["dormant_units"], np.concatenate(dead).mean(), rtol=1e-6)
    last = layers[-1] if layers[-1].ndim == 3 else layers[-1][None]
    np.testing.assert_allclose(found["effective_rank"], np.mean([effective_rank(x, 0.01) for x in last]))


@pytest.mark.parametrize("extension", [Features(), QBias(), ExplainedVariance()])
def test_networks_that_remember_are_refused(extension):
    agent = TD3(torso=Torso(memory=GRU()))
    with pytest.raises(CapabilityError, match="rows without their past"):
        extension.eval_metrics(view(agent, STATE, EPISODES, extension, LINE))


def test_an_agent_without_a_discount_is_named():
    with pytest.raises(CapabilityError, match="APO has no discount"):
        QBias().eval_metrics(view(APO(), None, EPISODES, QBias(), LINE))


def test_a_critic_without_hidden_layers_is_named():
    agent = SAC(torso=Torso(widths=()))
    b = batch([[[1.0]]], [[[0.5]]], [[0.0]], [[[0.0]]], valid=[[1.0]])
    with pytest.raises(CapabilityError, match="this critic has none"):
        Features().eval_metrics(view(agent, agent.init(LINE, KEY), b, Features(), LINE))


def test_every_measurement_has_its_closed_form_here():
    """A new extension of `metrics.py` fails this until it is imported and held above."""
    exported = {name for name, module in MODULES.items() if module == "metrics"}
    assert exported == {cls.__name__ for cls in (ExplainedVariance, Features, GradientNorms, QBias, TDErrors)}
