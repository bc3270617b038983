"""An extension whose effect on every phase is known, for actor-critics in a box."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.hooks import Extension, View
from ajax.core.records import Spec


class Seen(struct.PyTreeNode):
    """What `post_update` has seen.

    Attributes:
        calls: how often it was called.
        steps: Adam steps of the critic, summed over the calls.
        key: words of the key of the last call.
        repeated: calls whose key was the last call's.
    """

    calls: jax.Array
    steps: jax.Array
    key: jax.Array
    repeated: jax.Array


@config
class Known(Extension):
    """Moves the target, the critics and the actor to where its numbers say; with all weights 0 it changes nothing."""

    target: float = setting(default=0.0, help="what the critics' target is moved to")
    target_weight: float = setting(default=0.0, low=0, help="how far: 1 replaces the target")
    critic: float = setting(default=0.0, help="what the critics' values are drawn to")
    critic_weight: float = setting(default=0.0, low=0, help="weight of their squared distance from it")
    action: float = setting(default=0.0, help="what the actor's best action is drawn to, agent units")
    action_weight: float = setting(default=0.0, low=0, help="weight of its squared distance from it")

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Seen:
        """Nothing seen."""
        return Seen(jnp.int32(0), jnp.int32(0), jax.random.key_data(key), jnp.int32(0))

    def on_target(self, target: jax.Array, view: View) -> jax.Array:
        """The target, moved."""
        return target + self.target_weight * (self.target - target)

    def critic_loss(self, view: View) -> jax.Array:
        """Squared distance of every critic's values, summed over critics as the agents' own losses are."""
        assert view.net is not None
        q = view.net(view.batch.now, view.batch.action)
        return self.critic_weight * jnp.square(q - self.critic).mean(-1).sum()

    def actor_loss(self, view: View) -> jax.Array:
        """Squared distance of the best action."""
        assert view.net is not None
        pi = view.net(view.batch.now)
        action = pi if isinstance(pi, jax.Array) else pi.mode()
        return self.action_weight * jnp.square(action - self.action).mean()

    def post_update(self, view: View) -> Seen:
        """Count the call, and look at the state and the key that it was given."""
        import optax

        seen, key = view.own, jax.random.key_data(view.key)
        steps = optax.tree_utils.tree_get(view.state.critic.opt, "count")
        repeated = seen.repeated + jnp.all(key == seen.key).astype(jnp.int32)
        return Seen(seen.calls + 1, seen.steps + steps, key, repeated)
