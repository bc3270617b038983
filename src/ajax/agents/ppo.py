"""PPO: a clipped policy-gradient step, several epochs over each rollout.

Schulman et al. 2017, arXiv:1707.06347, algorithm 1 with the clipped objective (eq. 7) and generalized advantages
(eq. 11). Defaults are the paper's for MuJoCo (table 3), which has no entropy bonus.

Differs from the paper:
- The 2,048 transitions of a rollout come from 8 environments at once, not from one.
- Advantages are standardized per minibatch, the gradient's global norm is clipped at 0.5, Adam's epsilon is 1e-5
  and the networks start orthogonal, as in the authors' code (openai/baselines, ppo2/model.py and a2c/utils.py;
  collected in Huang et al. 2022, "The 37 implementation details of PPO"). The value loss is not clipped: the paper
  has no such term.
- A time limit bootstraps from the final observation's value; baselines treats it as the end of the task.
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
from ajax.core.losses import clipped_surrogate, standardize
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import gae
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import actor_critic
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a PPO.

    Attributes:
        net: pi(a|s; theta) and V(s; theta), trained by one loss.
    """

    net: Net


@config
class PPO(Agent):
    """Proximal policy optimization; see the module for the paper and the deviations."""

    loop = "on_policy"
    acts = ("discrete", "continuous")
    actor = critic = "net"

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    gae_lambda: float = setting(default=0.95, within=(0, 1), help="decay of the advantage's trace")
    clip: Scheduled = setting(
        default=0.2, positive=True, help="how far the probability ratio may move before it stops paying"
    )
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size")
    adam_eps: float = setting(default=1e-5, positive=True, help="Adam's epsilon")
    max_grad_norm: float = setting(default=0.5, positive=True, help="limit of the gradient's global norm")
    value_coef: float = setting(default=0.5, low=0, help="weight of the value loss")
    entropy_coef: float = setting(default=0.0, low=0, help="weight of the entropy bonus")
    standardize_advantages: bool = setting(default=True, help="standardize the advantages of each minibatch")
    torso: Torso = setting(
        default=Torso(widths=(64, 64), activation="tanh", initializer="orthogonal"),
        help="policy's and value's networks",
    )
    rollout: Rollout = setting(default=Rollout(), help="collection and minibatches")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the policy and the value network."""
        module = actor_critic(spec, self.torso)
        return State(make(module, adam(max_grad_norm=self.max_grad_norm), stream(key, "net"), spec.inputs))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) with its log probability while exploring, the mode otherwise."""
        pi, _ = state.net(x)
        if not explore:
            return pi.mode(), {}
        action = pi.sample(key)
        return action, {"log_prob": pi.log_prob(action)}

    def prepare(self, state: State, rollout: Batch) -> Batch:
        """Add `advantage` and `target_value` to a rollout (time, n_envs), before the first update on it."""
        both = jax.tree.map(lambda now, after: jnp.stack([now, after]), rollout.now, rollout.next)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[3:]), both)
        value, next_value = state.net(flat)[1].reshape(2, *rollout.reward.shape)
        advantage = gae(
            rollout.reward, value, next_value, rollout.terminated, rollout.truncated, self.gamma, self.gae_lambda
        )
        extras = rollout.extras | {"advantage": advantage, "target_value": advantage + value}
        return rollout.replace(extras=extras)

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step up the clipped objective on a minibatch (eq. 9)."""
        y = hooks.on_target(b.extras["target_value"], state, b)
        advantage = b.extras["advantage"]
        if self.standardize_advantages:
            advantage = standardize(advantage)

        def loss(net: Net):
            pi, value = net(b.now)
            log_ratio = pi.log_prob(b.action) - b.extras["log_prob"]
            ratio = jnp.exp(log_ratio)
            clip = value_at(self.clip, clock)
            policy_loss = -clipped_surrogate(ratio, advantage, clip).mean() + hooks.actor_loss(net, state, b)
            value_loss = 0.5 * jnp.square(value - y).mean() + hooks.critic_loss(net, state, b, y)
            entropy = pi.entropy().mean()
            return policy_loss + self.value_coef * value_loss - self.entropy_coef * entropy, {
                "policy_loss": policy_loss,
                "value_loss": value_loss,
                "entropy": entropy,
                "approx_kl": (ratio - 1.0 - log_ratio).mean(),
                "clip_fraction": (jnp.abs(ratio - 1.0) > clip).mean(),
            }

        tx = adam(value_at(self.learning_rate, clock), eps=self.adam_eps, max_grad_norm=self.max_grad_norm)
        net, metrics = descend(state.net, tx, loss)
        return State(net), metrics

    def v(self, state: State, x: Inputs) -> jax.Array:
        """V(s): (batch,)."""
        return state.net(x)[1]

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.net(x)[0]
