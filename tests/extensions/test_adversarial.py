"""GAIL's reward and discriminator."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import PPO, Dataset, Torso
from ajax.core.records import Inputs, Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.adversarial import GAIL, Discriminator
from tests.agents.build import KEY
from tests.extensions.build import batch, fixed, view

LINE = Spec(Box(-9.0, 9.0, (1,)), Box(-2.0, 6.0, (1,)))
DATA = Dataset(
    obs=np.array([[1.0], [3.0]] * 4),
    action=np.full((8, 1), 4.0),
    reward=np.zeros(8),
    terminated=np.zeros(8, bool),
    next_obs=np.zeros((8, 1)),
)


def test_the_reward_is_minus_log_of_one_minus_d():
    """The logit is (obs - 2) / std + action, at the expert's mean 2 and deviation 1 (and 0.001)."""
    net = fixed(lambda _, x: x.sum(-1, keepdims=True))
    b = batch([[9.0], [9.0]], [[0.5], [-1.0]], [1.0, 2.0], [[0.0], [0.0]])
    b = b.replace(now=Inputs(b.now.obs, jnp.array([[3.0], [2.0]])))
    extension = GAIL(data=DATA, keep_reward=0.5).bind(LINE)
    seen = view(PPO(), None, b, extension, LINE, Discriminator(net, jnp.zeros(()), jnp.zeros(())))
    d = 1 / (1 + np.exp(-np.array([1 / 1.001 + 0.5, -1.0])))
    np.testing.assert_allclose(extension.reward(b.reward, seen), -np.log(1 - d) + [0.5, 1.0], rtol=1e-5)
    rollout = jax.tree.map(lambda x: x[:, None], b)
    again = extension.reward(rollout.reward, seen.replace(batch=rollout))
    np.testing.assert_allclose(again[:, 0], -np.log(1 - d) + [0.5, 1.0], rtol=1e-5)


@pytest.mark.parametrize("discrete", [False, True])
def test_the_discriminator_tells_the_expert_from_the_agent(discrete):
    where = Spec(LINE.observation, Discrete(2)) if discrete else LINE
    action = np.ones(8, np.int32) if discrete else DATA.action
    data = Dataset(DATA.obs, action, DATA.reward, DATA.terminated, DATA.next_obs)
    extension = GAIL(data=data, learning_rate=0.05, torso=Torso(widths=(8,))).bind(where)
    ours = batch([[1.0], [3.0]] * 8, [0] * 16 if discrete else [[-0.5]] * 16, [0.0] * 16, [[0.0]] * 16)
    seen = view(PPO(), None, ours, extension, where)
    first, own = extension.post_update(seen), seen.own
    step = jax.jit(lambda own, key: extension.post_update(seen.replace(own=own, key=key)))
    for key in jax.random.split(KEY, 60):
        own = step(own, key)
    assert own.accuracy == 1.0 and own.loss < 0.1 * first.loss
    theirs = ours.replace(action=jnp.ones(16, jnp.int32) if discrete else jnp.full((16, 1), 0.5))
    low = extension.reward(ours.reward, seen.replace(own=own))
    high = extension.reward(ours.reward, seen.replace(own=own, batch=theirs))
    assert high.min() > 10 * low.max()
    assert extension.eval_metrics(seen.replace(own=own)) == {"gail_loss": own.loss, "gail_accuracy": own.accuracy}


def test_the_first_loss_is_that_of_a_coin():
    extension = GAIL(data=DATA).bind(LINE)
    zero = Discriminator(fixed(lambda w, x: w * x[:, :1], jnp.float32(0.0)), jnp.zeros(()), jnp.zeros(()))
    from ajax.core.learn import adam

    zero = zero.replace(net=zero.net.replace(opt=adam().init(zero.net.params)))
    b = batch([[1.0]] * 4, [[0.0]] * 4, [0.0] * 4, [[0.0]] * 4)
    own = extension.post_update(view(PPO(), None, b, extension, LINE, zero))
    np.testing.assert_allclose(own.loss, np.log(2.0), rtol=1e-6)
