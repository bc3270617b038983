"""TD3: twin critics, delayed policy updates and smoothed target actions.

Fujimoto, van Hoof & Meger 2018, arXiv:1802.09477, algorithm 1. With `bc_alpha`, TD3+BC for offline data (Fujimoto
& Gu 2021, arXiv:2106.06860, eq. 5): the policy's objective is weighted by alpha / mean |Q| and pulled to the data's
actions.

Differs from the paper:
- Initial weights are uniform in +- sqrt(3 / fan_in) (LeCun); the authors' PyTorch layers use +- 1 / sqrt(fan_in).
- The learning rate 3e-4 and batch of 256 are those of the authors' later code (sfujim/TD3, TD3.py and main.py);
  the paper has 1e-3 and 100.
- Warm-up is 1,000 steps, as the paper's for its easier tasks; the authors' code has 25,000.
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
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import DeterministicPolicy, QEnsemble
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a TD3.

    Attributes:
        actor: mu(s; phi), actions in [-1, 1].
        critic: Q_i(s, a; theta_i), i = 1, 2.
        target_actor: mu(s; phi'), a Polyak average.
        target_critic: Q_i(s, a; theta_i'), a Polyak average.
    """

    actor: Net
    critic: Net
    target_actor: Net
    target_critic: Net


@config
class TD3(Agent):
    """Twin delayed deep deterministic policy gradient; see the module for the papers and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    tau: float = setting(default=0.005, within=(0, 1), help="share of the online networks in each target update")
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the critics")
    actor_learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the actor")
    exploration_noise: float = setting(
        default=0.1, low=0, help="standard deviation of the noise on actions, agent units"
    )
    target_noise: float = setting(
        default=0.2, low=0, help="standard deviation of the noise on target actions, agent units"
    )
    target_noise_clip: float = setting(default=0.5, low=0, help="limit of the noise on target actions, agent units")
    policy_delay: int = setting(default=2, low=1, help="critic updates for each update of the actor and the targets")
    bc_alpha: float | None = setting(
        default=None, positive=True, help="TD3+BC's alpha (2.5 in the paper); None: plain TD3"
    )
    torso: Torso = setting(default=Torso(), help="actor's and critics' networks")
    replay: Replay = setting(default=Replay(), help="collection and replay")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics and their target copies."""
        x, a = spec.inputs, spec.actions
        actor = make(DeterministicPolicy(spec.action_size, self.torso), adam(), stream(key, "actor"), x)
        critic = make(QEnsemble(self.torso), adam(), stream(key, "critic"), x, a)
        return State(actor=actor, critic=critic, target_actor=actor.frozen(), target_critic=critic.frozen())

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """mu(s), with Gaussian noise while exploring, clipped to [-1, 1]."""
        action = state.actor(x)
        if not explore:
            return action, {}
        noise = self.exploration_noise * jax.random.normal(key, action.shape)
        return jnp.clip(action + noise, -1.0, 1.0), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One critic step; every `policy_delay`-th time, one actor step and the target averages."""
        # critics: y = r + gamma min_i Q_i'(s', clip(mu'(s') + clip(noise)))
        noise = self.target_noise * jax.random.normal(stream(key, "target_noise"), b.action.shape)
        noise = jnp.clip(noise, -self.target_noise_clip, self.target_noise_clip)
        next_action = jnp.clip(state.target_actor(b.next) + noise, -1.0, 1.0)
        next_value = state.target_critic(b.next, next_action).min(0)
        y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), next_value), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (2, batch)
            loss = jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        critic, metrics = descend(state.critic, adam(value_at(self.learning_rate, clock)), critic_loss)

        # actor: max_phi E[Q_1(s, mu(s))], and with `bc_alpha` lambda Q_1 - (mu(s) - a)^2
        def actor_loss(actor: Net):
            action = actor(b.now)
            q = critic(b.now, action)[0]
            loss = -q.mean()
            if self.bc_alpha is not None:
                scale = self.bc_alpha / jax.lax.stop_gradient(jnp.abs(q).mean())
                loss = scale * loss + jnp.square(action - b.action).mean()
            # reported so that the mean over all updates is the mean over those that have an actor step
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": self.policy_delay * loss}

        def improve(nets: tuple[Net, Net, Net]):
            actor, target_actor, target_critic = nets
            actor, metrics = descend(actor, adam(value_at(self.actor_learning_rate, clock)), actor_loss)
            target_actor = target_actor.at(polyak(target_actor.params, actor.params, self.tau))
            target_critic = target_critic.at(polyak(target_critic.params, critic.params, self.tau))
            return (actor, target_actor, target_critic), metrics

        def wait(nets: tuple[Net, Net, Net]):
            return nets, {"actor_loss": jnp.zeros_like(metrics["critic_loss"])}

        due = (clock.update + 1) % self.policy_delay == 0
        nets = (state.actor, state.target_actor, state.target_critic)
        (actor, target_actor, target_critic), m_actor = jax.lax.cond(due, improve, wait, nets)
        return State(actor, critic, target_actor, target_critic), metrics | m_actor

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics: (2, batch)."""
        return state.critic(x, action)

    def target_q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the target critics: (2, batch)."""
        return state.target_critic(x, action)

    def pi(self, state: State, x: Inputs) -> jax.Array:
        """mu(s): (batch, action size), in agent units."""
        return state.actor(x)
