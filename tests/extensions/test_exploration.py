"""Bonuses and lasting noise, in numbers computed by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import SAC, Linear, Torso
from ajax.core.errors import CapabilityError
from ajax.core.learn import adam
from ajax.core.records import Inputs, Spec
from ajax.core.spaces import Box, Discrete
from ajax.core.statistics import RunningStats
from ajax.extensions.exploration import RND, Distillation, OrnsteinUhlenbeck
from tests.agents.build import KEY, clock
from tests.extensions.build import batch, fixed, view

PLANE = Spec(Box(-9.0, 9.0, (2,)), Box(-1.0, 1.0, (1,)))


def known(error: RunningStats) -> Distillation:
    """The target says the observation, the predictor w times a vector of ones."""
    predictor = fixed(lambda w, x: w * jnp.ones_like(x), jnp.float32(1.0))
    predictor = predictor.replace(opt=adam().init(predictor.params))
    return Distillation(fixed(lambda _, x: x), predictor, RunningStats.zeros((2,)), error)


def test_the_bonus_is_the_error_in_units_of_its_deviation():
    """Errors ((3 - 1)^2 + 0) / 2 = 2 and (1 + 1) / 2 = 1, of normalized inputs; their past deviation is 4."""
    error = RunningStats(jnp.float32(0.0), jnp.float32(32.0), jnp.float32(2.0))
    b = batch(np.zeros((2, 2)), [[0.0]] * 2, [10.0, 20.0], [[99.0, 99.0]] * 2)
    b = b.replace(next=Inputs(b.next.obs, jnp.array([[3.0, 1.0], [0.0, 2.0]])))
    extension = RND(scale=Linear(start=2.0, end=0.0))
    seen = view(SAC(), None, b, extension, PLANE, known(error), clock=clock(step=500.0))
    np.testing.assert_allclose(extension.reward(b.reward, seen), [10.0 + 2 / 4, 20.0 + 1 / 4], rtol=1e-6)
    rollout = jax.tree.map(lambda x: x[:, None], b)
    again = extension.reward(rollout.reward, seen.replace(batch=rollout))
    np.testing.assert_allclose(again, [[10.5], [20.25]], rtol=1e-6)


def test_the_predictor_learns_what_it_is_shown_and_the_target_stays():
    extension = RND(torso=Torso(widths=(16,)), features=4, learning_rate=1e-2)
    own = start = extension.init(SAC(), PLANE, KEY)
    b = batch(np.zeros((8, 2)), [[0.0]] * 8, [0.0] * 8, np.eye(2).repeat(4, 0))
    seen = view(SAC(), None, b, extension, PLANE, own)
    step = jax.jit(lambda own: extension.post_update(seen.replace(own=own)))
    first = extension.reward(b.reward, seen.replace(own=step(own)))
    for _ in range(100):
        own = step(own)
    assert extension.reward(b.reward, seen.replace(own=own)).max() < 0.1 * first.min()
    assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), start.target.params, own.target.params))
    np.testing.assert_allclose(own.obs.mean, [0.5, 0.5], rtol=1e-5)
    assert own.error.count == 800 and extension.eval_metrics(seen.replace(own=own))["rnd_error"] == own.error.mean


def test_unseen_observations_pay_more():
    extension = RND(torso=Torso(widths=(16,)), features=4, learning_rate=1e-2)
    b = batch(np.zeros((8, 2)), [[0.0]] * 8, [0.0] * 8, np.eye(2).repeat(4, 0))
    own = extension.init(SAC(), PLANE, KEY)
    seen = view(SAC(), None, b, extension, PLANE, own)
    step = jax.jit(lambda own: extension.post_update(seen.replace(own=own)))
    for _ in range(100):
        own = step(own)
    other = b.replace(next=Inputs(-jnp.ones((8, 2))))
    known_bonus, new_bonus = (extension.reward(b.reward, seen.replace(own=own, batch=x)) for x in (b, other))
    assert new_bonus.min() > 5 * known_bonus.max()


def noise(extension, each, action, elapsed):
    b = batch(np.zeros((2, 2)), action, [0.0] * 2, np.zeros((2, 2)))
    seen = view(SAC(), None, b, extension, PLANE, each=each, elapsed=jnp.array(elapsed))
    return extension.act(b.action, seen)


def test_noise_reverts_and_starts_again_with_an_episode():
    extension = OrnsteinUhlenbeck(theta=0.25, sigma=0.0, dt=2.0)
    action, each = noise(extension, jnp.array([[0.4], [0.4]]), [[0.1], [0.1]], [3.0, 0.0])
    np.testing.assert_allclose(each, [[0.2], [0.0]])
    np.testing.assert_allclose(action, [[0.3], [0.1]])


def test_noise_has_its_size_and_actions_stay_in_the_box():
    extension = OrnsteinUhlenbeck(theta=0.0, sigma=0.5, dt=4.0)
    action, each = noise(extension, jnp.zeros((2, 1)), [[0.0], [0.99]], [1.0, 1.0])
    np.testing.assert_allclose(each, 0.5 * 2.0 * jax.random.normal(KEY, (2, 1)))
    np.testing.assert_allclose(action, np.clip(np.array([[0.0], [0.99]]) + each, -1, 1))


def test_discrete_actions_are_refused():
    with pytest.raises(CapabilityError, match="discrete"):
        OrnsteinUhlenbeck().bind(Spec(Box(0.0, 1.0, (1,)), Discrete(2)))
