"""Experts: cloned before training, imitated in the loss, asked for actions, or given the first steps of an episode.

Every expert is given raw observations; its actions are mapped into agent units where they enter an extension.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.expert import Expert, advise, memories
from ajax.core.hooks import Extension, View
from ajax.core.keys import stream
from ajax.core.learn import adam, descend
from ajax.core.losses import imitation_error
from ajax.core.records import Net, Spec
from ajax.core.returns import td_target
from ajax.core.schedules import Scheduled, value_at
from ajax.extensions.networks import actor_of, discount_of, mode_of, policy_of, refuse_memory, with_actor

ACTION = "expert_action"
"""Name under which an expert's actions (n, ...), in agent units, are recorded with transitions."""


@config
class Guided(Extension):
    """Base of those that ask an expert at every step of the environments: keeps its memory of each."""

    expert: Expert = setting(help="the policy that is asked")

    def init_each(self, agent: Any, spec: Spec, n: int) -> Any:
        """The expert's memories."""
        return memories(self.expert, n)

    def ask(self, view: View) -> tuple[jax.Array, Any]:
        """What the expert does now in every environment, in agent units, and its memories after it."""
        assert view.spec is not None
        obs = view.batch.now.raw
        return advise(self.expert, view.spec.action, view.each, obs, view.key, view.elapsed)


@config
class BehaviorCloning(Extension):
    """Trains the policy on an expert's actions before training starts (Pomerleau 1991; Bain & Sammut 1995).

    The loss is the squared distance of the policy's most likely action in a box, and -log pi(a|s) of discrete actions.
    The evaluations report the loss of the last update as `cloning_loss`.
    """

    expert: Expert | None = setting(default=None, help="who is cloned; None: the dataset that the run learns from")
    steps: int = setting(default=1_000, low=1, help="steps of the expert in each environment, outside the run's own")
    updates: int = setting(default=1_000, low=1, help="gradient updates")
    batch_size: int = setting(default=256, low=1, help="transitions in an update")
    learning_rate: float = setting(default=3e-4, positive=True, help="Adam's step size")

    @property
    def needs(self) -> frozenset[str]:
        """A policy."""
        return frozenset({"pi"})

    @property
    def pretrain_rows(self) -> int:
        """Steps of the expert."""
        return self.steps

    def demonstrator(self) -> Expert | None:
        """Who is cloned."""
        return self.expert

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> jax.Array:
        """No loss yet."""
        return jnp.zeros(())

    def pretrain(self, view: View) -> tuple[Any, jax.Array]:
        """Clone."""
        refuse_memory(view.agent, self)
        if view.batch is None:
            raise CapabilityError("BehaviorCloning has nobody to clone. Give expert=..., or train with dataset=... .")
        rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), view.batch)
        tx = adam(self.learning_rate)
        actor = actor_of(view.agent, view.state)

        def update(net: Net, key: jax.Array) -> tuple[Net, jax.Array]:
            index = jax.random.randint(key, (self.batch_size,), 0, len(rows.reward))
            now, action = jax.tree.map(lambda x: x[index], (rows.now, rows.action))

            def loss(net: Net):
                value = imitation_error(policy_of(net, now), action).mean()
                return value, {"loss": value}

            net, metrics = descend(net, tx, loss)
            return net, metrics["loss"]

        start = actor.replace(opt=tx.init(actor.params))
        keys = jax.random.split(view.key, self.updates)
        cloned, losses = jax.lax.scan(update, start, keys)
        return with_actor(view.agent, view.state, cloned.params), losses[-1]

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """The last loss."""
        return {"cloning_loss": view.own}


@config
class Imitation(Guided):
    """Adds weight * mean(f |pi(s) - a_E(s)|^2) to the actor's loss (Nair et al. 2018, arXiv:1709.10089).

    a_E is what the expert would have done where the agent acted, recorded with the transition, so that an expert may
    remember. f is 1, or with the paper's `q_filter` the indicator of Q(s, a_E) > Q(s, pi(s)). The paper's term is on
    states of demonstrations; here it is on those that the agent meets. Discrete actions: -log pi(a_E|s) for the square.
    """

    weight: Scheduled = setting(default=1.0, low=0, help="weight of the term; a schedule anneals it")
    q_filter: bool = setting(default=False, help="only where the critic values the expert's action higher")

    @property
    def needs(self) -> frozenset[str]:
        """A policy, and a critic to filter by."""
        return frozenset({"pi", "q"} if self.q_filter else {"pi"})

    def record(self, view: View) -> tuple[dict[str, jax.Array], Any]:
        """The expert's action."""
        action, memory = self.ask(view)
        return {ACTION: action}, memory

    def actor_loss(self, view: View) -> jax.Array:
        """The term."""
        assert view.net is not None
        x, action = view.batch.now, view.extra(ACTION)
        pi = policy_of(view.net, x)
        error = imitation_error(pi, action)
        if self.q_filter:
            own = mode_of(jax.lax.stop_gradient(pi))
            better = value(view, x, action) > value(view, x, own)
            error = jnp.where(jax.lax.stop_gradient(better), error, 0.0)
        return value_at(self.weight, view.clock) * error.mean()


