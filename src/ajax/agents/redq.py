"""REDQ: an ensemble of critics, a random pair of them in each target, many updates a step.

Chen, Wang, Zhou & Ross 2021, "Randomized Ensembled Double Q-Learning: Learning Fast Without a Model",
arXiv:2101.05982, algorithm 1, on top of SAC with a learned temperature (Haarnoja et al. 2018b, arXiv:1812.05905). G,
the updates of a round, is `replay.updates`.

Differs from the paper:
- Initial weights are uniform in +- sqrt(3 / fan_in) (LeCun); the authors' code (watchernyu/REDQ, redq/algos/core.py)
  uses Glorot's.
- The policy's step reads the critics as this update has just left them, as algorithm 1 says; the authors' code takes
  its gradient before their step.
- The temperature's loss is taken with respect to log alpha through alpha = exp(log alpha), and starts at 1; the
  authors' code multiplies log alpha itself, and uses 0.2 until its first step.
- The target entropy is -(action size), the code's "auto"; the paper takes MBPO's hand-set table.
"""

from __future__ import annotations

from collections.abc import Callable

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
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import QEnsemble, Scalar, SquashedPolicy, members
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a REDQ.

    Attributes:
        actor: pi(a|s; theta).
        critic: Q_i(s, a; phi_i), i = 1 .. N.
        target: Q_i(s, a; phi_i'), a Polyak average.
        log_alpha: log of the temperature.
    """

    actor: Net
    critic: Net
    target: Net
    log_alpha: Net


@config
class REDQ(Agent):
    """Randomized ensembled double Q-learning; see the module for the papers and the deviations."""

    loop = "off_policy"
    acts = ("continuous",)

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    tau: float = setting(default=0.005, within=(0, 1), help="share of the online critics in each target update")
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the critics")
    actor_learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size for the actor")
    alpha: float = setting(default=1.0, positive=True, help="temperature: where learning starts, or its fixed value")
    alpha_learning_rate: Scheduled | None = setting(
        default=3e-4, positive=True, help="Adam's step size for the temperature; None: the temperature is fixed"
    )
    target_entropy: float | None = setting(
        default=None, help="entropy that the temperature steers to, in nats; None: -(action size)"
    )
    n_critics: int = setting(default=10, low=1, help="critics in the ensemble, N")
    n_target_critics: int = setting(default=2, low=1, help="critics drawn for each target, of which it is the min, M")
    policy_delay: int = setting(
        default=20, low=1, help="critic updates for each update of the actor and the temperature"
    )
    torso: Torso = setting(default=Torso(), help="actor's and critics' networks")
    replay: Replay = setting(default=Replay(warmup=5_000, updates=20), help="collection and replay")

    def check(self) -> None:
        """The critics of a target are among the ensemble's."""
        if self.n_target_critics > self.n_critics:
            raise ConfigError(
                f"REDQ(n_target_critics={self.n_target_critics}, n_critics={self.n_critics}): a target's critics are"
                " drawn from the ensemble without replacement. Lower n_target_critics or raise n_critics."
            )

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the actor, the critics, their target copies and the temperature."""
        x, a = spec.inputs, spec.actions
        critic = make(QEnsemble(self.torso, self.n_critics), adam(), stream(key, "critic"), x, a)
        log_alpha = make(Scalar(), adam(), stream(key, "alpha"))
        return State(
            actor=make(SquashedPolicy(spec.action_size, self.torso), adam(), stream(key, "actor"), x),
            critic=critic,
            target=critic.frozen(),
            log_alpha=log_alpha.at({"value": jnp.log(jnp.float32(self.alpha))}),
        )

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) while exploring, its mode otherwise."""
        pi = state.actor(x)
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step of all critics and of their targets; every `policy_delay`-th time, of actor and temperature."""
        alpha = jnp.exp(state.log_alpha())

        # critics: y = r + gamma (min_{i in M} Q_i'(s', a') - alpha log pi(a'|s')), one random subset M for all
        subset = jax.random.choice(stream(key, "subset"), self.n_critics, (self.n_target_critics,), replace=False)
        target = members(state.target, subset)
        next_value, _ = soft_value(state.actor, target, b.next, alpha, stream(key, "next_action"), jnp.min)
        y = hooks.on_target(td_target(b.reward, self.gamma * (1.0 - b.terminated), next_value), state, b)

        def critic_loss(critic: Net):
            q = critic(b.now, b.action)  # (N, batch)
            loss = jnp.square(q - y[None]).mean(-1).sum(0)
            return loss + hooks.critic_loss(critic, state, b, y), {"critic_loss": loss, "q": q.mean()}

        critic, metrics = descend(state.critic, adam(value_at(self.learning_rate, clock)), critic_loss)
        target = state.target.at(polyak(state.target.params, critic.params, self.tau))

        # actor: max_theta E[mean_i Q_i(s, a) - alpha log pi(a|s)]
        def actor_loss(actor: Net):
            value, entropy = soft_value(actor, critic, b.now, alpha, stream(key, "action"), jnp.mean)
            loss = -value.mean()
            return loss + hooks.actor_loss(actor, state, b), {"actor_loss": loss, "entropy": entropy.mean()}

        def improve(nets: tuple[Net, Net]):
            actor, log_alpha = nets
            actor, metrics = descend(actor, adam(value_at(self.actor_learning_rate, clock)), actor_loss)
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
        return State(actor, critic, target, log_alpha), metrics | m_actor | {"alpha": alpha}

    def _target_entropy(self, state: State) -> jax.Array | float:
        return -float(state.actor.module.size) if self.target_entropy is None else self.target_entropy

    def q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the online critics: (N, batch)."""
        return state.critic(x, action)

    def target_q(self, state: State, x: Inputs, action: jax.Array) -> jax.Array:
        """Q_i(s, a) of the target critics: (N, batch)."""
        return state.target(x, action)

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)


def soft_value(
    actor: Net, critics: Net, x: Inputs, alpha: jax.Array, key: jax.Array, over: Callable
) -> tuple[jax.Array, jax.Array]:
    """V(s) = `over`_i Q_i(s, a) - alpha log pi(a|s) and -log pi(a|s), for one a ~ pi(.|s) in each state: (batch,)."""
    action, log_prob = actor(x).sample_and_log_prob(key)
    return over(critics(x, action), 0) - alpha * log_prob, -log_prob
