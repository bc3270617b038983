"""Exploration beyond an agent's own: a bonus for what was seldom seen, and noise that lasts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.errors import CapabilityError
from ajax.core.hooks import Extension, View
from ajax.core.keys import stream
from ajax.core.learn import adam, descend, make
from ajax.core.records import Net, Spec
from ajax.core.schedules import Scheduled, value_at
from ajax.core.statistics import RunningStats
from ajax.networks.torsos import MLP, Torso


class Distillation(struct.PyTreeNode):
    """What RND keeps.

    Attributes:
        target: a random network, never trained.
        predictor: trained to say what it says.
        obs: statistics of the observations seen.
        error: statistics of the prediction errors.
    """

    target: Net
    predictor: Net
    obs: RunningStats
    error: RunningStats


@config
class RND(Extension):
    """Adds scale * error / std(error) to every reward: how badly a random network's output at s' is predicted.

    Burda et al. 2018, "Exploration by random network distillation", arXiv:1810.12894, sections 2.2 to 2.4. Observations
    are whitened and clipped at 5, as there. Differs from the paper: one critic learns the sum of both rewards, with the
    agent's discount, and the bonus is divided by the deviation of the errors, not of their discounted sums.
    """

    scale: Scheduled = setting(default=1.0, low=0, help="weight of the bonus, in units of the rewards learned from")
    features: int = setting(default=64, low=1, help="outputs of the random network")
    learning_rate: float = setting(default=1e-4, positive=True, help="Adam's step size for the predictor")
    torso: Torso = setting(default=Torso(widths=(64, 64)), help="both networks")

    def init(self, agent: Any, spec: Spec, key: jax.Array) -> Distillation:
        """Both networks, and statistics of nothing."""
        module, x = MLP(self.torso, self.features), spec.inputs.obs.astype(jnp.float32)
        target, predictor = (make(module, adam(), stream(key, name), x) for name in ("target", "predictor"))
        shape = spec.observation.shape
        return Distillation(target.frozen(), predictor, RunningStats.zeros(shape), RunningStats.zeros(()))

    def reward(self, reward: jax.Array, view: View) -> jax.Array:
        """The rewards with their bonus."""
        obs = view.batch.next.raw
        rows = obs.reshape(-1, *view.own.obs.mean.shape)
        bonus = prediction_error(view.own, view.own.predictor, rows) / view.own.error.std
        return reward + value_at(self.scale, view.clock) * bonus.reshape(reward.shape)

    def post_update(self, view: View) -> Distillation:
        """One step of the predictor, and the statistics."""
        rows = view.batch.next.raw.reshape(-1, *view.own.obs.mean.shape)
        own = view.own.replace(obs=view.own.obs.add(rows))

        def loss(predictor: Net):
            errors = prediction_error(own, predictor, rows)
            return errors.mean(), {"errors": errors}

        predictor, found = descend(own.predictor, adam(self.learning_rate), loss)
        return own.replace(predictor=predictor, error=own.error.add(found["errors"]))

    def eval_metrics(self, view: View) -> dict[str, jax.Array]:
        """The mean error so far."""
        return {"rnd_error": view.own.error.mean}


def prediction_error(own: Distillation, predictor: Net, obs: jax.Array) -> jax.Array:
    """Mean squared difference of both networks' outputs at raw observations (rows, *shape): (rows,)."""
    x = own.obs.normalize(obs.astype(jnp.float32), limit=5.0)
    return jnp.square(predictor(x) - jax.lax.stop_gradient(own.target(x))).mean(-1)


@config
class OrnsteinUhlenbeck(Extension):
    """Adds noise to the actions of a box that reverts to 0 instead of being drawn anew at every step.

    x <- x + theta (0 - x) dt + sigma sqrt(dt) N(0, 1), from 0 in every episode (Uhlenbeck & Ornstein 1930), as in
    Lillicrap et al. 2016, arXiv:1509.02971, section 7, whose theta and sigma are the defaults.
    """

    theta: float = setting(default=0.15, low=0, help="pull to 0, per unit of time")
    sigma: Scheduled = setting(default=0.2, low=0, help="size of the noise, agent units per square root of time")
    dt: float = setting(default=1.0, positive=True, help="units of time in a step")

    def bind(self, spec: Spec) -> Extension:
        """Refuse actions that noise can't be added to."""
        if spec.discrete:
            raise CapabilityError("OrnsteinUhlenbeck adds to actions in a box, and this environment's are discrete.")
        return self

    def init_each(self, agent: Any, spec: Spec, n: int) -> jax.Array:
        """No noise."""
        return jnp.zeros((n, spec.action_size))

    def act(self, action: jax.Array, view: View) -> tuple[jax.Array, jax.Array]:
        """The action with noise, clipped to the box."""
        assert view.elapsed is not None
        x = jnp.where((view.elapsed == 0)[:, None], 0.0, view.each)
        size = value_at(self.sigma, view.clock) * jnp.sqrt(self.dt)
        x = x - self.theta * self.dt * x + size * jax.random.normal(view.key, x.shape)
        return jnp.clip(action + x, -1.0, 1.0), x
