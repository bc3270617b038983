"""Extensions and how an update folds them in: an empty stack adds nothing to the compiled program."""

from __future__ import annotations

from typing import Any

import jax
from flax import struct

from ajax.core.errors import CapabilityError
from ajax.core.keys import stream
from ajax.core.records import Batch, Clock, Net

PHASES = ("on_target", "critic_loss", "actor_loss", "post_update")
"""The phases of an update, in the order in which they run."""


class View(struct.PyTreeNode):
    """What every phase of an extension sees.

    Attributes:
        agent: the agent's configuration; its methods (`q`, `pi`) are what an extension may ask.
        state: the agent's state before this update (after it, in `post_update`).
        batch: the transitions of this update.
        clock: where the run stands.
        key: a key of this extension and phase alone.
        own: what this extension keeps in the run.
        net: in a loss phase, the network being differentiated; else None.
        target: in `critic_loss`, the target that `on_target` returned; else None.
    """

    agent: Any
    state: Any
    batch: Batch
    clock: Clock
    key: jax.Array
    own: Any
    net: Net | None = None
    target: jax.Array | None = None


class Extension:
    """Base of every extension: a frozen `config` that overrides the phases it needs and keeps its state in the run."""

    needs: frozenset[str] = frozenset()
    """Names of methods that the agent must have, such as `"q"`."""

    def init(self, agent: Any, key: jax.Array) -> Any:
        """Return what the extension keeps in the run: a pytree, `()` for nothing."""
        return ()

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

    def phases(self) -> tuple[str, ...]:
        """The phases that this extension overrides."""
        return tuple(p for p in PHASES if getattr(type(self), p) is not getattr(Extension, p))


class Hooks:
    """The extensions of a run, folded in order, at one update; agents call it where the paper's terms stand."""

    def __init__(self, agent: Any, extensions: tuple[Extension, ...], own: tuple, clock: Clock, key: jax.Array):
        self.agent, self.extensions, self.own, self.clock, self.key = agent, extensions, own, clock, key

    def _views(self, phase: str, state: Any, batch: Batch, net: Net | None = None, target: jax.Array | None = None):
        for i, (extension, own) in enumerate(zip(self.extensions, self.own, strict=True)):
            if phase in extension.phases():
                key = stream(self.key, f"extension {i} {phase}")
                yield i, extension, View(self.agent, state, batch, self.clock, key, own, net, target)

    def on_target(self, target: jax.Array, state: Any, batch: Batch) -> jax.Array:
        """Fold the target through every extension; no gradient flows through the result."""
        for _, extension, view in self._views("on_target", state, batch):
            target = extension.on_target(target, view)
        return jax.lax.stop_gradient(target)

    def critic_loss(self, net: Net, state: Any, batch: Batch, target: jax.Array) -> jax.Array | float:
        """Sum of the extensions' terms for the critic's loss; 0.0 where there are none."""
        return sum((e.critic_loss(v) for _, e, v in self._views("critic_loss", state, batch, net, target)), 0.0)

    def actor_loss(self, net: Net, state: Any, batch: Batch) -> jax.Array | float:
        """Sum of the extensions' terms for the actor's loss; 0.0 where there are none."""
        return sum((e.actor_loss(v) for _, e, v in self._views("actor_loss", state, batch, net)), 0.0)

    def post_update(self, state: Any, batch: Batch) -> tuple[Any, ...]:
        """The extensions' states after an update that ended in `state`."""
        own = list(self.own)
        for i, extension, view in self._views("post_update", state, batch):
            own[i] = extension.post_update(view)
        return tuple(own)


def check_extensions(agent: Any, extensions: tuple[Extension, ...]) -> None:
    """Refuse what can't run together, when the run is built.

    Raises:
        CapabilityError: the agent folds no such phase, or lacks a method that an extension needs.
    """
    name = type(agent).__name__
    for extension in extensions:
        unfolded = [p for p in extension.phases() if p not in agent.folds]
        if unfolded:
            raise CapabilityError(
                f"{type(extension).__name__} works in {', '.join(unfolded)}, which {name} does not fold."
                f" {name} folds {', '.join(sorted(agent.folds))}."
            )
        lacking = sorted(need for need in extension.needs if not callable(vars(type(agent)).get(need)))
        if lacking:
            raise CapabilityError(f"{type(extension).__name__} needs {', '.join(lacking)}, which {name} has not.")
