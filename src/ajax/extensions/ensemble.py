"""Ensembles of critics: keeping their members apart."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.hooks import Extension, View


@config
class CriticDiversity(Extension):
    """Adds eta / (N - 1) * E[sum over pairs i != j of cos(grad_a Q_i, grad_a Q_j)] to the critics' loss.

    An et al. 2021, "Uncertainty-based offline reinforcement learning with diversified Q-ensemble" (EDAC),
    arXiv:2110.01548: its ensemble-similarity loss. Critics whose gradients in the action point apart disagree where
    there are no data.
    """

    eta: float = setting(default=1.0, low=0, help="weight of the term")

    @property
    def needs(self) -> frozenset[str]:
        """Critics of actions."""
        return frozenset({"q"})

    def critic_loss(self, view: View) -> jax.Array:
        """The term."""
        assert view.net is not None and view.spec is not None
        if view.spec.discrete:
            raise CapabilityError("CriticDiversity differentiates by the action, and these actions are discrete.")
        net, b = view.net, view.batch
        slopes = jax.jacrev(lambda action: net(b.now, action).sum(-1))(b.action)  # (n_critics, batch, size)
        if slopes.shape[0] < 2:
            raise CapabilityError("CriticDiversity compares critics, and this agent has one.")
        slopes = slopes / (jnp.linalg.norm(slopes, axis=-1, keepdims=True) + 1e-10)
        cosines = jnp.einsum("ibd,jbd->bij", slopes, slopes)
        apart = 1.0 - jnp.eye(slopes.shape[0])
        return self.eta * (cosines * apart[None]).sum((1, 2)).mean() / (slopes.shape[0] - 1)
