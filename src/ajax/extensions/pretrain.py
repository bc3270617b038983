"""phi*: the value of the policy that the data or an expert comes from, learned before training and then kept.

`MCPretrain` regresses it on discounted returns, `BellmanPretrain` on one-step targets. Other extensions (`CalQL`) read
it as `view.ask("phi*")`, a function of inputs and actions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.expert import Expert
from ajax.core.hooks import Extension, View
from ajax.core.learn import adam, descend, make, pick, polyak
from ajax.core.records import Batch, Inputs, Net, Spec
from ajax.core.returns import lambda_returns, td_target
from ajax.extensions.networks import discount_of
from ajax.networks.heads import QEnsemble, QValues
from ajax.networks.torsos import Torso


class Reference(struct.PyTreeNode):
    """What is kept: phi*, and the loss of its last update.

    Attributes:
        net: phi*(s, a), of raw observations.
        loss: scalar.
    """

    net: Net
    loss: jax.Array

    def __call__(self, x: Inputs, action: jax.Array) -> jax.Array:
        """phi*(s, a): (batch,)."""
        return value_of(self.net, Inputs(x.raw), action)


@config
class Pretrain(Extension):
    """Base of both: what phi* is learned from, and how long."""

    provides: ClassVar[frozenset[str]] = frozenset({"phi*"})

    expert: Expert | None = setting(default=None, help="whose values are learned; None: those of the run's dataset")
    steps: int = setting(default=1_000, low=1, help="steps of the expert in each environment, outside the run's own")
    updates: int = setting(default=1_000, low=1, help="gradient updates")
    batch_size: int = setting(default=256, low=1, help="transitions in an update")
    learning_rate: float = setting(default=3e-4, positive=True, help="Adam's step size")
    torso: Torso = setting(default=Torso(), help="network")

    @property
    def pretrain_rows(self) -> int:
        """Steps of the expert."""
        return self.steps

    def demonstrator(self) -> Expert | None:
        """Whose values are learned."""
        return self.expert

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Reference:
        """The network, untrained."""
        if spec.discrete:
            return Reference(make(QValues(spec.n_actions, self.torso), adam(), key, spec.inputs), jnp.zeros(()))
        return Reference(make(QEnsemble(self.torso, 1), adam(), key, spec.inputs, spec.actions), jnp.zeros(()))

    def provide(self, capability: str, own: Reference) -> Callable[[Inputs, jax.Array], jax.Array]:
        """phi* as a function of inputs and actions."""
        return own

    def pretrain(self, view: View) -> tuple[Any, Reference]:
        """Learn phi*."""
        if view.batch is None:
            name = type(self).__name__
            raise CapabilityError(f"{name} has nothing to learn from. Give expert=..., or train with dataset=... .")
        b = view.batch.replace(now=Inputs(view.batch.now.raw), next=Inputs(view.batch.next.raw))
        return view.state, self.learn(view.own, b, discount_of(view.agent), view.key)

    def learn(self, own: Reference, rows: Batch, gamma: Any, key: jax.Array) -> Reference:
        """Learn phi* from rows (time, n_envs, ...) of raw observations."""
        raise NotImplementedError

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """The last loss."""
        return {"phi_loss": view.own.loss}


@config
class MCPretrain(Pretrain):
    """Regresses phi* on Monte-Carlo returns: discounted rewards to the end of the episode (Sutton & Barto 2018, 5.1).

    Rows of an episode whose end was not seen are left out; one that was cut by a time limit counts as far as it went.
    Where no end was seen nothing is learned, and `phi_loss` is NaN: raise `steps`, or mark the dataset's ends.
    """

    def learn(self, own: Reference, rows: Batch, gamma: Any, key: jax.Array) -> Reference:
        """Least squares on returns."""
        returns, seen = monte_carlo(rows, gamma)
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (rows.now, rows.action, returns, seen))

        def update(net: Net, key: jax.Array) -> tuple[Net, jax.Array]:
            index = jax.random.randint(key, (self.batch_size,), 0, flat[2].shape[0])
            now, action, target, weight = jax.tree.map(lambda x: x[index], flat)
            return regress(net, self.learning_rate, now, action, target, weight)

        net, losses = jax.lax.scan(update, own.net, jax.random.split(key, self.updates))
        return Reference(net, jnp.where(seen.any(), losses[-1], jnp.nan))


@config
class BellmanPretrain(Pretrain):
    """Regresses phi* on r + gamma phi'(s', a'), a' being what was done next: SARSA (Sutton & Barto 2018, eq. 6.7).

    phi' is a Polyak average. Rows that end in a time limit, and the last of each environment, have no a' and are left
    out.
    """

    tau: float = setting(default=0.005, within=(0, 1), help="share of phi in each update of its average")

    def learn(self, own: Reference, rows: Batch, gamma: Any, key: jax.Array) -> Reference:
        """Least squares on one-step targets."""
        follows = jax.tree.map(lambda x: jnp.concatenate([x[1:], x[-1:]]), rows.action)
        last = jnp.zeros_like(rows.truncated).at[-1].set(1.0)
        known = jnp.maximum(rows.terminated, (1.0 - rows.truncated) * (1.0 - last))
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (rows, follows, known))

        def update(carry: tuple[Net, Net], key: jax.Array) -> tuple[tuple[Net, Net], jax.Array]:
            net, average = carry
            index = jax.random.randint(key, (self.batch_size,), 0, flat[2].shape[0])
            b, after, weight = jax.tree.map(lambda x: x[index], flat)
            target = td_target(b.reward, gamma * (1.0 - b.terminated), value_of(average, b.next, after))
            net, loss = regress(net, self.learning_rate, b.now, b.action, target, weight)
            return (net, average.at(polyak(average.params, net.params, self.tau))), loss

        (net, _), losses = jax.lax.scan(update, (own.net, own.net.frozen()), jax.random.split(key, self.updates))
        return Reference(net, losses[-1])


def monte_carlo(rows: Batch, gamma: Any) -> tuple[jax.Array, jax.Array]:
    """Discounted returns to each episode's end, and 1.0 where that end was seen; both (time, n_envs)."""
    returns = lambda_returns(rows.reward, jnp.zeros_like(rows.reward), rows.terminated, rows.truncated, gamma, 1.0)
    ended = jnp.maximum(rows.terminated, rows.truncated)
    return returns, jnp.flip(jax.lax.cummax(jnp.flip(ended, 0)), 0)


def value_of(net: Net, x: Inputs, action: jax.Array) -> jax.Array:
    """phi(s, a): (batch,)."""
    return pick(net(x), action) if isinstance(net.module, QValues) else net(x, action)[0]


def regress(
    net: Net, learning_rate: Any, x: Inputs, action: jax.Array, target: jax.Array, weight: jax.Array
) -> tuple[Net, jax.Array]:
    """A step of phi(s, a) to `target` (batch,) in weighted least squares; returns the network and its loss before."""

    def loss(net: Net):
        error = jnp.square(value_of(net, x, action) - jax.lax.stop_gradient(target))
        value = (weight * error).sum() / jnp.maximum(weight.sum(), 1.0)
        return value, {"loss": value}

    net, metrics = descend(net, adam(learning_rate), loss)
    return net, metrics["loss"]
