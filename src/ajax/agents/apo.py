"""APO: PPO for the average reward per step, which discounts nothing.

Ma et al. 2021, "Average-Reward Reinforcement Learning with Trust Region Methods", arXiv:2106.03442, algorithm 1 with
PPO's clipped objective. Defaults are the authors' for MuJoCo (xtma/apo, apo/experiments/configs/mujoco/apg/
mujoco_appo.py).

Values are differential: what a state is worth beyond the average. They are known up to a constant, which the average
value constraint holds: targets are lowered by a share nu of the values' running mean.

Differs from the paper:
- A time limit bootstraps from the final observation; the authors' code takes it for the end of the task.
- Discrete actions: the paper has continuous ones alone.
- The gradient of the policy and of the value is clipped as one, as in the authors' code; the paper is silent on it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.rollout import Rollout
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.losses import clipped_surrogate
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import differential_gae
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import actor_critic
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """What an APO keeps.

    Attributes:
        net: pi(a|s; theta) and V(s; phi), trained by one loss.
        gain: eta, the running mean of the reward per step; scalar.
        value_mean: b, the running mean of V; scalar.
        started: 1 once a rollout was seen: the first sets both means; scalar.
    """

    net: Net
    gain: jax.Array
    value_mean: jax.Array
    started: jax.Array


@config
class APO(Agent):
    """Average policy optimization; see the module for the paper and the deviations."""

    loop = "on_policy"
    acts = ("discrete", "continuous")
    actor = critic = "net"
    remembers = False  # what it would learn with a memory has no test

    gae_lambda: float = setting(default=0.95, within=(0, 1), help="decay of the advantage's trace")
    clip: Scheduled = setting(
        default=0.2, positive=True, help="how far the probability ratio may move before it stops paying"
    )
    gain_rate: float = setting(
        default=0.1, within=(0, 1), help="share of a rollout in the running means of the reward and of the value"
    )
    value_constraint: float = setting(
        default=1.0, low=0, help="share of the values' running mean that their targets are lowered by"
    )
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size")
    max_grad_norm: float = setting(default=10.0, positive=True, help="limit of the gradient's global norm")
    value_coef: float = setting(default=1.0, low=0, help="weight of the value loss")
    entropy_coef: float = setting(default=0.01, low=0, help="weight of the entropy bonus")
    torso: Torso = setting(
        default=Torso(widths=(64, 64), activation="tanh", initializer="orthogonal"),
        help="policy's and value's networks",
    )
    rollout: Rollout = setting(
        default=Rollout(n_envs=10, n_steps=200, n_epochs=10, n_minibatches=20), help="collection and minibatches"
    )

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the policy and the value network; nothing is known of the averages."""
        module = actor_critic(spec, self.torso)
        net = make(module, adam(max_grad_norm=self.max_grad_norm), stream(key, "net"), spec.inputs)
        return State(net, jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) with its log probability while exploring, the mode otherwise."""
        pi, _ = state.net(x)
        if not explore:
            return pi.mode(), {}
        action = pi.sample(key)
        return action, {"log_prob": pi.log_prob(action)}

    def prepare(self, state: State, rollout: Batch) -> Batch:
        """Add `advantage` and `target_value` to a rollout (time, n_envs), with the means `gain` and `value_mean`."""
        both = jax.tree.map(lambda now, after: jnp.stack([now, after]), rollout.now, rollout.next)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), both)
        value, next_value = state.net(flat)[1].reshape(2, *rollout.reward.shape)

        rate = jnp.where(state.started > 0, self.gain_rate, 1.0)
        gain = state.gain + rate * (rollout.reward.mean() - state.gain)
        value_mean = state.value_mean + rate * (value.mean() - state.value_mean)

        advantage = differential_gae(
            rollout.reward, value, next_value, rollout.terminated, rollout.truncated, gain, self.gae_lambda
        )
        return rollout.replace(
            extras=rollout.extras
            | {
                "advantage": advantage,
                "target_value": advantage + value - self.value_constraint * value_mean,
                "gain": jnp.broadcast_to(gain, advantage.shape),
                "value_mean": jnp.broadcast_to(value_mean, advantage.shape),
            }
        )

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step up the clipped objective on a minibatch; the means become those of its rollout."""
        y = hooks.on_target(b.extras["target_value"], state, b)

        def loss(net: Net):
            pi, value = net(b.now)
            log_ratio = pi.log_prob(b.action) - b.extras["log_prob"]
            ratio = jnp.exp(log_ratio)
            gained = clipped_surrogate(ratio, b.extras["advantage"], value_at(self.clip, clock))
            policy_loss = -gained.mean() + hooks.actor_loss(net, state, b)
            value_loss = 0.5 * jnp.square(value - y).mean() + hooks.critic_loss(net, state, b, y)
            entropy = pi.entropy().mean()
            return policy_loss + self.value_coef * value_loss - self.entropy_coef * entropy, {
                "policy_loss": policy_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "approx_kl": (ratio - 1.0 - log_ratio).mean(),
            }

        tx = adam(value_at(self.learning_rate, clock), max_grad_norm=self.max_grad_norm)
        net, metrics = descend(state.net, tx, loss)
        gain, value_mean = b.extras["gain"][0], b.extras["value_mean"][0]
        return State(net, gain, value_mean, jnp.ones(())), metrics | {"gain": gain, "value_mean": value_mean}

    def v(self, state: State, x: Inputs) -> jax.Array:
        """The differential value V(s): (batch,)."""
        return state.net(x)[1]

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.net(x)[0]
