"""SAC: maximum-entropy actor-critic with twin critics and a learned temperature.

Haarnoja et al. 2018b, "Soft Actor-Critic Algorithms and Applications", arXiv:1812.05905, algorithm 1. Discrete
actions: Christodoulou 2019, arXiv:1910.07207, where expectations over actions are sums.

Differs from the papers:
- Initial weights are uniform in +- sqrt(3 / fan_in) (LeCun); the authors' code uses Glorot's.
- The temperature's loss is taken with respect to log alpha through alpha = exp(log alpha), as eq. 18 reads;
  common codes multiply log alpha itself, which has the same fixed point and another speed.
- Discrete target entropy: 0.98 log n as in Christodoulou's code (p-christ/Deep-Reinforcement-Learning-Algorithms,
  agents/actor_critic_agents/SAC_Discrete.py). Warm-up is 1,000 steps, not 10,000.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Replay
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.distributions import Categorical
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make, polyak
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import CategoricalPolicy, QEnsemble, QValuesEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a SAC.

    Attributes:
        actor: pi(a|s; phi).
        critic: Q_i(s, a; theta_i), i = 1, 2.
        target: Q_i(s, a; theta_i'), a Polyak average.
        log_alpha: log of the temperature.
    """

    actor: Net
    critic: Net
    target: Net
    log_alpha: Net


@config
class SAC(Agent):
    """Soft actor-critic; see the module for the papers and the deviations."""

    loop = "off_policy"
    acts = ("continuous", "discrete")

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    tau: float = setting(default=0.005, within=(0, 1), help="share of the online critics in each target update")
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the critics")
    actor_learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the actor")
    alpha: float = setting(default=1.0, positive=True, help="temperature: where learning starts, or its fixed value")
    alpha_learning_rate: Scheduled | None = setting(
        default=3e-4, positive=True, help="Adam's step size for the temperature; None: the temperature is fixed"
    )
    target_entropy: float | None = setting(
        default=None,
        help="entropy that the temperature steers to, in nats; None: -(action size), or 0.98 log n if discrete",
    )
    torso: Torso = setting(default=Torso(), help="actor's and critics' networks")
    replay: Replay = setting(default=Replay(), help="collection and replay")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics, their target copy and the temperature."""
        x = spec.inputs
        policy: Any
        critics: Any
        if spec.discrete:
            policy, critics = CategoricalPolicy(spec.n_actions, self.torso), QValuesEnsemble(spec.n_actions, self.torso)
        else:
            policy, critics = SquashedPolicy(spec.action_size, self.torso), QEnsemble(self.torso)
        critic = make(critics, adam(), stream(key, "critic"), x, spec.actions)
        log_alpha = make(Scalar(), adam(), stream(key, "alpha"))
        return State(
            actor=make(policy, adam(), stream(key, "actor"), x),
            critic=critic,
            target=critic.frozen(),
            log_alpha=log_alpha.at({"value": jnp.log(jnp.float32(self.alpha))}),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) while exploring, its mode otherwise."""
        pi = state.actor(x)
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the critics, the actor, the temperature and the target average, in the paper's order."""
        alpha = jnp.exp(state.log_alpha())

        # critics: y = r + gamma V(s'), V(s') = E_pi[min_i Q_i'(s', a') - alpha log pi(a'|s')] (eq. 3 and 5)
        next_value, _ = soft_value(state.actor, state.target, b.next, alpha, stream(key, "next_action"))
        y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), next_value), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (2, batch)
            loss = 0.5 * jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        critic, m_critic = descend(state.critic, adam(value_at(self.learning_rate, clock)), critic_loss)

        # actor: max_phi E[min_i Q_i(s, a) - alpha log pi(a|s)] (eq. 7)
        def actor_loss(actor: Net):
            value, entropy = soft_value(actor, critic, b.now, alpha, stream(key, "action"))
            loss = -value.mean()
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": loss, "entropy": entropy.mean()}

        actor, m_actor = descend(state.actor, adam(value_at(self.actor_learning_rate, clock)), actor_loss)

        # temperature: J(alpha) = E[alpha (entropy - target entropy)] (eq. 18)
        log_alpha = state.log_alpha
        if self.alpha_learning_rate is not None:
            gap = m_actor["entropy"] - self._target_entropy(state, b)
            tx = adam(value_at(self.alpha_learning_rate, clock))
            log_alpha, _ = descend(log_alpha, tx, lambda log_alpha: (jnp.exp(log_alpha()) * gap, {}))

        target = state.target.at(polyak(state.target.params, critic.params, self.tau))
        return State(actor, critic, target, log_alpha), m_critic | m_actor | {"alpha": alpha}

    def _target_entropy(self, state: State, b: Batch) -> jax.Array | float:
        if self.target_entropy is not None:
            return self.target_entropy
        policy = state.actor.module
        return 0.98 * math.log(policy.n_actions) if isinstance(policy, CategoricalPolicy) else -float(policy.size)

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics: (2, batch)."""
        return state.critic(x, action)

    def target_q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the target critics: (2, batch)."""
        return state.target(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)


def soft_value(actor: Net, critic: Net, x: Inputs, alpha: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """V(s) = E_pi[min_i Q_i(s, a) - alpha log pi(a|s)] and the policy's entropy, each (batch,).

    One reparameterized sample for box actions; the exact sum over actions for discrete ones (Christodoulou 2019,
    eq. 10).
    """
    pi = actor(x)
    if isinstance(pi, Categorical):
        probs = jnp.exp(pi.log_probs)
        return (probs * (critic(x).min(0) - alpha * pi.log_probs)).sum(-1), pi.entropy()
    action, log_prob = pi.sample_and_log_prob(key)
    return critic(x, action).min(0) - alpha * log_prob, -log_prob
