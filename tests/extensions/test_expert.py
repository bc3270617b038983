"""Experts: what is cloned, imitated, asked and handed over, in numbers computed by hand."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax import Linear
from ajax.agents.ppo import PPO
from ajax.agents.td3 import TD3, State
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.expert import Expert, Stateless
from ajax.core.records import Inputs, Spec
from ajax.core.spaces import Box, Discrete
from ajax.extensions.expert import IBRL, BehaviorCloning, ExpertReturn, Imitation, JumpStart, ResidualPolicy
from tests.agents.build import KEY, LINEAR, clock, spec, states
from tests.extensions.build import batch, fixed, view

LINE = Spec(Box(-9.0, 9.0, (1,)), Box(-2.0, 6.0, (1,)))
"""One number, and actions 2 + 4 a in a box from -2 to 6."""
GUIDE = Stateless(lambda obs: 2.0 + 2.0 * obs)
"""obs / 2 in agent units."""
ACTOR = fixed(lambda w, x: w * x.obs, jnp.float32(0.25))
CRITIC = fixed(lambda _, x, a: jnp.stack([-jnp.square(a[:, 0] - 0.4), 1.0 - a[:, 0]]))
STATE = State(actor=ACTOR, critic=CRITIC, target_actor=ACTOR, target_critic=CRITIC)


def td3_view(extension, b, **parts):
    return view(TD3(gamma=0.5), STATE, b, extension, LINE, **parts)


ROWS = batch([[1.0], [2.0]], [[0.0], [0.0]], [1.0, 2.0], [[2.0], [4.0]], expert_action=[[0.5], [0.0]])


def imitation_loss(w, **fields):
    extension = Imitation(expert=GUIDE, **fields)
    return extension.actor_loss(td3_view(extension, ROWS, net=ACTOR.at(w), clock=clock(step=500.0)))


def test_the_imitation_term_and_its_gradient():
    value, slope = jax.value_and_grad(imitation_loss)(jnp.float32(0.25), weight=2.0)
    np.testing.assert_allclose([value, slope], [2 * (0.0625 + 0.25) / 2, 2 * (-0.5 + 2.0) / 2])


def test_the_q_filter_keeps_the_rows_whose_expert_is_better():
    """Q of our actions 0.25 and 0.5 is -0.0225 and -0.01; of the expert's 0.5 and 0 it is -0.01 and -0.16."""
    value, slope = jax.value_and_grad(imitation_loss)(jnp.float32(0.25), weight=2.0, q_filter=True)
    np.testing.assert_allclose([value, slope], [2 * 0.0625 / 2, 2 * -0.5 / 2])
    assert Imitation(expert=GUIDE).needs == {"pi"} and Imitation(expert=GUIDE, q_filter=True).needs == {"pi", "q"}


def test_its_weight_is_annealed():
    np.testing.assert_allclose(imitation_loss(jnp.float32(0.25), weight=Linear(start=2.0, end=0.0)), 0.15625)


def test_without_a_recorded_action_it_says_so():
    extension = Imitation(expert=GUIDE)
    with pytest.raises(CapabilityError, match="no 'expert_action'"):
        extension.actor_loss(td3_view(extension, ROWS.replace(extras={}), net=ACTOR))


def test_what_is_recorded_is_the_experts_action_at_the_raw_observation():
    b = ROWS.replace(now=Inputs(jnp.full((2, 1), 99.0), jnp.array([[1.0], [-0.5]])))
    extension = Imitation(expert=GUIDE)
    found, _ = extension.record(td3_view(extension, b, elapsed=jnp.zeros(2)))
    np.testing.assert_allclose(found["expert_action"], [[0.5], [-0.25]])


def test_ibrl_takes_the_action_that_the_least_critic_values_higher():
    """min Q' at ours (0.5, 0.9): -0.01, -0.25; at the expert's (0.45, 1): -0.0025, -0.36."""
    b = batch([[0.9], [3.0]], [[0.5], [0.9]], [0.0, 0.0], [[0.0], [0.0]])
    extension = IBRL(expert=GUIDE)
    for phase in (extension.act, extension.eval_act):
        action, _ = phase(b.action, td3_view(extension, b))
        np.testing.assert_allclose(action, [[0.45], [0.9]], rtol=1e-6)


