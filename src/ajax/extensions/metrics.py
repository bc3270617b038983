"""Measurements: what the critic is like, reported with every evaluation. They change nothing that is learned.

Each finds the agent's critic by itself. What is measured in training is that of the last update before the evaluation.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.hooks import Extension, View, offers
from ajax.core.records import Batch, Net, Spec
from ajax.extensions.networks import (
    actor_of,
    critic_of,
    discount_of,
    estimates,
    hidden_units,
    mode_of,
    policy_of,
    refuse_memory,
)
from ajax.extensions.pretrain import monte_carlo


def target_of(view: View) -> jax.Array:
    """The target of this update, (batch,).

    Raises:
        CapabilityError: the agent has none.
    """
    if view.target is None:
        raise CapabilityError(f"{type(view.agent).__name__} regresses no critic on a target, so it has no TD error.")
    return view.target


@config
class TDErrors(Extension):
    """Mean, deviation and greatest magnitude of the target less the critic's value, over batch and critics."""

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> jax.Array:
        """Nothing measured."""
        return jnp.zeros(3)

    def post_update(self, view: View) -> jax.Array:
        """Measure the updated critic."""
        q = estimates(critic_of(view.agent, view.state), view.batch)
        error = target_of(view)[None] - q
        return jnp.stack([error.mean(), error.std(), jnp.abs(error).max()])

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """What was measured last."""
        return dict(zip(("td_error", "td_error_std", "td_error_max"), view.own, strict=True))


@config
class GradientNorms(Extension):
    """Global norms of two gradients, after each update and on its batch.

    Critic: of the squared error to the update's target, meaned over the batch, halved and summed over critics. Actor,
    where there is a Q(s, a) of actions in a box: of -E[min_i Q_i(s, a)] at the policy's most likely action. The agents'
    own losses may have other terms and factors; these are the same for all agents.
    """

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> dict[str, jax.Array]:
        """Nothing measured."""
        names = ("critic", "actor") if self._has_actor(agent, spec) else ("critic",)
        return {name: jnp.zeros(()) for name in names}

    def _has_actor(self, agent: Any, spec: Spec | None) -> bool:
        assert spec is not None
        return not spec.discrete and offers(agent, "q") and offers(agent, "pi")

    def post_update(self, view: View) -> dict[str, jax.Array]:
        """Measure the updated networks."""
        import optax

        critic = critic_of(view.agent, view.state)
        b, target = view.batch, target_of(view)

        def critic_loss(params: Any) -> jax.Array:
            return 0.5 * jnp.square(estimates(critic.at(params), b) - target[None]).mean(-1).sum()

        norms = {"critic": optax.tree_utils.tree_norm(jax.grad(critic_loss)(critic.params))}
        if self._has_actor(view.agent, view.spec):
            actor = actor_of(view.agent, view.state)

            def actor_loss(params: Any) -> jax.Array:
                action = mode_of(policy_of(actor.at(params), b.now))
                return -view.agent.q(view.state, b.now, action).min(0).mean()

            norms["actor"] = optax.tree_utils.tree_norm(jax.grad(actor_loss)(actor.params))
        return norms

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """What was measured last."""
        return {f"{name}_gradient_norm": norm for name, norm in view.own.items()}


@config
class Features(Extension):
    """Effective rank of the critic's last hidden layer, and the share of its hidden units that are dormant.

    On the states of the evaluation. Effective rank (Kumar et al. 2021, arXiv:2010.14498): the least k whose first k
    singular values hold a share 1 - `delta` of their sum. Dormant (Sokar et al. 2023, arXiv:2302.12902): a unit whose
    mean magnitude is at most `threshold` times the mean over its layer. Means over critics.
    """

    delta: float = setting(default=0.01, within=(0, 1), help="share of the singular values' sum that may be left out")
    threshold: float = setting(
        default=0.025, low=0, help="mean magnitude of a dormant unit, relative to its layer's mean"
    )
    steps: int = setting(default=64, low=1, help="first steps of each evaluation episode that are looked at")

    @property
    def eval_rows(self) -> int:
        """The steps."""
        return self.steps

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """Both measures."""
        refuse_memory(view.agent, self)
        rows, valid = flat(view.batch)
        layers = [
            layer if layer.ndim == 3 else layer[None] for layer in hidden_units(critic_of(view.agent, view.state), rows)
        ]  # each (n_critics, rows, units)
        if not layers:
            raise CapabilityError("Features measures hidden layers, and this critic has none.")
        ranks = jax.vmap(lambda h: effective_rank(h * valid[:, None], self.delta))(layers[-1])
        dormant = [jax.vmap(lambda h: dormant_units(h, valid, self.threshold))(layer) for layer in layers]
        return {
            "effective_rank": ranks.mean(),
            "dormant_units": jnp.concatenate([d.reshape(-1) for d in dormant]).mean(),
        }


