"""Where an original differs from Ajax on purpose: the difference, its reason, and how a check allows for it.

Every entry is in force only in the checks that name it, and `test_conventions.py` asserts that it is a difference
indeed: without it, that check fails.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import optax

import ajax.agents.ppo
import ajax.agents.sac
from ajax.core.config import config, setting
from ajax.core.distributions import TanhNormal
from ajax.core.hooks import Extension
from ajax.core.learn import descend
from ajax.networks.heads import Scalar
from tests.conformance.submaps import Flat

REASONS = {
    "torch_clip": (
        "PyTorch divides by the gradient's norm plus 1e-6 (torch.nn.utils.clip_grad_norm_); optax by the norm itself."
    ),
    "unbiased_std": (
        "Stable-Baselines3 standardizes advantages with torch's default deviation, over n - 1; the authors' code"
        " (openai/baselines, ppo2/model.py) and Ajax divide by n, as numpy does."
    ),
    "tanh_eps": (
        "Stable-Baselines3 adds 1e-6 inside log(1 - a^2) against overflow, which bends the density near the edges of"
        " the box; Ajax writes the same term so that it can't overflow."
    ),
    "linear_log_alpha": (
        "Stable-Baselines3's temperature loss multiplies log alpha, as the authors' code does; Ajax multiplies alpha,"
        " as eq. 18 of the paper reads. Same fixed point, another speed: the gradients differ by the factor alpha."
    ),
    "late_refresh": (
        "Stable-Baselines3's DQN copies its target network before the gradient step that a multiple of the period"
        " falls on; Ajax after the step before it, as algorithm 1 of the paper does. Every target is computed with the"
        " same network: only a state between two updates shows the difference."
    ),
    "BehaviorCloningUnits": (
        "The authors' TD3+BC takes the distance to the data's actions in the environment's units; Ajax knows an agent's"
        " units, [-1, 1], alone. For a box [-m, m] theirs is m^2 times ours; the two agree on the unit box, which"
        " is what the paper's tasks have."
    ),
}
"""Each convention of an original that is not ours, and why it is not."""


def torch_clip() -> contextlib.AbstractContextManager:
    """Clip the global norm with PyTorch's 1e-6 in the denominator."""

    def clip(limit: Any) -> optax.GradientTransformation:
        def update(grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
            share = jnp.minimum(1.0, limit / (optax.tree.norm(grads) + 1e-6))
            return jax.tree.map(lambda g: g * share, grads), state

        return optax.GradientTransformation(lambda params: optax.EmptyState(), update)

    return mock.patch.object(optax, "clip_by_global_norm", clip)


def unbiased_std() -> contextlib.AbstractContextManager:
    """Standardize with the deviation over n - 1."""
    return mock.patch.object(ajax.agents.ppo, "standardize", lambda x: (x - x.mean()) / (jnp.std(x, ddof=1) + 1e-8))


def tanh_eps() -> contextlib.AbstractContextManager:
    """Add 1e-6 inside the logarithm of the tanh's Jacobian."""

    def sample_and_log_prob(self: TanhNormal, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        noise = jax.random.normal(key, self.loc.shape, self.loc.dtype)
        action = jnp.tanh(self.loc + jnp.exp(self.log_std) * noise)
        log_normal = -0.5 * jnp.square(noise) - self.log_std - 0.5 * math.log(2 * math.pi)
        return action, (log_normal - jnp.log(1.0 - jnp.square(action) + 1e-6)).sum(-1)

    return mock.patch.object(TanhNormal, "sample_and_log_prob", sample_and_log_prob)


def linear_log_alpha() -> contextlib.AbstractContextManager:
    """Make the temperature's loss linear in log alpha."""

    def step(net: Any, tx: Any, loss: Any) -> Any:
        if not isinstance(net.module, Scalar):
            return descend(net, tx, loss)
        gap = jax.lax.stop_gradient(loss(net)[0] / jnp.exp(net()))
        return descend(net, tx, lambda log_alpha: (log_alpha() * gap, {}))

    return mock.patch.object(ajax.agents.sac, "descend", step)


def late_refresh(stage: str, after: Flat, states: Flat) -> Flat:
    """DQN's state after the record's first update, with the target as the second finds it: a copy of the network."""
    if stage != "after1":
        return after
    copies = {name: states[name.removeprefix("target_")] for name in after if name.startswith("target_q/")}
    return after | copies


@config
class BehaviorCloningUnits(Extension):
    """Take TD3+BC's distance to the data in the units of a box [-scale, scale]."""

    scale: float = setting(default=1.0, help="the box's bound")

    def actor_loss(self, view: Any) -> jax.Array:
        """What the larger unit adds."""
        return (self.scale**2 - 1.0) * jnp.square(view.net(view.batch.now) - view.batch.action).mean()
