"""Extensions of known effect, for probes alone."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.hooks import Extension, View
from ajax.core.learn import pick
from ajax.core.records import Spec


@config
class ConstantTarget(Extension):
    """The critic's target is a constant, whatever the agent's own was."""

    value: float = setting(help="the target")

    def on_target(self, target: jax.Array, view: View) -> jax.Array:
        """The constant."""
        return jnp.full_like(target, self.value)


@config
class QTerm(Extension):
    """Adds weight * mean(target * Q(s, a)) to a critic's loss: a squared error then settles at (1 - weight) target."""

    weight: float = setting(help="weight")

    def critic_loss(self, view: View) -> jax.Array:
        """The term, of a network of action values."""
        assert view.net is not None and view.target is not None  # this phase has both
        return self.weight * (view.target * pick(view.net(view.batch.now), view.batch.action)).mean()


@config
class VTerm(Extension):
    """The same of a network that returns a policy and V."""

    weight: float = setting(help="weight")

    def critic_loss(self, view: View) -> jax.Array:
        """The term, of a network of a policy and state values."""
        assert view.net is not None and view.target is not None
        return self.weight * (view.target * view.net(view.batch.now)[1]).mean()


@config
class FirstAction(Extension):
    """Adds -weight * mean(log pi(0|s)) to the actor's loss: the policy goes to action 0."""

    weight: float = setting(help="weight")

    def actor_loss(self, view: View) -> jax.Array:
        """The term, of a network that returns a policy and V."""
        assert view.net is not None
        pi, _ = view.net(view.batch.now)
        return -self.weight * pi.log_prob(jnp.zeros_like(view.batch.action)).mean()


@config
class Drawn(Extension):
    """Draws the most likely action in a box to one by the actor's loss, and to another by the rewards."""

    loss: float = setting(default=0.0, help="what the loss draws it to, agent units")
    loss_weight: float = setting(default=0.0, low=0, help="weight of its squared distance in the loss")
    reward_to: float = setting(default=0.0, help="what the rewards draw it to, agent units")
    reward_weight: float = setting(default=0.0, low=0, help="weight of its squared distance in each reward")

    def actor_loss(self, view: View) -> jax.Array:
        """The term, of a network that returns a distribution or an action."""
        assert view.net is not None
        pi = view.net(view.batch.now)
        return self.loss_weight * jnp.square((pi if isinstance(pi, jax.Array) else pi.mode()) - self.loss).mean()

    def reward(self, reward: jax.Array, view: View) -> jax.Array:
        """The rewards, less the distance of each row's action."""
        return reward - self.reward_weight * jnp.square(view.batch.action - self.reward_to).sum(-1)


@config
class Counter(Extension):
    """Counts updates, and keeps the last one's index and the sum of the networks' parameters that it was shown."""

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Nothing counted."""
        return jnp.int32(0), jnp.int32(-1), jnp.float32(0)

    def post_update(self, view: View) -> tuple[jax.Array, jax.Array, jax.Array]:
        """One more."""
        count, _, _ = view.own
        return count + 1, view.clock.update, total(view.state)


def total(state: Any) -> jax.Array:
    """Return the sum over all numbers of an agent's state."""
    return sum((leaf.astype(jnp.float32).sum() for leaf in jax.tree.leaves(state)), jnp.float32(0))
