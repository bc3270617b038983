"""Adversarial imitation: the reward says how much a transition looks like an expert's."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers import replay
from ajax.buffers.dataset import Dataset
from ajax.core.config import config, setting
from ajax.core.hooks import Extension, View
from ajax.core.learn import adam, descend, make
from ajax.core.records import Batch, Net, Spec
from ajax.networks.torsos import MLP, Torso


class Discriminator(struct.PyTreeNode):
    """What GAIL keeps.

    Attributes:
        net: the logit of D(s, a), the probability that the expert did a in s.
        loss: its last loss, the cross entropy.
        accuracy: share of the last batches, half of them the expert's, that it told apart.
    """

    net: Net
    loss: jax.Array
    accuracy: jax.Array


@config
class GAIL(Extension):
    """Rewards -log(1 - D(s, a)), D being trained to tell an expert's transitions from the agent's.

    Ho & Ermon 2016, "Generative adversarial imitation learning", arXiv:1606.03476, eq. 17 and algorithm 1, which D's
    labels are swapped in: there the agent's have 1, and the reward is -log D. The authors' code has the form used here.
    `PPO` stands for the paper's TRPO.
    """

    data: Dataset | replay.Store = setting(help="the expert's transitions, actions in the environment's units")
    learning_rate: float = setting(default=3e-4, positive=True, help="Adam's step size for D")
    keep_reward: float = setting(default=0.0, low=0, help="weight of the environment's reward beside D's")
    torso: Torso = setting(default=Torso(widths=(64, 64), activation="tanh"), help="D's network")

    def bind(self, spec: Spec) -> Extension:
        """The data as arrays in agent units.

        Raises:
            ConfigError: the data do not fit the environment.
        """
        return dataclasses.replace(self, data=self.data.store(spec)) if isinstance(self.data, Dataset) else self

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Discriminator:
        """D, untrained."""
        x = features(spec.inputs.obs, spec.actions, spec)
        return Discriminator(make(MLP(self.torso, 1), adam(), key, x), jnp.zeros(()), jnp.zeros(()))

    def reward(self, reward: jax.Array, view: View) -> jax.Array:
        """D's reward, beside a share of the environment's."""
        logit = self._logit(view.own.net, flat(view.batch, reward.ndim), view.spec)
        return jax.nn.softplus(logit).reshape(reward.shape) + self.keep_reward * reward

    def post_update(self, view: View) -> Discriminator:
        """One step of D on this batch and as many transitions of the expert."""
        assert isinstance(self.data, replay.Store)
        ours = flat(view.batch, view.batch.reward.ndim)
        theirs = replay.sample(self.data, view.key, len(ours.reward))

        def loss(net: Net):
            agent, expert = self._logit(net, ours, view.spec), self._logit(net, theirs, view.spec)
            value = 0.5 * (jax.nn.softplus(agent).mean() + jax.nn.softplus(-expert).mean())
            accuracy = 0.5 * ((agent < 0).mean() + (expert > 0).mean())
            return value, {"loss": value, "accuracy": accuracy}

        net, found = descend(view.own.net, adam(self.learning_rate), loss)
        return Discriminator(net, found["loss"], found["accuracy"])

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """D's last loss and accuracy."""
        return {"gail_loss": view.own.loss, "gail_accuracy": view.own.accuracy}

    def _logit(self, net: Net, rows: Batch, spec: Any) -> jax.Array:
        """The logit of D at raw rows, (rows,), the observations standardized as the expert's are."""
        assert isinstance(self.data, replay.Store)
        expert = self.data.rows.now.obs.reshape(-1, *rows.now.raw.shape[1:]).astype(jnp.float32)
        obs = (rows.now.raw - expert.mean(0)[None]) / (expert.std(0)[None] + 1e-3)
        return net(features(obs, rows.action, spec))[:, 0]


def flat(batch: Batch, axes: int) -> Batch:
    """The rows of a batch with its leading `axes` made one."""
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[axes:]), batch)


def features(obs: jax.Array, action: jax.Array, spec: Spec) -> jax.Array:
    """What D reads, (rows, features): the observation and the action, one-hot where it is discrete."""
    a = jax.nn.one_hot(action, spec.n_actions) if spec.discrete else action
    return jnp.concatenate([obs.reshape(obs.shape[0], -1).astype(jnp.float32), a], -1)
