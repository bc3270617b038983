"""PQN: Q-learning on rollouts, by layer normalization and lambda returns, without replay or target network.

Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning", arXiv:2407.04811, algorithm 1. Defaults are the
paper's for Atari (table 7): 128 environments, 32 steps, lambda 0.65, RAdam.

Differs from the paper:
- The network is a multilayer perceptron: the paper's is for Atari frames. A layer is normalized before its
  nonlinearity, as in the authors' code (mttga/purejaxql, purejaxql/pqn_gymnax.py); weights start LeCun's uniform.
- The second-to-last row of a rollout bootstraps from what its own step led to, as the paper's lambda returns do. The
  authors' code takes there the value of what the *last* step led to.
- A time limit bootstraps from the final observation; the authors' code takes it for the end of the task.
- A scheduled learning rate moves from one rollout to the next; in the authors' code, with every gradient step.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.rollout import Rollout
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.distributions import EpsilonGreedy
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, descend, make, pick, radam
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import lambda_returns
from ajax.core.schedules import Linear, Scheduled, value_at
from ajax.networks.heads import QValues
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """The network of a PQN.

    Attributes:
        q: Q(s, .; phi).
    """

    q: Net


@config
class PQN(Agent):
    """Parallelized Q-network; see the module for the paper and the deviations."""

    loop = "on_policy"
    acts = ("discrete",)
    folds = frozenset({"on_target", "critic_loss", "post_update"})
    actor, critic = "", "q"
    remembers = False  # what it would learn with a memory has no test

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    td_lambda: float = setting(default=0.65, within=(0, 1), help="decay of the return's trace; 0: one-step targets")
    learning_rate: Scheduled = setting(default=2.5e-4, positive=True, help="RAdam's step size")
    max_grad_norm: float | None = setting(
        default=10.0, positive=True, help="limit of the gradient's global norm; None: no limit"
    )
    epsilon: Scheduled = setting(
        default=Linear(start=1.0, end=0.001, fraction=0.1),
        within=(0, 1),
        help="share of random actions while exploring",
    )
    torso: Torso = setting(default=Torso(widths=(256, 256), layer_norm=True), help="network")
    rollout: Rollout = setting(
        default=Rollout(n_envs=128, n_steps=32, n_epochs=2, n_minibatches=32), help="collection and minibatches"
    )

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the network."""
        tx = radam(max_grad_norm=self.max_grad_norm)
        return State(make(QValues(spec.n_actions, self.torso), tx, stream(key, "q"), spec.inputs))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """Epsilon-greedy: each action of the batch is random with its own coin."""
        pi = EpsilonGreedy(state.q(x), value_at(self.epsilon, clock))
        return (pi.sample(key) if explore else pi.mode()), {}

    def prepare(self, state: State, rollout: Batch) -> Batch:
        """Add `target` to a rollout (time, n_envs): lambda returns whose bootstrap is max_a Q(s', a)."""
        following = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), rollout.next)
        next_value = state.q(following).max(-1).reshape(rollout.reward.shape)
        target = lambda_returns(
            rollout.reward, next_value, rollout.terminated, rollout.truncated, self.gamma, self.td_lambda
        )
        return rollout.replace(extras=rollout.extras | {"target": target})

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """Regress Q(s, a) on its lambda return, on a minibatch."""
        y = hooks.on_target(b.extras["target"], state, b)

        def loss(q: Net):
            q_sa = pick(q(b.now), b.action)
            value = 0.5 * jnp.square(q_sa - y).mean()
            return value + hooks.critic_loss(q, state, b, y), {"loss": value, "q": q_sa.mean()}

        tx = radam(value_at(self.learning_rate, clock), max_grad_norm=self.max_grad_norm)
        q, metrics = descend(state.q, tx, loss)
        return State(q), metrics

    def q(self, state: State, x: Inputs) -> jax.Array:
        """Q(s, .): (batch, n_actions)."""
        return state.q(x)
