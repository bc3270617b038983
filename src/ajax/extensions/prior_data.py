"""Prior data: transitions that were recorded beforehand, in every batch beside those that the agent collects."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp

from ajax.buffers import replay
from ajax.buffers.dataset import Dataset
from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.hooks import Extension, View
from ajax.core.records import Batch, Spec


@config
class PriorData(Extension):
    """Draws a share of every batch from a dataset, the rest from the replay.

    Ball et al. 2023, "Efficient online reinforcement learning with offline data" (RLPD), arXiv:2302.02948, algorithm 1:
    half of each batch. The paper's other parts are fields of the agents: layer normalization of the critic
    (`Torso(layer_norm=True)`), large ensembles (`REDQ`) and several updates a step (`Replay(updates=...)`).
    """

    data: Dataset | replay.Store = setting(help="the transitions, actions in the environment's units")
    share: float = setting(default=0.5, within=(0, 1), help="share of a batch that is drawn from them, rounded to rows")

    def bind(self, spec: Spec) -> Extension:
        """The data as arrays in agent units.

        Raises:
            ConfigError: the data do not fit the environment.
        """
        return dataclasses.replace(self, data=self.data.store(spec)) if isinstance(self.data, Dataset) else self

    def sample(self, batch: Batch, view: View) -> Batch:
        """The batch, its first rows replaced."""
        assert isinstance(self.data, replay.Store)
        if batch.extras:
            raise CapabilityError(
                f"PriorData has no {', '.join(sorted(batch.extras))}: prior data can't be mixed with what another"
                " extension records as the agent acts."
            )
        n = batch.reward.shape[-1]
        prior = replay.sample(self.data, view.key, n, view.agent.window)
        first = jnp.arange(n) < jnp.round(self.share * n)
        axis = batch.reward.ndim - 1  # 1 for windows

        def mix(ours: jax.Array, theirs: jax.Array) -> jax.Array:
            where = first.reshape(*[1] * axis, n, *[1] * (ours.ndim - axis - 1))
            return jnp.where(where, theirs.astype(ours.dtype), ours)

        return jax.tree.map(mix, batch, prior)
