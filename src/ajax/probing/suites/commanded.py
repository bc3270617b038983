"""What the cases of agents that follow commands share."""

from __future__ import annotations

from typing import Any

import jax

from ajax.core.config import config
from ajax.core.hooks import Extension, View


@config
class Uniform(Extension):
    """Acts uniformly at random while collecting, so that what the episodes say of an action is known exactly."""

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, Any]:
        """A uniform draw."""
        assert view.spec is not None
        if view.spec.discrete:
            return view.spec.action.sample(view.key, action.shape), view.each
        return jax.random.uniform(view.key, action.shape, minval=-1.0), view.each


@config
class Overhear(Extension):
    """Records the command that each action was taken under, with its transition."""

    def init_each(self, agent: Any, spec: Any, n: int) -> jax.Array:
        """Nothing heard."""
        return jax.numpy.zeros((n, 2))

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """The action as it is."""
        assert view.batch.now.command is not None
        return action, view.batch.now.command

    def record(self, view: View) -> tuple[dict[str, jax.Array], jax.Array]:
        """The command."""
        return {"command": view.each}, view.each
