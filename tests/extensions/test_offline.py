"""Conservative values and TD3+BC's pull, against integrals and numbers computed by hand."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import DQN, PPO, SAC, TD3
from ajax.agents import sac, td3
from ajax.core.distributions import TanhNormal
from ajax.core.errors import CapabilityError
from ajax.core.hooks import check_extensions
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.offline import CQL, TD3BC, CalQL
from ajax.extensions.pretrain import MCPretrain
from tests.extensions.build import batch, fixed, view

LINE = Spec(Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (1,)))
ROWS = batch([[1.0], [2.0]], [[0.5], [-0.5]], [1.0, 2.0], [[2.0], [4.0]])
LINEAR_Q = fixed(lambda k, x, a: jnp.stack([k * a[:, 0], jnp.zeros(a.shape[0])]), jnp.float32(1.0))
"""Q_1 = k a, Q_2 = 0."""
GAUSS = fixed(lambda _, x: TanhNormal(0.1 * x.obs, jnp.full_like(x.obs, math.log(2.0))))
MEAN = fixed(lambda w, x: w * x.obs, jnp.float32(0.25))

SAC_STATE = sac.State(actor=GAUSS, critic=LINEAR_Q, target=LINEAR_Q, log_alpha=GAUSS)
TD3_STATE = td3.State(actor=MEAN, critic=LINEAR_Q, target_actor=MEAN, target_critic=LINEAR_Q)

INTEGRAL = math.log(math.e - 1 / math.e)
"""log of the integral of exp(a) over [-1, 1]."""


def test_the_exact_sum_over_discrete_actions():
    """Of a critic's Q(s, .) = (0, log 3) and (1, 1): logsumexp log 4 and 1 + log 2."""
    where = Spec(Box(-9.0, 9.0, (1,)), Discrete(2))
    table = fixed(lambda q, x: q, jnp.array([[0.0, math.log(3.0)], [1.0, 1.0]]))
    b = batch([[0.0]] * 2, [1, 0], [0.0] * 2, [[0.0]] * 2)
    extension = CQL(alpha=2.0)
    value, slope = jax.value_and_grad(
        lambda q: extension.critic_loss(view(DQN(), None, b, extension, where, net=table.at(q)))
    )(table.params)
    np.testing.assert_allclose(value, 2 * (math.log(4) - math.log(3) + math.log(2)) / 2, rtol=1e-6)
    np.testing.assert_allclose(slope, [[0.25, -0.25], [-0.5, 0.5]], atol=1e-6)
    both = fixed(lambda q, x, a=None: jnp.stack([q, q]), table.params)  # an ensemble's terms are summed
    np.testing.assert_allclose(extension.critic_loss(view(SAC(), None, b, extension, where, net=both)), 2 * value)


@pytest.mark.parametrize("agent, state", [(SAC(), SAC_STATE), (TD3(), TD3_STATE)], ids=["SAC", "TD3"])
def test_the_integral_over_a_box(agent, state):
    """Q_1 = a: log integral e^a - mean of the data's (0.5, -0.5); Q_2 = 0: log 2."""
    extension = CQL(alpha=1.0, samples=20_000)
    value, slope = jax.value_and_grad(
        lambda k: extension.critic_loss(view(agent, state, ROWS, extension, LINE, net=LINEAR_Q.at(k)))
    )(jnp.float32(1.0))
    np.testing.assert_allclose(value, INTEGRAL + math.log(2), atol=0.02)
    mean = (math.e + 1 / math.e) / (math.e - 1 / math.e) - 1  # of a under the density e^a
    np.testing.assert_allclose(slope, mean, atol=0.02)


def test_the_uniform_actions_alone_are_exact_where_q_is_flat():
    extension = CQL(alpha=3.0, samples=2)
    flat = LINEAR_Q.at(jnp.float32(0.0))
    value = extension.critic_loss(view(TD3(), TD3_STATE, ROWS, extension, LINE, net=flat))
    np.testing.assert_allclose(value, 3.0 * 2 * math.log(2), rtol=1e-6)


def reference_view(extension, reference, **parts):
    seen = view(SAC(), SAC_STATE, ROWS, extension, LINE, **parts)
    pretrained = MCPretrain()
    return seen.replace(stack=((pretrained, lambda x, a: reference), *seen.stack))


def test_the_policys_values_are_at_least_the_reference():
    extension = CalQL()
    bounded = extension.bounded(jnp.array([[[1.0, -3.0]]]), reference_view(extension, jnp.array([0.5, 2.0])))
    np.testing.assert_array_equal(bounded, [[[1.0, 2.0]]])


def test_a_low_reference_leaves_cql_as_it_is_and_a_high_one_stops_its_push():
    plain, calibrated = CQL(alpha=1.0, samples=50), CalQL(alpha=1.0, samples=50)

    def slope(extension, reference):
        def loss(k):
            return extension.critic_loss(reference_view(extension, jnp.full(2, reference), net=LINEAR_Q.at(k)))

        return jax.value_and_grad(loss)(jnp.float32(1.0))

    np.testing.assert_array_equal(slope(plain, 0.0), slope(calibrated, -50.0))
    value, gradient = slope(calibrated, 50.0)
    assert value > 45 and abs(gradient) < 1e-6  # the data's mean action is 0


def test_a_reference_is_asked_for():
    with pytest.raises(CapabilityError, match=r"CalQL needs phi\*, which SAC has not, nor does an extension before it"):
        check_extensions(SAC(), (CalQL(), MCPretrain()))
    check_extensions(SAC(), (MCPretrain(), CalQL()))


def test_the_pull_to_the_datas_actions():
    """pi = 0.25, 0.5, Q_1 = 2 a there; mean |Q| = 0.75; squared distances (0.25)^2 and 1."""
    state = TD3_STATE.replace(critic=LINEAR_Q.at(jnp.float32(-2.0)))
    extension = TD3BC(alpha=1.5)
    value, slope = jax.value_and_grad(
        lambda w: extension.actor_loss(view(TD3(), state, ROWS, extension, LINE, net=MEAN.at(w)))
    )(jnp.float32(0.25))
    np.testing.assert_allclose(value, 0.5 * (0.0625 + 1.0) / 2)
    np.testing.assert_allclose(slope, 0.5 * (2 * -0.25 * 1 + 2 * 1.0 * 2) / 2)


def test_what_has_no_meaning_for_discrete_actions_or_without_a_critic_is_refused():
    where = Spec(Box(-9.0, 9.0, (1,)), Discrete(2))
    with pytest.raises(CapabilityError, match="discrete"):
        TD3BC().actor_loss(view(SAC(), None, ROWS, TD3BC(), where, net=MEAN))
    with pytest.raises(CapabilityError, match="discrete"):
        CalQL().critic_loss(view(SAC(), None, ROWS, CalQL(), where, net=MEAN))
    with pytest.raises(CapabilityError, match="TD3BC needs q, which PPO has not"):
        check_extensions(PPO(), (TD3BC(),))
