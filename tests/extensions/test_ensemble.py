"""The critics' slopes in the action, and the angles between them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import SAC
from ajax.core.errors import CapabilityError
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.ensemble import CriticDiversity
from tests.extensions.build import batch, fixed, view

PLANE = Spec(Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (2,)))
ROWS = batch([[1.0], [2.0]], [[0.5, 0.1], [-0.5, 0.2]], [1.0, 2.0], [[2.0], [4.0]])


def diversity(slopes, **fields):
    """Q_i = slopes_i . a, the first state's twice as steep."""
    net = fixed(lambda w, x, a: jnp.einsum("id,bd->ib", w, a) * x.obs[None, :, 0], slopes)
    extension = CriticDiversity(**fields)
    return extension.critic_loss(view(SAC(), None, ROWS, extension, PLANE, net=net))


def test_the_term_is_the_sum_of_cosines_of_pairs():
    np.testing.assert_allclose(diversity(jnp.array([[1.0, 0.0], [3.0, 4.0]]), eta=2.0), 2 * 2 * 0.6, rtol=1e-6)
    three = jnp.array([[1.0, 0.0], [0.0, 5.0], [-2.0, 0.0]])
    np.testing.assert_allclose(diversity(three), 2 * (0 - 1 + 0) / 2, atol=1e-6)


def test_it_turns_slopes_apart():
    slope = jax.grad(diversity)(jnp.array([[1.0, 0.0], [1.0, 1.0]]))
    assert slope[0, 1] > 0 and slope[0, 0] == pytest.approx(0, abs=1e-6)


def test_one_critic_and_discrete_actions_are_refused():
    with pytest.raises(CapabilityError, match="has one"):
        diversity(jnp.array([[1.0, 0.0]]))
    discrete = Spec(PLANE.observation, Discrete(2))
    with pytest.raises(CapabilityError, match="discrete"):
        CriticDiversity().critic_loss(view(SAC(), None, ROWS, CriticDiversity(), discrete, net=fixed(lambda *_: 0)))
