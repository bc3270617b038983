"""REDQ on hand-built batches: the random subset in its target, the mean in its policy, the delay, the temperature."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents.redq import REDQ, State
from ajax.core.errors import ConfigError, SpaceError
from ajax.core.keys import stream
from ajax.core.spaces import Discrete
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
    table,
    target,
    transitions,
    with_table,
)

SPEC = spec(2, 1)
AGENT = REDQ(gamma=0.9, torso=LINEAR, n_critics=4, alpha=0.5, learning_rate=0.01, actor_learning_rate=0.01)
DUE = AGENT.policy_delay - 1
STEP = transitions(2, [0], [[0.2]], [1.0], [1])
# linear in (s0, s1, a): at s1 the critics say 1, 2, 4 and 8, whatever the action
FLAT = [[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 4.0, 0.0], [0.0, 8.0, 0.0]]


def state(agent: REDQ = AGENT, targets: Any = FLAT, online: Any = None) -> State:
    """A state with these target critics, and these online ones."""
    s = first(agent, SPEC)
    critic = s.critic if online is None else with_table(s.critic, online)
    return s.replace(target=with_table(s.target, targets), critic=critic)


def next_log_prob(s: State, key: jax.Array = KEY) -> float:
    """log pi of the next action that an update draws at s1."""
    return float(s.actor(states([1], 2)).sample_and_log_prob(stream(key, "next_action"))[1][0])


@pytest.mark.parametrize(("terminated", "truncated"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_target_is_soft_and_termination_alone_cuts_it(terminated, truncated):
    b = transitions(2, [0], [[0.2]], [1.0], [1], [terminated], [truncated])
    s = state(targets=[[0.0, 3.0, 0.0]] * 4)
    expected = 1.0 + (0.0 if terminated else 0.9 * (3.0 - 0.5 * next_log_prob(s)))
    np.testing.assert_allclose(target(AGENT, s, b), [expected], rtol=1e-5)


def smallest(agent: REDQ, n: int = 200) -> np.ndarray:
    """What the target critics came to in each of many updates: the smallest of those that were drawn."""
    s = state(agent)

    def value(key: jax.Array) -> jax.Array:
        _, log_prob = s.actor(states([1], 2)).sample_and_log_prob(stream(key, "next_action"))
        return (step(agent, s, STEP, clock(), key)[2][0] - 1.0) / 0.9 + 0.5 * log_prob[0]

    return np.asarray(jax.jit(jax.vmap(value))(jax.random.split(KEY, n))).round(3)


def test_the_target_is_the_smaller_of_a_random_pair_without_replacement():
    found, counts = np.unique(smallest(AGENT), return_counts=True)
    np.testing.assert_array_equal(found, [1.0, 2.0, 4.0])  # 8 is never the smaller of two that differ
    expected = np.array([3, 2, 1]) / 6  # pairs of four by their smaller member
    np.testing.assert_allclose(counts / 200, expected, atol=5 * (0.25 / 200) ** 0.5)


@pytest.mark.parametrize(("m", "values"), [(1, [1.0, 2.0, 4.0, 8.0]), (3, [1.0, 2.0]), (4, [1.0])])
def test_the_subset_has_the_size_asked_for(m, values):
    agent = dataclasses.replace(AGENT, n_target_critics=m)
    np.testing.assert_array_equal(np.unique(smallest(agent)), values)


def test_one_subset_serves_the_whole_batch():
    s, b = state(), transitions(2, [0] * 8, [[0.2]] * 8, [0.0] * 8, [1] * 8)
    _, log_prob = s.actor(b.next).sample_and_log_prob(stream(KEY, "next_action"))
    values = target(AGENT, s, b) / 0.9 + 0.5 * np.asarray(log_prob)
    assert len(np.unique(values.round(3))) == 1


def test_every_critic_is_moved_by_its_own_error():
    s = state(online=[[1.0, 0.0, 0.0], [7.0, 0.0, 0.0], [2.0, 0.0, 0.0], [3.0, 0.0, 0.0]])
    after, metrics, y = step(AGENT, s, STEP, clock(), KEY)
    (layers,) = gradient(after.critic).values()
    errors = np.array([1.0, 7.0, 2.0, 3.0]) - float(y[0])
    np.testing.assert_allclose(layers["Dense_0"]["bias"][:, 0], 2 * errors, rtol=1e-4)
    assert float(metrics["critic_loss"]) == pytest.approx(np.sum(errors**2), rel=1e-5)


def mode(agent: REDQ, online: Any) -> float:
    """Where the policy's mode at s0 is after one step of a policy that began at 0."""
    s = state(agent, online=online)
    s = s.replace(actor=with_table(s.actor, [[0.0, -1.0], [0.0, -1.0]]))
    b = transitions(2, [0] * 64, [[0.0]] * 64, [0.0] * 64, [1] * 64, [1] * 64)
    after, _, _ = step(agent, s, b, clock(DUE), KEY)
    return float(agent.pi(after, states([0], 2)).mode()[0, 0])