def effective_rank(features: jax.Array, delta: Any) -> jax.Array:
    """The least k whose first k singular values of `features` (rows, units) hold 1 - delta of their sum."""
    singular = jnp.linalg.svd(features, compute_uv=False)
    short = jnp.cumsum(singular) < (1.0 - delta) * singular.sum()
    return short.sum().astype(jnp.float32) + 1.0


def dormant_units(activations: jax.Array, valid: jax.Array, threshold: Any) -> jax.Array:
    """Which units of a layer (rows, units) are dormant, 1.0 or 0.0 each; rows count by `valid` (rows,)."""
    magnitude = (jnp.abs(activations) * valid[:, None]).sum(0) / jnp.maximum(valid.sum(), 1.0)
    return (magnitude <= threshold * magnitude.mean()).astype(jnp.float32)


@config
class QBias(Extension):
    """The critic's value less the discounted return that followed, on the evaluation's episodes.

    Chen et al. 2021 (REDQ), arXiv:2101.05982: mean and deviation over states, each also divided by the mean
    return's magnitude there. The value is the mean over critics, of the action taken (V for agents without Q). Steps of
    episodes whose end lies beyond `steps` are left out; a return that a time limit cut is short by what would have
    followed. An entropy bonus, and normalized rewards, are in the values: see `PHASE_BATCH_KEYS`.
    """

    steps: int = setting(default=1_000, low=1, help="first steps of each evaluation episode that are looked at")

    @property
    def eval_rows(self) -> int:
        """The steps."""
        return self.steps

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """Bias and its deviation, plain and normalized."""
        refuse_memory(view.agent, self)
        value, returns, weight = followed(view)
        bias = weighted_mean(value - returns, weight)
        spread = jnp.sqrt(weighted_mean(jnp.square(value - returns - bias), weight))
        scale = jnp.abs(weighted_mean(returns, weight))
        plain = {"q_bias": bias, "q_bias_std": spread}
        return plain | {f"{name}_normalized": x / jnp.maximum(scale, 1e-8) for name, x in plain.items()}


@config
class ExplainedVariance(Extension):
    """1 - Var(G - V) / Var(G): the share of the returns' variance that the critic knows of.

    1: it knows all; 0: no more than their mean; negative: worse than that. G and V are those of `QBias`,
    on the evaluation's episodes.
    """

    steps: int = setting(default=1_000, low=1, help="first steps of each evaluation episode that are looked at")

    @property
    def eval_rows(self) -> int:
        """The steps."""
        return self.steps

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """The share."""
        refuse_memory(view.agent, self)
        value, returns, weight = followed(view)

        def variance(x: jax.Array) -> jax.Array:
            return weighted_mean(jnp.square(x - weighted_mean(x, weight)), weight)

        return {"explained_variance": 1.0 - variance(returns - value) / jnp.maximum(variance(returns), 1e-12)}


def flat(batch: Batch) -> tuple[Batch, jax.Array]:
    """The rows of an evaluation (time, episodes, ...) in one axis, and which are part of their episode."""
    rows = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
    return rows, rows.extras["valid"]


def followed(view: View) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Of an evaluation's rows, (rows,) each: the critics' mean value, the discounted return, 1.0 where both count."""
    returns, seen = monte_carlo(view.batch, discount_of(view.agent))
    rows, valid = flat(view.batch)
    critic: Net = critic_of(view.agent, view.state)
    return estimates(critic, rows).mean(0), returns.reshape(-1), seen.reshape(-1) * valid


def weighted_mean(x: jax.Array, weight: jax.Array) -> jax.Array:
    """Mean of `x` (rows,) by `weight`."""
    return (x * weight).sum() / jnp.maximum(weight.sum(), 1.0)