@config
class IBRL(Extension):
    """Takes the expert's action where the target critics value it higher, in acting and in the target.

    Hu et al. 2023, "Imitation bootstrapped reinforcement learning", arXiv:2311.02198, algorithm 1:
    y = r + gamma max(Q'(s', a_E), Q'(s', a_RL)). The agent's own target stands for the second (SAC's has its entropy
    term in it). Q' is the least of the target critics. The expert must be stateless, since it is asked at next
    observations of the replay.
    """

    expert: Expert = setting(help="a policy without memory, such as one cloned from demonstrations")

    @property
    def needs(self) -> frozenset[str]:
        """Target critics."""
        return frozenset({"target_q"})

    def check(self) -> None:
        """The expert has no memory."""
        if jax.tree.leaves(self.expert.init()):
            raise ConfigError(
                f"IBRL(expert={type(self.expert).__name__}): it is asked at observations of the replay, so it must be"
                " an expert without memory."
            )

    def _advice(self, view: View, obs: jax.Array) -> jax.Array:
        assert view.spec is not None
        memory = memories(self.expert, obs.shape[0])
        return advise(self.expert, view.spec.action, memory, obs, stream(view.key, "expert"))[0]

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """The better of two actions."""
        x = view.batch.now
        expert = self._advice(view, x.raw)
        ours, theirs = (view.agent.target_q(view.state, x, a).min(0) for a in (action, expert))
        better = (theirs > ours).reshape(-1, *[1] * (action.ndim - 1))
        return jnp.where(better, expert, action), view.each

    def eval_act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """The better of two actions."""
        return self.act(action, view)

    def on_target(self, target: jax.Array, view: View) -> jax.Array:
        """The higher of two targets."""
        b = view.batch
        theirs = view.agent.target_q(view.state, b.next, self._advice(view, b.next.raw)).min(0)
        return jnp.maximum(target, td_target(b.reward, discount_of(view.agent) * (1.0 - b.terminated), theirs))


@config
class ResidualPolicy(Guided):
    """The environment is given the expert's action plus `scale` times the agent's, clipped to the box.

    Silver et al. 2018, arXiv:1812.06298; Johannink et al. 2019, arXiv:1812.03201. The agent learns of its own part: to
    it the expert belongs to the environment. `Result.act` returns the agent's part alone.
    """

    scale: float = setting(default=1.0, positive=True, help="factor on the agent's actions, agent units")

    def bind(self, spec: Spec) -> Extension:
        """Refuse actions that can't be added."""
        if spec.discrete:
            raise CapabilityError("ResidualPolicy adds actions, and this environment's are discrete.")
        return self

    def execute(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """The sum."""
        expert, memory = self.ask(view)
        return jnp.clip(expert + self.scale * action, -1.0, 1.0), memory


@config
class JumpStart(Guided):
    """The expert takes the first steps of every episode, then hands over (Uchendu et al. 2022, arXiv:2204.02372).

    The paper shortens the expert's part when evaluations reach a threshold; here it follows a schedule: give
    `Linear(start=..., end=0.0)`.
    """

    steps: Scheduled = setting(help="steps of an episode that the expert takes")

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """The expert's action in the first steps."""
        assert view.elapsed is not None
        expert, memory = self.ask(view)
        first = view.elapsed < value_at(self.steps, view.clock)
        return jnp.where(first.reshape(-1, *[1] * (action.ndim - 1)), expert, action), memory


@config
class ExpertReturn(Extension):
    """Evaluates an expert beside the agent: `evaluation/expert_return`, the mean of as many episodes of its own."""

    expert: Expert = setting(help="the policy that is evaluated")

    def rival(self) -> Expert:
        """The expert."""
        return self.expert


def value(view: View, x: Any, action: jax.Array) -> jax.Array:
    """The least of the critics' values, (batch,)."""
    return view.agent.q(view.state, x, action).min(0)
