"""IQL: learns from a dataset without ever asking for the value of an action that is not in it.

Kostrikov, Nair & Levine 2022, "Offline Reinforcement Learning with Implicit Q-Learning", arXiv:2110.06169, algorithm 1.

Differs from the paper:
- Initial weights are uniform in +- sqrt(3 / fan_in) (LeCun); the authors' code (ikostrikov/implicit_q_learning) has
  orthogonal ones.
- The order of the steps, the smaller of two critics, the limit of the weights and the policy's shape are the code's
  (learner.py, critic.py, actor.py, policy.py); the paper leaves them out of algorithm 1.
- Rewards are taken as they are: the launcher's rescaling by the dataset's range of returns is the user's.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Replay
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make, polyak
from ajax.core.losses import expectile
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Cosine, Scheduled, value_at
from ajax.networks.heads import QEnsemble, TanhMeanPolicy, Value
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of an IQL.

    Attributes:
        actor: pi(a|s; phi).
        critic: Q_i(s, a; theta_i), i = 1, 2.
        target: Q_i(s, a; theta_i'), a Polyak average.
        value: V(s; psi).
    """

    actor: Net
    critic: Net
    target: Net
    value: Net


@config
class IQL(Agent):
    """Implicit Q-learning; see the module for the paper and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    tau: float = setting(default=0.005, within=(0, 1), help="share of the online critics in each target update")
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the critics")
    value_learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the value network")
    actor_learning_rate: Scheduled = setting(
        default=Cosine(start=3e-4), positive=True, help="Adam's step size for the actor"
    )
    expectile: float = setting(
        default=0.7, within=(0, 1), help="expectile of Q over the data's actions that V is: 0.5 the mean, 1 the maximum"
    )
    beta: float = setting(default=3.0, low=0, help="weight of the advantage: 0 clones the data's actions")
    max_weight: float = setting(default=100.0, positive=True, help="limit of exp(beta * advantage)")
    torso: Torso = setting(default=Torso(), help="actor's, critics' and value's networks")
    replay: Replay = setting(default=Replay(), help="collection and replay")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics, their target copies and the value network."""
        x, a = spec.inputs, spec.actions
        critic = make(QEnsemble(self.torso), adam(), stream(key, "critic"), x, a)
        return State(
            actor=make(TanhMeanPolicy(spec.action_size, self.torso), adam(), stream(key, "actor"), x),
            critic=critic,
            target=critic.frozen(),
            value=make(Value(self.torso), adam(), stream(key, "value"), x),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s), clipped to [-1, 1], while exploring; its mean otherwise."""
        pi = state.actor(x)
        return (jnp.clip(pi.sample(key), -1.0, 1.0) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the value, the actor, the critics and the target average, in the code's order."""
        q = state.target(b.now, b.action).min(0)

        # value: min_psi E[L_2^tau(min_i Q_i'(s, a) - V(s))] (eq. 5)
        def value_loss(value: Net):
            v = value(b.now)
            loss = expectile(q - v, self.expectile).mean()
            return loss, {"value_loss": loss, "v": v.mean()}

        value, m_value = descend(state.value, adam(value_at(self.value_learning_rate, clock)), value_loss)

        # actor: max_phi E[exp(beta (min_i Q_i'(s, a) - V(s))) log pi(a|s)] (eq. 7)
        weight = jnp.minimum(jnp.exp(self.beta * (q - value(b.now))), self.max_weight)

        def actor_loss(actor: Net):
            loss = -(weight * actor(b.now).log_prob(b.action)).mean()
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": loss}

        actor, m_actor = descend(state.actor, adam(value_at(self.actor_learning_rate, clock)), actor_loss)

        # critics: y = r + gamma V(s') (eq. 6)
        y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), value(b.next)), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (2, batch)
            loss = jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        critic, m_critic = descend(state.critic, adam(value_at(self.learning_rate, clock)), critic_loss)
        target = state.target.at(polyak(state.target.params, critic.params, self.tau))
        return State(actor, critic, target, value), m_critic | m_value | m_actor | {"weight": weight.mean()}

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics: (2, batch)."""
        return state.critic(x, action)

    def target_q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the target critics: (2, batch)."""
        return state.target(x, action)

    def v(self, state: State, x: Inputs) -> jax.Array:
        """V(s): (batch,)."""
        return state.value(x)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units, before actions are clipped."""
        return state.actor(x)
