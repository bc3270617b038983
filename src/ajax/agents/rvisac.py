"""RVISAC (RVI-SAC): soft actor-critic for the average reward per step, by relative value iteration.

Hisaki & Ono 2024, "RVI-SAC: Average Reward Off-Policy Deep Reinforcement Learning", ICML, arXiv:2408.01972. Numbers and
the order of the steps are those of the authors' code (yhisaki/average-reward-drl, average_reward_drl/algorithms/
rvisac.py), which changed them more than once; the paper's own table could not be compared.

Values are differential. What holds their constant is the reference f(Q), a share of the values' mean: it is subtracted
from every reward and follows the values slowly, so that it becomes the gain. Where the task terminates it is reset and
goes on, at a cost that a second critic adjusts: it learns the rate of resets as the first one learns the gain.

Differs from the paper and the code:
- The critic of resets has the critics' layers; the authors' has 64 units.
- Initial weights are LeCun's; the authors' are orthogonal. Warm-up is 1,000 steps, not 10,000.
- What follows a reset is read off the replay's next row, and the newest rows are not drawn; the authors' replay holds
  it instead of the final observation.
- A time limit bootstraps from the final observation, and is no reset.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Replay
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make, polyak
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import after_resets, charge_resets, rvi_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """What an RVISAC keeps.

    Attributes:
        actor: pi(a|s; theta).
        critic: Q_i(s, a; phi_i), i = 1, 2, differential.
        target: Q_i(s, a; phi_i'), a Polyak average.
        log_alpha: log of the temperature.
        reset_critic: Q^reset(s, a), the differential number of resets.
        reset_target: its Polyak average.
        reset_cost: r_cost, a number of at least 0.
        gain: xi, the delayed f(Q); scalar.
        reset_rate: xi^reset, the delayed f(Q^reset): resets per step; scalar.
    """

    actor: Net
    critic: Net
    target: Net
    log_alpha: Net
    reset_critic: Net
    reset_target: Net
    reset_cost: Net
    gain: jax.Array
    reset_rate: jax.Array


@config
class RVISAC(Agent):
    """RVI-SAC; see the module for the paper and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)
    remembers = False  # what a reset leads to follows no past, and so needs a stream of its own

    tau: float = setting(default=0.005, within=(0, 1), help="share of the online critics in each target update")
    reference_rate: float = setting(default=0.01, within=(0, 1), help="share of f(Q) in its delayed value, the gain")
    reference_scale: float = setting(default=0.1, positive=True, help="f(Q): this times the mean of V(s')")
    target_reset_rate: float = setting(
        default=0.001, within=(0, 1), help="terminations per step that the reset cost steers to"
    )
    reset_cost_learning_rate: Scheduled = setting(
        default=3e-4, positive=True, help="Adam's step size for the reset cost"
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

    def check(self) -> None:
        """The buffer holds a step and the next."""
        kept = self.replay.capacity // self.replay.n_envs
        if kept < self.window:
            raise ConfigError(
                f"RVISAC(replay.capacity={self.replay.capacity}): each of the {self.replay.n_envs} environments keeps"
                f" {kept} transition, and a sample needs the next one, too. Raise replay.capacity."
            )

    @property
    def window(self) -> int:
        """A transition, and the one that tells what a reset led to."""
        return 2

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, both kinds of critics with their target copies and the temperature; the rest is 0."""
        x = spec.inputs
        critic = make(QEnsemble(self.torso), adam(), stream(key, "critic"), x, spec.actions)
        reset_critic = make(QEnsemble(self.torso, 1), adam(), stream(key, "reset_critic"), x, spec.actions)
        log_alpha = make(Scalar(), adam(), stream(key, "alpha"))
        return State(
            actor=make(SquashedPolicy(spec.action_size, self.torso), adam(), stream(key, "actor"), x),
            critic=critic,
            target=critic.frozen(),
            log_alpha=log_alpha.at({"value": jnp.log(jnp.float32(self.alpha))}),
            reset_critic=reset_critic,
            reset_target=reset_critic.frozen(),
            reset_cost=make(Scalar(), adam(), stream(key, "reset_cost")),
            gain=jnp.zeros(()),
            reset_rate=jnp.zeros(()),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) while exploring, its mode otherwise."""
        pi = state.actor(x)
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the critics, f(Q), the actor, the temperature, the reset cost and the target averages."""
        b, after = after_resets(b)
        alpha, cost = jnp.exp(state.log_alpha()), state.reset_cost()

        # critics: y = r - r_cost d - xi + V(s'), V(s') = min_i Q_i'(s', a') - alpha log pi(a'|s')
        next_action, next_log_prob = state.actor(after).sample_and_log_prob(stream(key, "next_action"))
        next_value = state.target(after, next_action).min(0) - alpha * next_log_prob
        charged = charge_resets(b.reward, b.terminated, cost)
        y = hooks.on_target(rvi_target(charged, state.gain, next_value), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (2, batch)
            loss = 0.5 * jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        tx = adam(value_at(self.learning_rate, clock))
        critic, m_critic = descend(state.critic, tx, critic_loss)

        # resets: y = d - xi^reset + Q^reset'(s', a')
        next_resets = state.reset_target(after, next_action)[0]
        y_reset = rvi_target(b.terminated, state.reset_rate, next_resets)

        def reset_loss(reset_critic: Net):
            loss = 0.5 * jnp.square(reset_critic(b.now, b.action)[0] - y_reset).mean()
            return loss, {"reset_loss": loss}

        reset_critic, m_reset = descend(state.reset_critic, tx, reset_loss)

        # delayed f(Q): xi <- xi + kappa (f(Q) - xi)
        gain = polyak(state.gain, self.reference_scale * next_value.mean(), self.reference_rate)
        reset_rate = polyak(state.reset_rate, self.reference_scale * next_resets.mean(), self.reference_rate)

        # actor: max_theta E[min_i Q_i(s, a) - alpha log pi(a|s)]
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

        # reset cost: max_{r_cost >= 0} r_cost (xi^reset - eps)
        excess, tx = reset_rate - self.target_reset_rate, adam(value_at(self.reset_cost_learning_rate, clock))
        reset_cost, _ = descend(state.reset_cost, tx, lambda cost: (-cost() * excess, {}))
        reset_cost = reset_cost.at(jax.tree.map(lambda cost: jnp.maximum(cost, 0.0), reset_cost.params))

        target = state.target.at(polyak(state.target.params, critic.params, self.tau))
        reset_target = state.reset_target.at(polyak(state.reset_target.params, reset_critic.params, self.tau))
        metrics = {"alpha": alpha, "gain": gain, "reset_rate": reset_rate, "reset_cost": cost}
        return State(
            actor, critic, target, log_alpha, reset_critic, reset_target, reset_cost, gain, reset_rate
        ), m_critic | m_reset | m_actor | metrics

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics, differential: (2, batch)."""
        return state.critic(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)
