"""DAgger: imitation of an expert on the states that the learner itself comes to, all of them kept.

Ross, Gordon & Bagnell 2011, "A Reduction of Imitation Learning and Structured Prediction to No-Regret Online Learning",
arXiv:1011.0686, algorithm 3.1. The first iteration is the expert's alone (beta_1 = 1), the later ones the policy's
(beta = 0): the paper's parameter-free choice, which it found to work best.

Differs from the paper:
- An iteration is short: `replay.steps` steps of each environment, and the policy is then improved by `replay.updates`
  gradient steps on samples of the whole dataset. The paper trains a classifier anew on the dataset, and returns the
  best policy of all iterations; here the last one is returned.
- The dataset keeps the newest `replay.capacity` transitions. The default keeps all of a run of that length.
- Networks and step size are not the paper's, which has linear classifiers: they are those of the other agents here.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.replay import Replay
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.errors import ConfigError
from ajax.core.expert import Expert, advise, memories
from ajax.core.hooks import Extension, Hooks, View
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.losses import imitation_error
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import CategoricalPolicy, DeterministicPolicy
from ajax.networks.torsos import Torso

LABEL = "label"
"""Name of the expert's action among a transition's extras, in agent units."""


class State(struct.PyTreeNode):
    """The network of a DAgger.

    Attributes:
        actor: pi-hat: a categorical distribution of discrete actions, or an action in [-1, 1].
    """

    actor: Net


@config
class Teaching(Extension):
    """The part of DAgger's expert in a run: it acts with probability beta, and labels every state that was come to."""

    def init_each(self, agent: Any, spec: Spec, n: int) -> tuple[Any, jax.Array]:
        """The expert's memories, and its last actions."""
        return memories(agent.expert, n), spec.action.zeros((n,)) if spec.discrete else jnp.zeros((n, spec.action_size))

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """A sample of beta pi* + (1 - beta) pi-hat, with a coin of its own in every environment at every step."""
        assert view.spec is not None
        space, obs = view.spec.action, view.batch.now.raw
        label, memory = advise(view.agent.expert, space, view.each[0], obs, stream(view.key, "expert"), view.elapsed)
        beta = jnp.where(view.clock.update < 0, 1.0, value_at(view.agent.beta, view.clock))
        expert = jax.random.uniform(stream(view.key, "coin"), (len(obs),)) < beta
        return jnp.where(expert.reshape(-1, *[1] * (action.ndim - 1)), label, action), (memory, label)

    def record(self, view: View) -> tuple[dict[str, jax.Array], Any]:
        """What the expert would have done, whoever acted."""
        return {LABEL: view.each[1]}, view.each


@config
class DAgger(Agent):
    """Dataset aggregation; see the module for the paper and the deviations."""

    loop = "off_policy"
    acts = ("discrete", "continuous")
    folds = frozenset({"actor_loss", "post_update"})
    critic = ""
    remembers = False  # what it would learn with a memory has no test

    expert: Expert | None = setting(default=None, help="who is imitated; must be given")
    beta: Scheduled = setting(
        default=0.0, within=(0, 1), help="probability that the expert acts, once the policy has learned"
    )
    learning_rate: Scheduled = setting(default=3e-4, positive=True, help="Adam's step size")
    torso: Torso = setting(default=Torso(), help="policy's network")
    replay: Replay = setting(
        default=Replay(capacity=1_000_000, batch_size=256, warmup=1_000), help="dataset and collection"
    )

    def brings(self) -> tuple[Extension, ...]:
        """The expert's part in the run.

        Raises:
            ConfigError: there is no expert.
        """
        if self.expert is None:
            raise ConfigError("DAgger(expert=None): whom should it imitate? Give an expert: DAgger(expert=...).")
        return (Teaching(),)

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the policy."""
        module: Any = DeterministicPolicy(spec.action_size, self.torso) if not spec.discrete else None
        module = module or CategoricalPolicy(spec.n_actions, self.torso)
        return State(make(module, adam(), stream(key, "actor"), spec.inputs))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """The policy's action. Who acts, it or the expert, is decided by `Teaching`."""
        pi = state.actor(x)
        return pi if isinstance(pi, jax.Array) else pi.mode(), {}

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step towards the expert's actions on a sample of the dataset."""

        def loss(actor: Net):
            error = imitation_error(actor(b.now), b.extras[LABEL]).mean()
            return error + hooks.actor_loss(actor, state, b), {"actor_loss": error}

        actor, metrics = descend(state.actor, adam(value_at(self.learning_rate, clock)), loss)
        return State(actor), metrics

    def pi(self, state: State, x: Inputs):
        """The policy: a distribution of discrete actions, or an action in agent units."""
        return state.actor(x)
