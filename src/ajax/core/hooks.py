"""Extensions, and how an update folds them in: an empty stack adds nothing to the compiled program.

An extension takes part in phases. Those of the environments' side (`record`, `act`, `execute`, `eval_act`,
`eval_metrics`) and `pretrain` are called by the loops of `ajax.training`; those of an update by its loop (`sample`,
`reward`, `post_update`) and by the agent, where the paper's terms stand (`on_target`, `critic_loss`, `actor_loss`).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
from flax import struct

from ajax.core.errors import CapabilityError
from ajax.core.expert import Expert
from ajax.core.keys import stream
from ajax.core.records import Batch, Clock, Net, Spec

TRANSITION = ("now", "action", "reward", "terminated", "truncated", "next", "extras")
"""Every part of a `Batch`."""

PHASE_BATCH_KEYS: dict[str, tuple[str, ...]] = {
    "pretrain": TRANSITION,
    "act": ("now", "action"),
    "execute": ("now", "action"),
    "record": TRANSITION,
    "sample": TRANSITION,
    "reward": TRANSITION,
    "on_target": TRANSITION,
    "critic_loss": TRANSITION,
    "actor_loss": TRANSITION,
    "post_update": TRANSITION,
    "eval_act": ("now", "action"),
    "eval_metrics": TRANSITION,
}
"""Phase, in the order in which they come: what `View.batch` holds in it. The other parts are None.

Leading axes: (n_envs,) in `act`, `execute`, `record` and `eval_act`; (time, n_envs) in `pretrain`; (time, episodes) in
`eval_metrics`, with `extras["valid"]` 1 where a row is part of its episode; in `sample` and `reward` those that the
loop works on, (batch,), (window, batch) for agents that sample windows, or in an on-policy `reward` (time, n_envs); in
the phases of the update those that the agent has made of them, (batch,).

