"""UDRL: reinforcement learning as supervised learning: what was done is what to do when asked for what came of it.

Srivastava, Shyam, Mutz, Jaskowski & Schmidhuber 2019, "Training Agents using Upside-Down Reinforcement Learning",
arXiv:1912.02877, algorithms 1 and 2; Schmidhuber 2019, "Reinforcement Learning Upside Down", arXiv:1912.02875.

A behavior function B(a | s, d^r, d^h) is trained to name the action of a past segment, given the state in which it
began and, as a command, the return that it had and the steps that it took. To act, it is asked for the returns of the
best episodes so far, in their time, and for a little more while exploring. `ajax.buffers.episodes` keeps the best
episodes and draws the segments; `ajax.training.commands` asks.

Differs from the paper:
- The paper searches its hyper-parameters task by task; the defaults lie within the ranges that it searches.
- An iteration is a number of environment steps, not of episodes: its commands are drawn from the episodes kept when it
  begins, and B changes in the midst of those that are under way when it ends.
- Commands are not bounded by the best return possible, which an agent can't know.
- Continuous actions: a Gaussian, clipped to the box; the paper of 2019 has discrete ones alone.
- Evaluations take the likeliest action; while exploring it is drawn from B, as in the paper.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.episodes import Episodes
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.commanded import commanded
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """What a UDRL keeps.

    Attributes:
        behavior: B(a | s, d^r, d^h; theta).
    """

    behavior: Net


@config
class UDRL(Agent):
    """Upside-down reinforcement learning; see the module for the papers and the deviations."""

    loop = "episodic"
    acts = ("discrete", "continuous")
    folds = frozenset({"actor_loss", "post_update"})
    actor, critic = "behavior", ""
    remembers = False  # a segment is learned from at its first step alone

    learning_rate: Scheduled = setting(default=1e-3, positive=True, help="Adam's step size")
    return_scale: float = setting(default=0.02, positive=True, help="what desired returns are multiplied by for B")
    horizon_scale: float = setting(default=0.02, positive=True, help="what desired horizons are multiplied by for B")
    torso: Torso = setting(
        default=Torso(widths=(64, 64, 64)), help="B's network; the command gates its first hidden layer"
    )
    replay: Episodes = setting(default=Episodes(), help="collection, the episodes kept, and segments of them")

    def check(self) -> None:
        """There is a hidden layer to gate."""
        if not self.torso.widths:
            raise ConfigError("UDRL(torso.widths=()): the command gates the first hidden layer. Give at least one.")

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the behavior function."""
        told = spec.inputs.replace(command=jnp.zeros((1, 2)))
        return State(make(commanded(spec, self.torso), adam(), stream(key, "behavior"), told))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of B(. | s, c) while exploring, its likeliest action otherwise; in a box both are clipped to it."""
        pi = self.behavior(state, x)
        action = pi.sample(key) if explore else pi.mode()
        return (action if action.ndim == 1 else jnp.clip(action, -1.0, 1.0)), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step up log B(a_t1 | s_t1, d^r, d^h) on a batch of segments."""
        b = b.replace(now=self._scaled(b.now))

        def loss(behavior: Net):
            pi = behavior(b.now)
            value = -pi.log_prob(b.action).mean()
            more = {"loss": value, "entropy": pi.entropy().mean()}
            return value + hooks.actor_loss(behavior, state, b), more

        behavior, metrics = descend(state.behavior, adam(value_at(self.learning_rate, clock)), loss)
        return State(behavior), metrics

    def behavior(self, state: State, x: Inputs):
        """The distribution B(. | s, c), in agent units, of inputs with commands. It is no pi(. | s)."""
        return state.behavior(self._scaled(x))

    def _scaled(self, x: Inputs) -> Inputs:
        assert x.command is not None
        return x.replace(command=x.command * jnp.stack([self.return_scale, self.horizon_scale])[None])
