"""phi*: returns to an episode's end, and tables that regression on returns and on one-step targets must find."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import DQN, SAC, Torso
from ajax.core.errors import CapabilityError
from ajax.core.records import Batch, Inputs, Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.pretrain import BellmanPretrain, MCPretrain, monte_carlo
from tests.agents.build import KEY, states
from tests.extensions.build import view

GAMMA = 0.5
CHAIN = Spec(Box(0.0, 1.0, (3,)), Discrete(2))
"""s0 -> s1 -> s2 -> end; the data take action 1 in s1, else 0; rewards 1, 2, 4."""
VALUES = {(0, 0): 1 + 0.5 * (2 + 0.5 * 4), (1, 1): 2 + 0.5 * 4, (2, 0): 4.0}


def chain(episodes: int, cut: int = 0) -> Batch:
    """Whole episodes, then the first `cut` steps of another; (time, 1)."""
    s = np.array([*[0, 1, 2] * episodes, *range(cut)])
    eye = np.eye(4, 3)
    ended = jnp.asarray(s == 2, jnp.float32)[:, None]
    return Batch(
        Inputs(jnp.asarray(eye[s], jnp.float32)[:, None]),
        jnp.asarray(s == 1, jnp.int32)[:, None],
        jnp.asarray([1.0, 2.0, 4.0])[s][:, None],
        ended,
        jnp.zeros_like(ended),
        Inputs(jnp.asarray(eye[s + 1], jnp.float32)[:, None]),
    )


def test_returns_go_to_the_end_of_the_episode_and_unfinished_ones_are_marked():
    returns, seen = monte_carlo(chain(1, cut=2), GAMMA)
    np.testing.assert_allclose(returns[:, 0], [3.0, 4.0, 4.0, 2.0, 2.0])
    np.testing.assert_array_equal(seen[:, 0], [1, 1, 1, 0, 0])
    rows = chain(1)
    cut = rows.replace(terminated=rows.truncated, truncated=rows.terminated)
    np.testing.assert_allclose(monte_carlo(cut, GAMMA)[0][:, 0], [3.0, 4.0, 4.0])
    np.testing.assert_array_equal(monte_carlo(cut, GAMMA)[1], 1.0)


@pytest.mark.parametrize("cls, updates", [(MCPretrain, 300), (BellmanPretrain, 600)])
def test_the_table_of_a_chain_is_found(cls, updates):
    options = {"updates": updates, "batch_size": 32, "learning_rate": 0.05, "torso": Torso(widths=())}
    extension = cls(**options, **({"tau": 0.1} if cls is BellmanPretrain else {}))
    seen = view(DQN(gamma=GAMMA), None, chain(4, cut=1), extension, CHAIN)
    _, own = extension.pretrain(seen)
    phi = extension.provide("phi*", own)
    s, a = (jnp.array(x) for x in zip(*VALUES, strict=True))
    np.testing.assert_allclose(phi(states(s, 3), a), list(VALUES.values()), atol=0.05)
    assert own.loss < 0.01 and extension.eval_metrics(seen.replace(own=own)) == {"phi_loss": own.loss}
    assert seen.replace(stack=((extension, own),)).ask("phi*") is own


def test_phi_reads_raw_observations_and_actions_in_a_box():
    where = Spec(Box(-9.0, 9.0, (1,)), Box(-1.0, 1.0, (1,)))
    extension = MCPretrain(updates=400, batch_size=32, learning_rate=0.05, torso=Torso(widths=()))
    rng = np.random.default_rng(0)
    obs, action = (jnp.asarray(rng.uniform(-1, 1, (64, 1, 1)), jnp.float32) for _ in range(2))
    ones = jnp.ones((64, 1))
    b = Batch(Inputs(99 * obs, obs), action, (2 * obs - action)[..., 0], ones, 0 * ones, Inputs(99 * obs, obs))
    _, own = extension.pretrain(view(SAC(), None, b, extension, where))
    phi = own(Inputs(jnp.zeros((2, 1)), jnp.array([[0.5], [-0.5]])), jnp.array([[1.0], [0.0]]))
    np.testing.assert_allclose(phi, [0.0, -1.0], atol=0.02)


def test_bellman_leaves_out_what_has_no_next_action():
    rows = chain(2)
    cut = rows.replace(terminated=jnp.zeros((6, 1)), truncated=rows.terminated)
    extension = BellmanPretrain(updates=1, batch_size=64, learning_rate=1e-8, torso=Torso(widths=()))
    own = extension.init(DQN(), CHAIN, KEY)
    table = jnp.array([[0.0, 9.0], [9.0, 0.0], [7.0, 9.0]])
    zero = own.net.at(jax.tree.map(lambda x: table if x.ndim == 2 else 0 * x, own.net.params))
    loss = extension.learn(own.replace(net=zero), cut, GAMMA, KEY).loss
    index = jax.random.randint(jax.random.split(KEY, 1)[0], (64,), 0, 6)
    errors = np.array([(1 + 0.5 * 0) ** 2, (2 + 0.5 * 7.0) ** 2, np.nan] * 2)[index]
    np.testing.assert_allclose(loss, np.nanmean(errors), rtol=1e-5)


def test_without_data_it_says_so():
    with pytest.raises(CapabilityError, match="MCPretrain has nothing to learn from"):
        MCPretrain().pretrain(view(DQN(), None, None, MCPretrain(), CHAIN))


def test_returns_without_an_end_are_no_reference():
    extension = MCPretrain(updates=2, batch_size=4, torso=Torso(widths=()))
    _, own = extension.pretrain(view(DQN(gamma=GAMMA), None, chain(0, cut=2), extension, CHAIN))
    assert np.isnan(own.loss)