`now.raw` and `next.raw` are observations as the environment gave them; `now.obs` and `next.obs` are what networks read,
normalized where the run normalizes (raw in `record` and `sample`). Actions are in agent units. `reward` is in the
environment's units in `record` and `sample`, and normalized where the run normalizes elsewhere.
"""

PHASES = tuple(PHASE_BATCH_KEYS)
"""The phases, in the order in which they come."""

ALWAYS = frozenset({"pretrain", "execute", "eval_act", "eval_metrics"})
"""Phases that no loop and no agent needs to fold: whatever trains is begun, acts and is evaluated."""


class View(struct.PyTreeNode):
    """What every phase of an extension sees.

    Attributes:
        agent: the agent's configuration; its methods (`q`, `pi`) are what an extension may ask.
        state: the agent's state before this update (after it, in `post_update`).
        batch: transitions, as `PHASE_BATCH_KEYS` says; None in `pretrain` where there are none.
        clock: where the run stands; `update` is negative in warm-up. It stands at 0 before training and in evaluations.
        key: a key of this extension and phase alone.
        own: what this extension keeps in the run.
        net: in a loss phase, the network being differentiated; else None.
        target: in `critic_loss` and `post_update`, the target that `on_target` returned; else None.
        each: in the phases of the environments' side, what this extension keeps of each environment, leading axis n.
        elapsed: there, the steps since each episode's start (n,) float32, 0 at its first action.
        spec: the environment's spaces.
        stack: every extension with what it keeps, for `ask`.
    """

    agent: Any
    state: Any
    batch: Batch
    clock: Clock
    key: jax.Array
    own: Any
    net: Net | None = None
    target: jax.Array | None = None
    each: Any = ()
    elapsed: jax.Array | None = None
    spec: Spec | None = struct.field(pytree_node=False, default=None)
    stack: tuple[tuple[Any, Any], ...] = ()

    def extra(self, name: str) -> jax.Array:
        """An extra array of the batch.

        Raises:
            CapabilityError: nothing recorded it.
        """
        if name not in self.batch.extras:
            known = ", ".join(sorted(self.batch.extras)) or "nothing"
            raise CapabilityError(
                f"the batch has no {name!r}: nothing recorded it. It holds {known} beside transitions."
            )
        return self.batch.extras[name]

    def ask(self, capability: str) -> Any:
        """What an extension of the stack provides under this name.

        Raises:
            CapabilityError: none does.
        """
        for extension, own in self.stack:
            if capability in extension.provides:
                return extension.provide(capability, own)
        raise CapabilityError(f"no extension of this run provides {capability}.")


class Extension:
    """Base of every extension: a frozen `config` that overrides the phases it needs and keeps its state in the run.

    Class attributes:
        provides: names of what `provide` has for other extensions.
    """

    provides: ClassVar[frozenset[str]] = frozenset()

    @property
    def needs(self) -> frozenset[str]:
        """Names of methods that the agent must have, such as `"q"`, or of what an extension before it provides."""
        return frozenset()

    @property
    def pretrain_rows(self) -> int:
        """Steps of every environment that `demonstrator` plays for `pretrain`."""
        return 0

    @property
    def eval_rows(self) -> int:
        """First steps of every evaluation episode that `eval_metrics` is shown."""
        return 0

    def bind(self, spec: Spec) -> Extension:
        """Return the extension made ready for an environment; for those that hold data. Called once, on the host."""
        return self

    def demonstrator(self) -> Expert | None:
        """Who plays the `pretrain_rows` steps that `pretrain` is shown; None: it is shown the run's dataset, if any."""
        return None

    def rival(self) -> Expert | None:
        """Who is evaluated beside the agent, as `evaluation/expert_return`; None: nobody."""
        return None

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Any:
        """Return what the extension keeps in the run: a pytree, `()` for nothing."""
        return ()

    def init_each(self, agent: Any, spec: Spec, n: int) -> Any:
        """Return what it keeps of each of `n` environments: a pytree of arrays (n, ...), `()` for nothing.

        Where `view.elapsed` is 0 an episode starts: it is the extension's to start again there.
        """
        return ()

    def provide(self, capability: str, own: Any) -> Any:
        """Return what is provided under one of the names in `provides`."""
        raise CapabilityError(f"{type(self).__name__} provides no {capability}.")

    def pretrain(self, view: View) -> tuple[Any, Any]:
        """Before training, once: return the agent's state and the extension's."""
        return view.state, view.own

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """While collecting: return the action to take, and `each`. The agent learns from it as if it were its own."""
        return action, view.each

    def execute(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """Whenever the agent acts: return what the environment is given, and `each`. The agent learns from its own."""
        return action, view.each

    def record(self, view: View) -> tuple[dict[str, jax.Array], Any]:
        """After a step: return arrays (n_envs, ...) by name to keep in the transition's `extras`, and `each`."""
        return {}, view.each

    def sample(self, batch: Batch, view: View) -> Batch:
        """Return the raw transitions that an update learns from, of the shapes of those given."""
        return batch

    def reward(self, reward: jax.Array, view: View) -> jax.Array:
        """Return the rewards to learn from, in the shape of those given; after their normalization."""
        return reward

    def on_target(self, target: jax.Array, view: View) -> jax.Array:
        """Return the critic's regression target, (batch,)."""
        return target

    def critic_loss(self, view: View) -> jax.Array:
        """Return a scalar to add to the critic's loss."""
        raise CapabilityError(f"{type(self).__name__} has no critic_loss.")

    def actor_loss(self, view: View) -> jax.Array:
        """Return a scalar to add to the actor's loss."""
        raise CapabilityError(f"{type(self).__name__} has no actor_loss.")

    def post_update(self, view: View) -> Any:
        """Return the extension's next state, given the agent's state after the update."""
        return view.own

    def eval_act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """While evaluating: return the action to take, and `each`."""
        return action, view.each

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """After an evaluation: return scalars by name, reported as `evaluation/NAME`."""
        return {}

    def phases(self) -> tuple[str, ...]:
        """The phases that this extension overrides."""
        return phases_of(type(self))


def phases_of(extension: type[Extension]) -> tuple[str, ...]:
    """The phases that a class of extensions overrides, in their order."""
    return tuple(p for p in PHASES if getattr(extension, p) is not getattr(Extension, p))


class Hooks:
    """The extensions of a run, folded in order, at one update; agents call it where the paper's terms stand.

    Args:
        agent: configuration.
        extensions: the stack.
        own: what each keeps.
        clock: where the run stands.
        key: of this update; every extension and phase gets one of its own from it.
        spec: the environment's spaces.

    Attributes:
        target: what `on_target` returned last, for `post_update`. An agent that calls it inside a loss sets it again,
            from what the loss returns beside its value.
    """

    def __init__(
        self,
        agent: Any,
        extensions: tuple[Extension, ...],
        own: tuple,
        clock: Clock,
        key: jax.Array,
        spec: Spec | None = None,
    ):
        self.agent, self.extensions, self.own, self.clock, self.key, self.spec = (
            agent,
            extensions,
            own,
            clock,
            key,
            spec,
        )
        self.target: jax.Array | None = None
        self.batch: Batch | None = None

    def _views(self, phase: str, state: Any, batch: Batch, net: Net | None = None, target: jax.Array | None = None):
        stack = tuple(zip(self.extensions, self.own, strict=True))
        for i, (extension, own) in enumerate(stack):
            if phase in extension.phases():
                key = stream(stream(self.key, "extensions"), f"extension {i} {phase}")
                view = View(self.agent, state, batch, self.clock, key, own, net, target, spec=self.spec, stack=stack)
                yield i, extension, view

    def sample(self, state: Any, batch: Batch) -> Batch:
        """Fold the raw transitions of an update through every extension."""
        for _, extension, view in self._views("sample", state, batch):
            batch = extension.sample(batch, view)
        return batch

    def reward(self, state: Any, batch: Batch) -> Batch:
        """Fold the rewards of a batch through every extension."""
        reward = batch.reward
        for _, extension, view in self._views("reward", state, batch):
            reward = extension.reward(reward, view)
        return batch.replace(reward=reward)

    def on_target(self, target: jax.Array, state: Any, batch: Batch) -> jax.Array:
        """Fold the target through every extension; no gradient flows through the result."""
        for _, extension, view in self._views("on_target", state, batch):
            target = extension.on_target(target, view)
        self.target, self.batch = jax.lax.stop_gradient(target), batch
        return self.target

    def critic_loss(self, net: Net, state: Any, batch: Batch, target: jax.Array) -> jax.Array | float:
        """Sum of the extensions' terms for the critic's loss; 0.0 where there are none."""
        return sum((e.critic_loss(v) for _, e, v in self._views("critic_loss", state, batch, net, target)), 0.0)

    def actor_loss(self, net: Net, state: Any, batch: Batch) -> jax.Array | float:
        """Sum of the extensions' terms for the actor's loss; 0.0 where there are none."""
        return sum((e.actor_loss(v) for _, e, v in self._views("actor_loss", state, batch, net)), 0.0)

    def post_update(self, state: Any, batch: Batch) -> tuple[Any, ...]:
        """The extensions' states after an update that ended in `state`, shown the batch that `on_target` was given."""
        own, seen = list(self.own), batch if self.batch is None else self.batch
        for i, extension, view in self._views("post_update", state, seen, target=self.target):
            own[i] = extension.post_update(view)
        return tuple(own)


def offers(agent: Any, method: str) -> bool:
    """Whether an agent's class, or one that it derives from, has a method of this name."""
    return any(callable(vars(cls).get(method)) for cls in type(agent).__mro__)


def check_extensions(agent: Any, extensions: tuple[Extension, ...], loop: frozenset[str] = frozenset()) -> None:
    """Refuse what can't run together, when the run is built.

    Args:
        agent: the agent.
        extensions: the stack.
        loop: the phases that the agent's loop folds.

    Raises:
        CapabilityError: agent and loop fold no such phase, or nobody has what an extension needs.
    """
    name, folds = type(agent).__name__, agent.folds | loop | ALWAYS
    provided: set[str] = set()
    for extension in extensions:
        unfolded = [p for p in extension.phases() if p not in folds]
        if unfolded:
            raise CapabilityError(
                f"{type(extension).__name__} works in {', '.join(unfolded)}, which {name} does not fold."
                f" {name} folds {', '.join(p for p in PHASES if p in folds)}."
            )
        lacking = sorted(n for n in extension.needs - provided if not offers(agent, n))
        if lacking:
            raise CapabilityError(
                f"{type(extension).__name__} needs {', '.join(lacking)}, which {name} has not, nor does an extension"
                " before it provide it."
            )
        provided |= extension.provides
