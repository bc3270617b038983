"""AVG: an action-value gradient that learns from one transition at a time, without replay, batch or target network.

Vasan et al. 2024, "Deep Policy Gradient Methods Without Batch Updates, Target Networks, or Replay Buffers",
arXiv:2411.15370, algorithm 1. Defaults are the authors' for Humanoid (gauthamvasan/avg, avg.py). The paper has
observations normalized: train with `normalize_observations=True`.

Differs from the paper:
- The policy's second output is a log standard deviation, as in the paper; the authors' code takes the exponential of
  it for a variance.
- Weights start orthogonal, but hidden layers with the gain sqrt(2) of their nonlinearity; the authors' code has 1.
- The return of an episode that a time limit cut is dropped from the scale of TD errors; in the authors' code it runs
  on into the next episode.
- Statistics of observations take in an observation after the update on it; in the authors' code before.
"""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.rollout import Rollout
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.core.statistics import ReturnScale
from ajax.networks.heads import QEnsemble, SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """What an AVG keeps.

    Attributes:
        actor: pi(a|s; theta).
        critic: Q(s, a; phi), an ensemble of one.
        scale: statistics of rewards and returns, which give sigma.
    """

    actor: Net
    critic: Net
    scale: ReturnScale


@config
class AVG(Agent):
    """Action value gradient; see the module for the paper and the deviations."""

    loop = "on_policy"
    acts = ("continuous",)
    remembers = False  # one transition is no sequence
    rollout: ClassVar[Rollout] = Rollout(n_envs=1, n_steps=1, n_epochs=1, n_minibatches=1)

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    learning_rate: Scheduled = setting(default=8.7e-3, positive=True, help="Adam's step size for the critic")
    actor_learning_rate: Scheduled = setting(default=6.3e-3, positive=True, help="Adam's step size for the actor")
    adam_b1: float = setting(default=0.0, within=(0, 0.999), help="decay of Adam's first moment; 0: no momentum")
    alpha: float = setting(default=0.07, low=0, help="weight of the policy's entropy")
    torso: Torso = setting(
        default=Torso(activation="leaky_relu", initializer="orthogonal"), help="actor's and critic's networks"
    )

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critic and empty statistics."""
        actor = SquashedPolicy(spec.action_size, self.torso, unit_features=True)
        critic = QEnsemble(self.torso, n_critics=1, unit_features=True)
        return State(
            actor=make(actor, adam(), stream(key, "actor"), spec.inputs),
            critic=make(critic, adam(), stream(key, "critic"), spec.inputs, spec.actions),
            scale=ReturnScale.zeros(),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) with the noise that made it while exploring, the mode otherwise."""
        pi = state.actor(x)
        if not explore:
            return pi.mode(), {}
        noise = jax.random.normal(key, pi.loc.shape, pi.loc.dtype)
        return pi.from_noise(noise)[0], {"noise": noise}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the actor and one of the critic on the one transition of `b`, both from where they stood."""
        _, log_prob = state.actor(b.now).from_noise(b.extras["noise"])
        reward = b.reward - self.alpha * log_prob
        scale = state.scale.add(reward[0], b.terminated[0], b.truncated[0], self.gamma)

        # critic: the TD error over sigma, squared
        next_action, next_log_prob = state.actor(b.next).sample_and_log_prob(stream(key, "next_action"))
        next_value = state.critic(b.next, next_action)[0] - self.alpha * next_log_prob
        y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), next_value), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)[0]
            loss = jnp.square((y - q) / scale.sigma).mean()
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        # actor: max_theta Q(s, a) - alpha log pi(a|s), at the very action that was taken
        def actor_loss(actor: Net):
            action, log_prob = actor(b.now).from_noise(b.extras["noise"])
            loss = (self.alpha * log_prob - state.critic(b.now, action)[0]).mean()
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": loss, "entropy": -log_prob.mean()}

        rates = value_at(self.actor_learning_rate, clock), value_at(self.learning_rate, clock)
        actor, m_actor = descend(state.actor, adam(rates[0], b1=self.adam_b1), actor_loss)
        critic, m_critic = descend(state.critic, adam(rates[1], b1=self.adam_b1), critic_loss)
        return State(actor, critic, scale), m_critic | m_actor | {"sigma": scale.sigma}

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q(s, a): (1, batch)."""
        return state.critic(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)
