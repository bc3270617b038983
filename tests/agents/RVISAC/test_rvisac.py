"""RVISAC on hand-built windows: its target after resets, the reference, the critic of resets and the cost it sets."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.rvisac import RVISAC, State
from ajax.buffers.replay import Replay
from ajax.core.errors import ConfigError
from ajax.core.keys import stream
from ajax.core.records import Batch
from tests.agents.build import (
    KEY,
    LINEAR,
    Spy,
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

SPEC = spec(3, 1)
AGENT = RVISAC(
    torso=LINEAR,
    alpha=0.5,
    reference_rate=0.25,
    reference_scale=0.5,
    target_reset_rate=0.1,
    learning_rate=0.01,
    actor_learning_rate=0.01,
    reset_cost_learning_rate=0.02,
)
# of an observation (3) and an action (1): target critics 3 + 2a and 3.1 - a in state 1, 7 in state 2
TARGETS = [[0.0, 3.0, 7.0, 2.0], [0.0, 3.1, 7.0, -1.0]]
RESETS = [0.0, 0.4, 0.9, 0.0]


def state(
    agent: RVISAC = AGENT,
    critics: Any = TARGETS,
    gain: float = 0.7,
    reset_rate: float = 0.2,
    reset_cost: float = 2.0,
) -> State:
    s = first(agent, SPEC)
    return s.replace(
        target=with_table(s.target, critics),
        reset_target=with_table(s.reset_target, RESETS),
        reset_cost=s.reset_cost.at({"value": jnp.float32(reset_cost)}),
        gain=jnp.float32(gain),
        reset_rate=jnp.float32(reset_rate),
    )


def window(terminated: list[int], truncated: list[int] | None = None, reward: float = 1.0) -> Batch:
    """Rows from state 0 to state 1; the next row of the replay is acted on in state 2."""
    n = len(terminated)
    row = transitions(3, [0] * n, [[0.1]] * n, [reward] * n, [1] * n, terminated, truncated)
    then = transitions(3, [2] * n, [[0.3]] * n, [50.0] * n, [0] * n, [1] * n)
    return jax.tree.map(lambda a, b: jnp.stack([a, b]), row, then)


def soft(s: State, index: int) -> float:
    """V of state 1 or 2 by the action that the update draws there; one row a batch."""
    action, log_prob = s.actor(states([index], 3)).sample_and_log_prob(stream(KEY, "next_action"))
    a = float(action[0, 0])
    return min(TARGETS[0][index] + 2.0 * a, TARGETS[1][index] - a) - 0.5 * float(log_prob[0])


@pytest.mark.parametrize("critics", [TARGETS, TARGETS[::-1]], ids=["", "swapped"])  # the smaller is the first, or last
@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_target_goes_on_from_the_reset_where_the_task_terminated_and_pays_for_it(terminated, truncated, critics):
    s = state(critics=critics)
    _, _, y = step(AGENT, s, window([terminated], [truncated]), clock(), KEY)
    expected = 1.0 - 2.0 * terminated - 0.7 + soft(s, 2 if terminated else 1)
    np.testing.assert_allclose(y, [expected], rtol=1e-5)


def test_extensions_are_shown_the_step_as_it_was():
    """What the step led to, not what the reset did."""
    b, seen = window([1]), {}

    class Watch(Spy):
        def on_target(self, target, state, batch):
            seen["next"], seen["reward"] = batch.next.obs, batch.reward
            return super().on_target(target, state, batch)

    AGENT.update(state(), b, KEY, clock(), Watch(AGENT, (), (), clock(), KEY))
    np.testing.assert_array_equal(seen["next"], states([1], 3).obs)
    np.testing.assert_array_equal(seen["reward"], [1.0])


@pytest.mark.parametrize("terminated", [0, 1])
def test_the_gain_follows_the_reference_which_is_a_share_of_the_values_mean(terminated):
    s = state()
    after, metrics, _ = step(AGENT, s, window([terminated]), clock(), KEY)
    expected = 0.7 + 0.25 * (0.5 * soft(s, 2 if terminated else 1) - 0.7)
    assert float(after.gain) == pytest.approx(expected, rel=1e-5) == float(metrics["gain"])


@pytest.mark.parametrize("terminated", [0, 1])
def test_the_critic_of_resets_counts_terminations_beyond_their_rate(terminated):
    s = state()
    s = s.replace(reset_critic=with_table(s.reset_critic, [0.3, 0.0, 0.0, 0.0]))
    after, metrics, _ = step(AGENT, s, window([terminated]), clock(), KEY)
    following = RESETS[2 if terminated else 1]
    error = 0.3 - (terminated - 0.2 + following)
    (layers,) = gradient(after.reset_critic).values()
    np.testing.assert_allclose(layers["Dense_0"]["kernel"].ravel()[0], error, rtol=1e-5)
    assert float(metrics["reset_loss"]) == pytest.approx(0.5 * error**2, rel=1e-4)
    assert float(after.reset_rate) == pytest.approx(0.2 + 0.25 * (0.5 * following - 0.2), rel=1e-5)


@pytest.mark.parametrize(("reset_rate", "direction"), [(0.9, 1), (-0.9, -1)])
def test_the_cost_rises_while_there_are_too_many_resets_and_falls_while_there_are_few(reset_rate, direction):
    after, metrics, _ = step(AGENT, state(reset_rate=reset_rate), window([0]), clock(), KEY)
    # Adam's first step is its step size
    assert float(after.reset_cost()) == pytest.approx(2.0 + direction * 0.02, abs=1e-5)
    assert float(metrics["reset_cost"]) == 2.0  # what this update was made with


def test_the_cost_is_not_negative():
    after, _, _ = step(AGENT, state(reset_rate=-0.9, reset_cost=0.01), window([0]), clock(), KEY)
    assert float(after.reset_cost()) == 0.0


def test_a_buffer_of_one_row_has_no_next_one():
    with pytest.raises(ConfigError, match=r"^RVISAC\(replay.capacity=4\): each of the 4 environments keeps 1 "):
        RVISAC(replay=Replay(capacity=4, batch_size=4, n_envs=4))


def test_what_is_not_learned_yet_starts_at_0():
    s = first(AGENT, SPEC)
    assert float(s.gain) == float(s.reset_rate) == float(s.reset_cost()) == 0.0


def test_each_critic_is_moved_by_its_own_error():
    s = state()
    s = s.replace(critic=with_table(s.critic, [[1.0, 0.0, 0.0, 0.0], [7.0, 0.0, 0.0, 0.0]]))
    after, _, y = step(AGENT, s, window([1]), clock(), KEY)
    (layers,) = gradient(after.critic).values()
    np.testing.assert_allclose(layers["Dense_0"]["kernel"][:, 0, 0], [1.0 - y[0], 7.0 - y[0]], rtol=1e-5)


@pytest.mark.parametrize(("wanted", "direction"), [(100.0, 1), (-100.0, -1)])
def test_too_little_entropy_raises_alpha(wanted, direction):
    agent = dataclasses.replace(AGENT, target_entropy=wanted)
    s = first(agent, SPEC)
    after, metrics, _ = step(agent, s, window([0]), clock(), KEY)
    assert np.sign(float(after.log_alpha()) - float(s.log_alpha())) == direction
    assert float(metrics["alpha"]) == pytest.approx(0.5)


def test_the_default_target_entropy_is_minus_the_actions_size():
    after, metrics, _ = step(AGENT, first(AGENT, SPEC), window([0]), clock(), KEY)
    np.testing.assert_allclose(gradient(after.log_alpha)["value"], 0.5 * (float(metrics["entropy"]) + 1.0), rtol=1e-4)


def test_a_fixed_temperature_stays():
    agent = dataclasses.replace(AGENT, alpha_learning_rate=None)
    s = first(agent, SPEC)
    after, _, _ = step(agent, s, window([0]), clock(), KEY)
    assert equal(after.log_alpha, s.log_alpha)


def test_the_actor_climbs_the_smaller_critic_after_its_step_and_keeps_its_entropy():
    agent = dataclasses.replace(AGENT, learning_rate=1e-9)
    s, b = state(agent), random_batch(SPEC)
    after, _, _ = step(agent, s, jax.tree.map(lambda x: jnp.stack([x, x]), b), clock(), KEY)

    def loss(params: Any) -> jax.Array:
        action, log_prob = s.actor.at(params)(b.now).sample_and_log_prob(stream(KEY, "action"))
        return (0.5 * log_prob - s.critic(b.now, action).min(0)).mean()

    expected = jax.grad(loss)(s.actor.params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), gradient(after.actor), expected)


@pytest.mark.parametrize(("target", "online"), [("target", "critic"), ("reset_target", "reset_critic")])
def test_the_targets_move_a_share_tau_towards_the_critics_after_their_step(target, online):
    s = state()
    after, _, _ = step(AGENT, s, window([0, 1]), clock(), KEY)
    old, new = getattr(s, target).params, getattr(after, online).params
    expected = jax.tree.map(lambda t, o: 0.995 * t + 0.005 * o, old, new)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7), getattr(after, target).params, expected
    )


def test_acting_samples_and_evaluation_takes_the_mode():
    s, x = first(AGENT, SPEC), states([0, 1], 3)
    action, extras = AGENT.act(s, x, KEY, clock(), True)
    assert (action == AGENT.pi(s, x).sample(KEY)).all() and extras == {}
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == jnp.tanh(s.actor(x).loc)).all()
    assert AGENT.q(s, x, action).shape == (2, 2)
