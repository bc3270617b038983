"""UDRL on hand-built segments: the likelihood of what was done under what came of it, and the scales of commands."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.udrl import UDRL
from ajax.core.errors import ConfigError
from ajax.core.records import Inputs
from ajax.core.schedules import Linear
from ajax.core.spaces import Discrete
from ajax.networks.torsos import Torso
from tests.agents.build import KEY, SMALL, clock, equal, first, spec, states, step, steps_taken, transitions

DISCRETE, BOX = spec(2, Discrete(3)), spec(2, 1)
AGENT = UDRL(learning_rate=0.01, return_scale=0.5, horizon_scale=0.1, torso=SMALL)


def told(now: list[int], commands: list) -> Inputs:
    """One-hot observations of two states with commands."""
    return states(now, 2).replace(command=jnp.asarray(commands, jnp.float32))


def segments(now: list[int], action: list, commands: list):
    """Segments that began in these states with these actions and fulfilled these commands."""
    b = transitions(2, now, action, [0.0] * len(now), now)
    return b.replace(now=told(now, commands))


def test_the_loss_is_minus_the_mean_log_probability_of_what_was_done():
    b = segments([0, 1, 1], [2, 0, 1], [[4, 3], [1, 2], [-2, 7]])
    state = first(AGENT, DISCRETE)
    _, metrics, _ = step(AGENT, state, b, clock(), KEY)
    scaled = b.now.replace(command=b.now.command * jnp.array([[0.5, 0.1]]))
    logits = np.asarray(state.behavior(scaled).logits, float)
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    np.testing.assert_allclose(metrics["loss"], -np.mean(log_probs[[0, 1, 2], [2, 0, 1]]), rtol=1e-5)
    np.testing.assert_allclose(metrics["entropy"], -np.mean((np.exp(log_probs) * log_probs).sum(-1)), rtol=1e-5)


def test_in_a_box_it_is_a_gaussians():
    b = segments([0, 1], [[0.5], [-1.0]], [[4, 3], [1, 2]])
    state = first(AGENT, BOX)
    _, metrics, _ = step(AGENT, state, b, clock(), KEY)
    pi = AGENT.behavior(state, b.now)
    z = (np.array([[0.5], [-1.0]]) - pi.loc) / np.exp(pi.log_std)
    expected = np.mean(0.5 * z**2 + pi.log_std + 0.5 * math.log(2 * math.pi))
    np.testing.assert_allclose(metrics["loss"], expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("scale", "command", "same"),
    [("return_scale", [8.0, 3.0], [4.0, 3.0]), ("horizon_scale", [4.0, 6.0], [4.0, 3.0])],
)
def test_each_scale_multiplies_its_own_part_of_the_command(scale, command, same):
    state = first(AGENT, DISCRETE)
    halved = dataclasses.replace(AGENT, **{scale: 0.5 * getattr(AGENT, scale)})
    one, other = halved.behavior(state, told([0], [command])), AGENT.behavior(state, told([0], [same]))
    np.testing.assert_allclose(one.logits, other.logits, rtol=1e-6)
    assert not np.allclose(AGENT.behavior(state, told([0], [command])).logits, other.logits)


def learned(spec, b, updates: int = 120):
    """The state after some updates on one batch."""
    agent = dataclasses.replace(AGENT, learning_rate=0.03)

    def body(_, state):
        return step(agent, state, b, clock(), KEY)[0]

    return jax.jit(lambda state: jax.lax.fori_loop(0, updates, body, state))(first(AGENT, spec))


def test_it_learns_which_action_fulfils_which_command():
    """In one state, action 0 brings 1, action 2 brings 3; under a longer horizon it is the other way round."""
    commands, actions = [[1, 1], [3, 1], [1, 4], [3, 4]], [0, 2, 2, 0]
    state = learned(DISCRETE, segments([0] * 4, actions, commands))
    action, _ = AGENT.act(state, told([0] * 4, commands), KEY, clock(), False)
    assert action.tolist() == actions
    probabilities = np.exp(AGENT.behavior(state, told([0] * 4, commands)).log_probs)
    assert probabilities[np.arange(4), actions].min() > 0.9


def test_what_is_unsure_is_learned_in_proportion():
    state = learned(DISCRETE, segments([0] * 4, [0, 0, 0, 1], [[2, 2]] * 4))
    probabilities = np.exp(AGENT.behavior(state, told([0], [[2, 2]])).log_probs)[0]
    np.testing.assert_allclose(probabilities, [0.75, 0.25, 0.0], atol=0.03)


def test_exploring_draws_from_the_distribution_and_evaluating_takes_the_likeliest():
    state, x = first(AGENT, DISCRETE), told([0] * 3_000, [[4, 3]] * 3_000)
    drawn, extras = AGENT.act(state, x, KEY, clock(), True)
    np.testing.assert_allclose(np.bincount(drawn) / 3_000, np.exp(AGENT.behavior(state, x).log_probs[0]), atol=0.03)
    likeliest, _ = AGENT.act(state, x, KEY, clock(), False)
    assert set(likeliest.tolist()) == {int(AGENT.behavior(state, x).logits[0].argmax())} and extras == {}


def test_in_a_box_actions_are_clipped_to_it():
    state, x = first(AGENT, BOX), told([0] * 500, [[4, 3]] * 500)
    drawn, _ = AGENT.act(state, x, KEY, clock(), True)
    assert float(drawn.min()) == -1.0 and float(drawn.max()) == 1.0 and 0 < np.mean(np.abs(drawn) < 1) < 1
    mode, _ = AGENT.act(state, x, KEY, clock(), False)
    np.testing.assert_allclose(mode, AGENT.behavior(state, x).loc)


def test_rewards_ends_and_next_states_of_a_batch_change_nothing():
    """All that is learned of them is in the command."""
    b, state = segments([0, 1], [1, 2], [[4, 3], [1, 2]]), first(AGENT, DISCRETE)
    other = b.replace(reward=b.reward + 5.0, terminated=b.terminated + 1.0, next=states([1, 0], 2))
    assert equal(step(AGENT, state, b, clock(), KEY)[0], step(AGENT, state, other, clock(), KEY)[0])


def test_a_schedule_sets_the_step():
    agent = dataclasses.replace(AGENT, learning_rate=Linear(start=0.01, end=0.0))
    b, state = segments([0, 1], [1, 2], [[4, 3], [1, 2]]), first(AGENT, DISCRETE)
    last, _, _ = step(agent, state, b, clock(step=1000.0), KEY)
    assert equal(last.behavior.params, state.behavior.params) and steps_taken(last.behavior) == 1


def test_a_network_without_a_layer_to_gate_is_refused():
    with pytest.raises(ConfigError, match="gates the first hidden layer"):
        UDRL(torso=Torso(widths=()))