def test_ibrls_target_is_the_higher_one():
    """The expert does 0.8 and 1 at the next observations, worth min Q' = -0.16 and -0.36."""
    b = batch([[2.0]] * 3, [[0.0]] * 3, [1.0, 1.0, 1.0], [[1.6], [2.0], [1.6]], terminated=[0.0, 0.0, 1.0])
    extension = IBRL(expert=GUIDE)
    target = extension.on_target(jnp.array([0.0, 5.0, 0.0]), td3_view(extension, b))
    np.testing.assert_allclose(target, [1.0 + 0.5 * -0.16, 5.0, 1.0], rtol=1e-6)


def test_ibrl_refuses_an_expert_that_remembers():
    class Remembers(Expert):
        """Counts."""

        def init(self):
            return jnp.int32(0)

    with pytest.raises(ConfigError, match=r"IBRL\(expert=Remembers\): .* without memory"):
        IBRL(expert=Remembers())


def test_a_residual_is_added_to_the_expert_and_clipped():
    extension = ResidualPolicy(expert=GUIDE, scale=0.5)
    seen = td3_view(extension, batch([[1.0], [1.5]], [[0.0]] * 2, [0.0] * 2, [[0.0]] * 2), elapsed=jnp.zeros(2))
    np.testing.assert_allclose(extension.execute(jnp.array([[-0.4], [0.9]]), seen)[0], [[0.3], [1.0]])
    with pytest.raises(CapabilityError, match="discrete"):
        extension.bind(Spec(Box(0.0, 1.0, (1,)), Discrete(2)))


def test_the_expert_takes_the_first_steps():
    b = batch([[1.0]] * 3, [[0.0]] * 3, [0.0] * 3, [[0.0]] * 3)
    extension = JumpStart(expert=GUIDE, steps=Linear(start=4.0, end=0.0))
    for step, expected in ((0.0, [0.5, 0.5, -1.0]), (500.0, [0.5, -1.0, -1.0]), (1000.0, [-1.0] * 3)):
        seen = td3_view(extension, b, elapsed=jnp.array([0.0, 2.0, 4.0]), clock=clock(step=step))
        np.testing.assert_allclose(extension.act(jnp.full((3, 1), -1.0), seen)[0][:, 0], expected)


def test_cloning_makes_the_most_likely_action_the_experts():
    where = spec(3, 1)
    agent = TD3(torso=LINEAR)
    state = agent.init(where, KEY)
    action = jnp.array([0.5, -0.5, 0.0])
    rows = batch(
        jnp.eye(3)[None].repeat(4, 0), action[None, :, None].repeat(4, 0), jnp.zeros((4, 3)), jnp.zeros((4, 3, 3))
    )
    extension = BehaviorCloning(updates=300, batch_size=24, learning_rate=0.03)
    after, loss = extension.pretrain(view(agent, state, rows, extension, where))
    mode = agent.pi(after, states([0, 1, 2], 3))
    np.testing.assert_allclose(mode[:, 0], action, atol=0.02)
    assert 0 <= loss < 1e-3 and extension.eval_metrics(view(agent, after, None, extension, where, loss)) == {
        "cloning_loss": loss
    }
    np.testing.assert_array_equal(*(jax.tree.leaves(net.params)[1] for net in (after.actor, after.target_actor)))
    for before, now in ((state.critic, after.critic), (state.actor.opt, after.actor.opt)):
        assert jax.tree.all(jax.tree.map(lambda a, b: (a == b).all(), before, now))


def test_cloning_discrete_actions_makes_them_likely():
    where = spec(2, Discrete(3))
    agent = PPO(torso=LINEAR)
    rows = batch(jnp.eye(2)[None].repeat(4, 0), jnp.array([[2, 0]] * 4), jnp.zeros((4, 2)), jnp.zeros((4, 2, 2)))
    extension = BehaviorCloning(updates=200, batch_size=16, learning_rate=0.05)
    after, loss = extension.pretrain(view(agent, agent.init(where, KEY), rows, extension, where))
    probabilities = jnp.exp(agent.pi(after, states([0, 1], 2)).log_probs)
    assert probabilities[0, 2] > 0.95 and probabilities[1, 0] > 0.95
    np.testing.assert_allclose(loss, -jnp.log(probabilities[jnp.arange(2), jnp.array([2, 0])]).mean(), atol=0.02)


def test_cloning_nobody_is_refused():
    extension = BehaviorCloning()
    with pytest.raises(CapabilityError, match=r"nobody to clone\. Give expert"):
        extension.pretrain(td3_view(extension, None))
    assert extension.demonstrator() is None and BehaviorCloning(expert=GUIDE, steps=7).pretrain_rows == 7


def test_the_expert_is_the_rival():
    assert ExpertReturn(expert=GUIDE).rival() is GUIDE and ExpertReturn(expert=GUIDE).phases() == ()
