"""DQN: Q-learning with a replay buffer and a target network.

Mnih et al. 2015, "Human-level control through deep reinforcement learning", Nature 518, algorithm 1. Options:
double targets (van Hasselt et al. 2016, arXiv:1509.06461, eq. 4), dueling networks (Wang et al. 2016,
arXiv:1511.06581, eq. 9), n-step targets (Sutton & Barto 2018, eq. 7.1; as in Hessel et al. 2018, arXiv:1710.02298).

Differs from the paper:
- Adam in place of RMSProp, as in Hessel et al. 2018, table 1 (whose Adam epsilon 1.5e-4 is the default here).
- The network is a multilayer perceptron: the paper's is for Atari frames.
- `replay.capacity` is 100,000 transitions, not 1,000,000; `replay.batch_size` 32 and the 4 steps between
  updates are the paper's. The target network is replaced every 2,500 updates: the paper's 10,000 steps.
- Exploration decays over a share of the run (10 %), where the paper gives a million frames of 50 million (2 %).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Replay
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.distributions import EpsilonGreedy
from ajax.core.errors import ConfigError
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make, pick, select
from ajax.core.losses import huber
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import n_step, td_target
from ajax.core.schedules import Linear, Scheduled, value_at
from ajax.networks.heads import QValues
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """Networks of a DQN.

    Attributes:
        q: Q(s, .; theta).
        target: Q(s, .; theta^-), a frozen copy.
    """

    q: Net
    target: Net


@config
class DQN(Agent):
    """Deep Q-network; see the module for the papers and the deviations."""

    loop = "off_policy"
    acts = ("discrete",)
    folds = frozenset({"on_target", "critic_loss", "post_update"})
    actor, critic = "", "q"

    gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
    learning_rate: Scheduled = setting(default=6.25e-5, positive=True, help="Adam's step size")
    adam_eps: float = setting(default=1.5e-4, positive=True, help="Adam's epsilon")
    max_grad_norm: float | None = setting(
        default=None, positive=True, help="limit of the gradient's global norm; None: no limit"
    )
    epsilon: Scheduled = setting(
        default=Linear(start=1.0, end=0.1, fraction=0.1), within=(0, 1), help="share of random actions while exploring"
    )
    error_clip: float | None = setting(
        default=1.0, positive=True, help="error beyond which the loss grows linearly; None: squared error throughout"
    )
    target_period: int = setting(default=2_500, low=1, help="updates between two copies to the target network")
    double: bool = setting(
        default=False, help="choose the next action with the online network, value it with the target"
    )
    dueling: bool = setting(default=False, help="split Q into a state value and advantages")
    n_step: int = setting(default=1, low=1, help="rewards summed before the bootstrap, in environment steps")
    torso: Torso = setting(default=Torso(widths=(256, 256)), help="network")
    replay: Replay = setting(default=Replay(capacity=100_000, batch_size=32, steps=4), help="collection and replay")

    def check(self) -> None:
        """The buffer holds an n-step window."""
        if self.replay.capacity // self.replay.n_envs < self.n_step:
            raise ConfigError(
                f"DQN(n_step={self.n_step}, replay.capacity={self.replay.capacity}): each of the"
                f" {self.replay.n_envs} environments keeps {self.replay.capacity // self.replay.n_envs} transitions,"
                " fewer than one window. Raise replay.capacity."
            )

    @property
    def window(self) -> int:
        """Consecutive transitions in a sample."""
        return self.n_step

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the network and its copy."""
        module = QValues(spec.n_actions, self.torso, self.dueling)
        q = make(module, adam(max_grad_norm=self.max_grad_norm), stream(key, "q"), spec.inputs)
        return State(q=q, target=q.frozen())

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """Epsilon-greedy: each action of the batch is random with its own coin."""
        pi = EpsilonGreedy(state.q(x), value_at(self.epsilon, clock))
        return (pi.sample(key) if explore else pi.mode()), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """Regress Q(s, a) on r + gamma max_a' Q^-(s', a'), the error clipped."""
        b, discount = n_step(b, self.gamma, self.n_step)
        q_next = state.target(b.next)
        best = (state.q(b.next) if self.double else q_next).argmax(-1)
        y = hooks.on_target(td_target(b.reward, discount, pick(q_next, best)), state, b)

        def loss(q: Net):
            q_sa = pick(q(b.now), b.action)
            error = q_sa - y
            squared = 0.5 * jnp.square(error)
            value = (squared if self.error_clip is None else huber(error, self.error_clip)).mean()
            return value + hooks.critic_loss(q, state, b, y), {"loss": value, "q": q_sa.mean()}

        tx = adam(value_at(self.learning_rate, clock), eps=self.adam_eps, max_grad_norm=self.max_grad_norm)
        q, metrics = descend(state.q, tx, loss)
        refresh = (clock.update + 1) % self.target_period == 0
        return State(q=q, target=select(refresh, q.frozen(), state.target)), metrics

    def q(self, state: State, x: Inputs) -> jax.Array:
        """Q(s, .) of the online network: (batch, n_actions)."""
        return state.q(x)
