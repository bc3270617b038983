"""CrossQ: SAC without target networks, its critics batch-renormalized over this state and the next one together.

Bhatt, Palenicek, Belousov, Argus, Amiranashvili, Brox & Peters 2024, "CrossQ: Batch Normalization in Deep
Reinforcement Learning for Greater Sample Efficiency and Simplicity", arXiv:1902.05605, section 4 and appendix.

Differs from the paper:
- Initial weights are uniform in +- sqrt(3 / fan_in) (LeCun); the authors' code (adityab/CrossQ, sbx/sac/policies.py)
  draws them from a truncated Gaussian of the same variance.
- The layers are batch *re*normalization, the numbers of which (momentum 0.99, warm-up of 100,000 updates) are the
  code's.
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
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a CrossQ. Actor and critic hold the running statistics of their layers; there is no target.

    Attributes:
        actor: pi(a|s; phi).
        critic: Q_i(s, a; theta_i), i = 1, 2.
        log_alpha: log of the temperature.
    """

    actor: Net
    critic: Net
    log_alpha: Net


@config
class CrossQ(Agent):
    """CrossQ; see the module for the paper and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)
    remembers = False  # the one pass is over rows whose pasts are of two lengths

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    learning_rate: Scheduled = setting(default=1e-3, positive=True, help="Adam's step size for the critics")
    actor_learning_rate: Scheduled = setting(default=1e-3, positive=True, help="Adam's step size for the actor")
    adam_b1: float = setting(
        default=0.5, within=(0, 0.999), help="Adam's decay of the mean gradient, actor and critics"
    )
    alpha: float = setting(default=1.0, positive=True, help="temperature: where learning starts, or its fixed value")
    alpha_learning_rate: Scheduled | None = setting(
        default=1e-3, positive=True, help="Adam's step size for the temperature; None: the temperature is fixed"
    )
    target_entropy: float | None = setting(
        default=None, help="entropy that the temperature steers to, in nats; None: -(action size)"
    )
    policy_delay: int = setting(
        default=3, low=1, help="critic updates for each update of the actor and the temperature"
    )
    renorm_warmup: int = setting(
        default=100_000, low=0, help="updates of plain batch normalization before it is corrected by running statistics"
    )
    torso: Torso = setting(default=Torso(), help="actor's network")
    critic_torso: Torso = setting(default=Torso(widths=(2048, 2048)), help="critics' networks")
    replay: Replay = setting(default=Replay(warmup=5_000), help="collection and replay")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics and the temperature."""
        x, a = spec.inputs, spec.actions
        actor = SquashedPolicy(spec.action_size, self.torso, self.renorm_warmup)
        critic = QEnsemble(self.critic_torso, renorm=self.renorm_warmup)
        log_alpha = make(Scalar(), adam(), stream(key, "alpha"))
        return State(
            actor=make(actor, adam(), stream(key, "actor"), x),
            critic=make(critic, adam(), stream(key, "critic"), x, a),
            log_alpha=log_alpha.at({"value": jnp.log(jnp.float32(self.alpha))}),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) while exploring, its mode otherwise."""
        pi = state.actor(x)
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of the critics; every `policy_delay`-th time, of the actor and the temperature."""
        alpha = jnp.exp(state.log_alpha())

        # critics: one pass over (s, a) and (s', a'), so that both are normalized by the statistics of their mixture
        next_action, next_log_prob = state.actor(b.next).sample_and_log_prob(stream(key, "next_action"))
        x, action = jax.tree.map(lambda *rows: jnp.concatenate(rows), (b.now, b.action), (b.next, next_action))

        def critic_loss(critic: Net):
            values, statistics = critic.train(x, action)
            q, next_q = jnp.split(values, 2, axis=1)  # each (2, batch)
            next_value = next_q.min(0) - alpha * next_log_prob
            y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), next_value), state, b)
            loss = 0.5 * jnp.square(q - y[None]).mean(-1).sum(0)
            metrics = {"critic_loss": loss, "q": q.mean()}
            return loss + hooks.critic_loss(critic, state, b, y), (metrics, statistics, y)

        tx = adam(value_at(self.learning_rate, clock), b1=self.adam_b1)
        critic, (metrics, statistics, hooks.target) = descend(state.critic, tx, critic_loss)
        critic = critic.replace(statistics=statistics)

        # actor: max_phi E[min_i Q_i(s, a) - alpha log pi(a|s)], the critics normalized by their running statistics
        def actor_loss(actor: Net):
            pi, statistics = actor.train(b.now)
            action, log_prob = pi.sample_and_log_prob(stream(key, "action"))
            loss = (alpha * log_prob - critic(b.now, action).min(0)).mean()
            metrics = {"actor_loss": loss, "entropy": -log_prob.mean()}
            return loss + hooks.actor_loss(actor, state, b), (metrics, statistics)

        def improve(nets: tuple[Net, Net]):
            actor, log_alpha = nets
            tx = adam(value_at(self.actor_learning_rate, clock), b1=self.adam_b1)
            actor, (metrics, statistics) = descend(actor, tx, actor_loss)
            actor = actor.replace(statistics=statistics)
            # temperature: J(alpha) = E[alpha (entropy - target entropy)] (Haarnoja et al. 2018b, eq. 18)
            if self.alpha_learning_rate is not None:
                gap = metrics["entropy"] - self._target_entropy(state)
                tx = adam(value_at(self.alpha_learning_rate, clock))
                log_alpha, _ = descend(log_alpha, tx, lambda log_alpha: (jnp.exp(log_alpha()) * gap, {}))
            # reported so that the mean over all updates is the mean over those that have an actor step
            return (actor, log_alpha), {name: self.policy_delay * x for name, x in metrics.items()}

        def wait(nets: tuple[Net, Net]):
            zero = jnp.zeros_like(metrics["critic_loss"])
            return nets, {"actor_loss": zero, "entropy": zero}

        due = (clock.update + 1) % self.policy_delay == 0
        (actor, log_alpha), m_actor = jax.lax.cond(due, improve, wait, (state.actor, state.log_alpha))
        return State(actor, critic, log_alpha), metrics | m_actor | {"alpha": alpha}

    def _target_entropy(self, state: State) -> jax.Array | float:
        return -float(state.actor.module.size) if self.target_entropy is None else self.target_entropy

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the critics, by their running statistics: (2, batch)."""
        return state.critic(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units, by the running statistics."""
        return state.actor(x)