def test_the_policy_climbs_the_mean_of_all_critics():
    agent = dataclasses.replace(AGENT, alpha=1e-6, learning_rate=1e-9)
    # the mean's slope is 0.5; the smallest at every action, and the first, fall
    assert mode(agent, [[-9.0, 0.0, -1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]) > 0
    assert mode(agent, [[-9.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 0.0, -1.0], [0.0, 0.0, -1.0]]) < 0


def test_the_policy_and_the_temperature_move_in_the_last_update_of_a_round():
    agent = dataclasses.replace(AGENT, torso=SMALL, policy_delay=3)
    s = first(agent, SPEC)
    for update in range(6):
        before = s
        s, metrics, _ = step(agent, s, random_batch(SPEC, 8, update), clock(update), KEY)
        still = [equal(getattr(s, n), getattr(before, n)) for n in ("actor", "log_alpha", "critic", "target")]
        assert still == [update % 3 != 2] * 2 + [False] * 2
        assert (metrics["actor_loss"] != 0) == (metrics["entropy"] != 0) == (update % 3 == 2)
    assert (steps_taken(s.critic), steps_taken(s.actor), steps_taken(s.log_alpha)) == (6, 2, 2)


@pytest.mark.parametrize(("wanted", "default"), [(None, -1.0), (2.0, 2.0)])
def test_the_temperature_steers_entropy_to_its_target(wanted, default):
    """d/d log alpha of alpha (entropy - target): alpha falls where there is too much entropy."""
    agent = dataclasses.replace(AGENT, target_entropy=wanted)
    after, metrics, _ = step(agent, first(agent, SPEC), random_batch(SPEC), clock(DUE), KEY)
    entropy = float(metrics["entropy"]) / agent.policy_delay  # an actor step stands for all updates of its delay
    np.testing.assert_allclose(gradient(after.log_alpha)["value"], 0.5 * (entropy - default), rtol=1e-4)


def test_a_fixed_temperature_stays():
    agent = dataclasses.replace(AGENT, alpha_learning_rate=None)
    s = first(agent, SPEC)
    after, metrics, _ = step(agent, s, random_batch(SPEC), clock(DUE), KEY)
    assert equal(after.log_alpha, s.log_alpha) and float(metrics["alpha"]) == pytest.approx(0.5)


def test_targets_move_a_share_tau_towards_the_critics_after_their_step():
    s = state()
    after, _, _ = step(AGENT, s, STEP, clock(), KEY)
    np.testing.assert_allclose(table(after.target), 0.995 * table(s.target) + 0.005 * table(after.critic), rtol=1e-5)


def test_the_first_state():
    s = first(dataclasses.replace(AGENT, torso=SMALL), SPEC)
    assert equal(s.critic.params, s.target.params) and s.target.opt == ()
    assert float(s.log_alpha()) == pytest.approx(np.log(0.5))
    q = AGENT.q(s, states([0, 1], 2), jnp.zeros((2, 1)))
    assert q.shape == (4, 2) and len(np.unique(q[:, 0])) == 4


def test_acting_samples_and_evaluation_takes_the_mode():
    s, x = first(AGENT, SPEC), states([0] * 200, 2)
    explored, extras = AGENT.act(s, x, KEY, clock(), True)
    assert float(explored.std()) > 0.1 and float(jnp.abs(explored).max()) < 1 and extras == {}
    assert (AGENT.act(s, x, KEY, clock(), False)[0] == AGENT.pi(s, x).mode()).all()


def test_the_papers_defaults():
    agent = REDQ()
    assert (agent.n_critics, agent.n_target_critics, agent.replay.updates, agent.policy_delay) == (10, 2, 20, 20)


def test_what_it_refuses():
    with pytest.raises(ConfigError, match=r"REDQ\(n_target_critics=5, n_critics=4\): .* Lower n_target_critics"):
        REDQ(n_critics=4, n_target_critics=5)
    with pytest.raises(SpaceError, match="REDQ needs continuous actions"):
        REDQ().check_spaces(spec(2, Discrete(2)))
