"""Where an original differs from Ajax on purpose: the difference, its reason, and how a check allows for it.

Every entry is in force only in the checks that name it, and `test_conventions.py` asserts that it is a difference
indeed: without it, that check fails.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp
import optax

import ajax.agents.crossq
import ajax.agents.ppo
import ajax.agents.pqn
import ajax.agents.redq
import ajax.agents.sac
import ajax.networks.heads
from ajax.core.config import config, setting
from ajax.core.distributions import TanhNormal
from ajax.core.hooks import Extension
from ajax.core.returns import lambda_returns
from ajax.networks.heads import Scalar
from tests.conformance.kit import Record
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
        "Stable-Baselines3 and REDQ's authors add 1e-6 inside log(1 - a^2) against overflow, which bends the density"
        " near the edges of the box; Ajax writes the same term so that it can't overflow."
    ),
    "linear_log_alpha": (
        "The temperature losses of Stable-Baselines3, SBX, SAC's authors and REDQ's multiply log alpha; Ajax's alpha,"
        " as eq. 18 of the paper reads. Same fixed point, another speed: the gradients differ by the factor alpha."
    ),
    "early_actor": (
        "REDQ's authors compute the policy's gradient before their critics step; Ajax after it, as algorithm 1 of the"
        " paper does, with the critics that the round of updates has led to."
    ),
    "held_alpha": (
        "REDQ's authors keep alpha beside log alpha and renew it at each of the temperature's steps: until the first it"
        " is 0.2, whatever log alpha says. The record's is already renewed, but held in float32. Ajax computes alpha"
        " from log alpha."
    ),
    "late_refresh": (
        "Stable-Baselines3's DQN copies its target network before the gradient step that a multiple of the period"
        " falls on; Ajax after the step before it, as algorithm 1 of the paper does. Every target is computed with the"
        " same network: only a state between two updates shows the difference."
    ),
    "early_bootstrap": (
        "purejaxql starts the recursion of its lambda returns with the value of what a rollout's last step led to, and"
        " reads that value once more for the row before; in the paper, and in Ajax, that row bootstraps from what its"
        " own step led to."
    ),
    "per_gradient_step": (
        "purejaxql's learning rate falls with every gradient step; Ajax's schedules move with environment steps, which"
        " stand still while a rollout is learned from."
    ),
    "log_variance": (
        "The authors' AVG hands the exponential of the policy's second output to a normal distribution as its variance;"
        " the paper, and Ajax, take it for the standard deviation."
    ),
    "exact_bias_correction": (
        "PyTorch computes Adam's bias correction, 1 - beta^t, in float64 whatever the parameters are; optax in theirs,"
        " so that in float32 a young optimizer's steps are 1e-5 off. AVG's steps are large: that is more than rounding"
        " did to the original. In float64 the two agree."
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

    def linear(descend: Callable) -> Callable:
        def step(net: Any, tx: Any, loss: Any) -> Any:
            if not isinstance(net.module, Scalar):
                return descend(net, tx, loss)
            gap = jax.lax.stop_gradient(loss(net)[0] / jnp.exp(net()))
            return descend(net, tx, lambda log_alpha: (log_alpha() * gap, {}))

        return step

    patches = contextlib.ExitStack()
    for module in (ajax.agents.crossq, ajax.agents.redq, ajax.agents.sac):
        patches.enter_context(mock.patch.object(module, "descend", linear(module.descend)))
    return patches


def early_actor() -> contextlib.AbstractContextManager:
    """Take REDQ's policy step with the critics as they were before their own."""
    module, before = ajax.agents.redq, []
    descend, soft_value = module.descend, module.soft_value

    def step(net: Any, tx: Any, loss: Any) -> Any:
        after, metrics = descend(net, tx, loss)
        before.append((after, net))
        return after, metrics

    def value(actor: Any, critics: Any, *others: Any) -> Any:
        earlier = next((old for new, old in before if new is critics), critics)
        return soft_value(actor, earlier, *others)

    patches = contextlib.ExitStack()
    patches.enter_context(mock.patch.object(module, "descend", step))
    patches.enter_context(mock.patch.object(module, "soft_value", value))
    return patches


def held_alpha() -> contextlib.AbstractContextManager:
    """Use the alpha that REDQ's record begins with until log alpha moves."""
    module, held = ajax.agents.redq, float(Record("redq").arrays["before/alpha"])
    soft_value = module.soft_value

    def value(actor: Any, critics: Any, x: Any, alpha: jax.Array, *others: Any) -> Any:
        same = jnp.abs(alpha - held) < 1e-6 * held
        return soft_value(actor, critics, x, jnp.where(same, held, alpha), *others)

    return mock.patch.object(module, "soft_value", value)


def late_refresh(stage: str, after: Flat, states: Flat) -> Flat:
    """DQN's state after the record's first update, with the target as the second finds it: a copy of the network."""
    if stage != "after1":
        return after
    copies = {name: states[name.removeprefix("target_")] for name in after if name.startswith("target_q/")}
    return after | copies


def early_bootstrap() -> contextlib.AbstractContextManager:
    """Let a rollout's second-to-last row bootstrap, as the last does, from what the last step led to."""

    def returns(reward: Any, next_value: Any, terminated: Any, truncated: Any, gamma: Any, lam: Any) -> jax.Array:
        last = next_value[-1] * (1.0 - terminated[-1])
        return lambda_returns(reward, next_value.at[-2].set(last), terminated, truncated, gamma, lam)

    return mock.patch.object(ajax.agents.pqn, "lambda_returns", returns)


def per_gradient_step() -> contextlib.AbstractContextManager:
    """Let a schedule move by the 4 environment steps that fall to each gradient step of the record."""
    at = ajax.agents.pqn.value_at
    return mock.patch.object(
        ajax.agents.pqn, "value_at", lambda value, clock: at(value, clock.replace(step=4.0 * clock.update))
    )


def log_variance() -> contextlib.AbstractContextManager:
    """Take the policy's second output for a log variance."""
    return mock.patch.object(ajax.networks.heads, "TanhNormal", lambda loc, log_std: TanhNormal(loc, 0.5 * log_std))


def exact_bias_correction() -> contextlib.AbstractContextManager:
    """Compute Adam's bias correction without the rounding of 1 - beta^t."""

    def divide(moment: Any, decay: Any, count: Any) -> Any:
        log = math.log(decay) if isinstance(decay, float) else jnp.log(decay)  # a field of the agent is traced
        correction = -jnp.expm1(count * log)
        return jax.tree.map(lambda t: t / correction.astype(t.dtype), moment)

    return mock.patch.object(optax.tree, "bias_correction", divide)


@config
class BehaviorCloningUnits(Extension):
    """Take TD3+BC's distance to the data in the units of a box [-scale, scale]."""

    scale: float = setting(default=1.0, help="the box's bound")

    def actor_loss(self, view: Any) -> jax.Array:
        """What the larger unit adds."""
        return (self.scale**2 - 1.0) * jnp.square(view.net(view.batch.now) - view.batch.action).mean()
