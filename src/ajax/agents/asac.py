"""ASAC: soft actor-critic for the average reward per step, entropy included, which discounts nothing.

Adamczyk et al. 2025, "Average-Reward Soft Actor-Critic", arXiv:2501.09080. The gain, the target and the order of the
steps are those of the authors' code (JacobHA/u-chi-learning, darer/ASAC.py).

Values are differential: what an action is worth beyond the gain. A terminal state has the value 0, and so the start of
an episode has it, too, on average. Without an end, values are known up to a constant, which nothing here holds; then
only their differences mean something.

Differs from the paper and the code:
- The entropy is the policy's own; theirs is relative to a uniform prior, which moves the gain by a constant.
- The reset cost is not in that code. It was taken, with its default, from another implementation that follows the
  paper's second version; neither could be compared with the paper's text. That one also lets terminal states keep their
  value, and lowers every target by Q(0, 0), which here nothing asks for.
- The temperature's loss is taken through alpha = exp(log alpha), as SAC's eq. 18 reads; theirs multiplies log alpha.
- Step sizes, networks and replay are SAC's: those of the experiments could not be confirmed.
- A time limit bootstraps from the final observation.
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
from ajax.core.returns import charge_resets, td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """What an ASAC keeps.

    Attributes:
        actor: pi(a|s; phi).
        critic: Q_i(s, a; psi_i), i = 1, 2, differential.
        target: Q_i(s, a; psi_i'), a Polyak average.
        log_alpha: log of the temperature.
        gain: theta, the running mean of r - p d - alpha log pi(a|s); scalar.
        reset_cost: p, the running mean of p_0 r (1 - d); scalar.
    """

    actor: Net
    critic: Net
    target: Net
    log_alpha: Net
    gain: jax.Array
    reset_cost: jax.Array


@config
class ASAC(Agent):
    """Average-reward soft actor-critic; see the module for the paper and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)

    tau: float = setting(default=0.005, within=(0, 1), help="share of the online critics in each target update")
    gain_rate: float = setting(
        default=0.005, within=(0, 1), help="share of a batch in the running means of the gain and of the reset cost"
    )
    reset_cost: float = setting(
        default=20.0, low=0, help="cost of a termination, in mean rewards of the steps that end nothing"
    )
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the critics")
    actor_learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the actor")
    alpha: float = setting(default=1.0, positive=True, help="temperature: where learning starts, or its fixed value")
    alpha_learning_rate: Scheduled | None = setting(
        default=3e-4, positive=True, help="Adam's step size for the temperature; None: the temperature is fixed"
    )
    target_entropy: float | None = setting(
        default=None, help="entropy that the temperature steers to, in nats; None: -(action size)"
    )
    torso: Torso = setting(default=Torso(), help="actor's and critics' networks")
    replay: Replay = setting(default=Replay(), help="collection and replay")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics, their target copy and the temperature; gain and cost are 0."""
        x = spec.inputs
        critic = make(QEnsemble(self.torso), adam(), stream(key, "critic"), x, spec.actions)
        log_alpha = make(Scalar(), adam(), stream(key, "alpha"))
        return State(
            actor=make(SquashedPolicy(spec.action_size, self.torso), adam(), stream(key, "actor"), x),
            critic=critic,
            target=critic.frozen(),
            log_alpha=log_alpha.at({"value": jnp.log(jnp.float32(self.alpha))}),
            gain=jnp.zeros(()),
            reset_cost=jnp.zeros(()),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) while exploring, its mode otherwise."""
        pi = state.actor(x)
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the reset cost, the gain, the critics, the actor, the temperature and the target average."""
        alpha = jnp.exp(state.log_alpha())

        # reset: r <- r - p d, where p follows p_0 times the mean reward
        cost = polyak(state.reset_cost, self.reset_cost * (b.reward * (1.0 - b.terminated)).mean(), self.gain_rate)
        reward = charge_resets(b.reward, b.terminated, cost)

        # critics: y = r - theta + (1 - d) V(s'), V(s') = min_i Q_i'(s', a') - alpha log pi(a'|s')
        next_action, next_log_prob = state.actor(b.next).sample_and_log_prob(stream(key, "next_action"))
        next_value = state.target(b.next, next_action).min(0) - alpha * next_log_prob
        y = hooks.on_target(td_target(reward - state.gain, 1.0 - b.terminated, next_value), state, b)

        # gain: the mean of r - alpha log pi(a|s), with a drawn anew
        _, log_prob = state.actor(b.now).sample_and_log_prob(stream(key, "action"))
        gain = polyak(state.gain, (reward - alpha * log_prob).mean(), self.gain_rate)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (2, batch)
            loss = 0.5 * jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        critic, m_critic = descend(state.critic, adam(value_at(self.learning_rate, clock)), critic_loss)

        # actor: max_phi E[min_i Q_i(s, a) - alpha log pi(a|s)], at the actions that the gain was read at
        def actor_loss(actor: Net):
            action, log_prob = actor(b.now).sample_and_log_prob(stream(key, "action"))
            loss = (alpha * log_prob - critic(b.now, action).min(0)).mean()
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": loss, "entropy": -log_prob.mean()}

        actor, m_actor = descend(state.actor, adam(value_at(self.actor_learning_rate, clock)), actor_loss)

        log_alpha = state.log_alpha
        if self.alpha_learning_rate is not None:
            wanted = -float(b.action.shape[-1]) if self.target_entropy is None else self.target_entropy
            tx, gap = adam(value_at(self.alpha_learning_rate, clock)), m_actor["entropy"] - wanted
            log_alpha, _ = descend(log_alpha, tx, lambda log_alpha: (jnp.exp(log_alpha()) * gap, {}))

        target = state.target.at(polyak(state.target.params, critic.params, self.tau))
        metrics = m_critic | m_actor | {"alpha": alpha, "gain": gain, "reset_cost": cost}
        return State(actor, critic, target, log_alpha, gain, cost), metrics

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics, differential: (2, batch)."""
        return state.critic(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)
