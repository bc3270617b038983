"""The nouns that every update shares: making a network, one optimizer step, target averaging."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import optax

from ajax.core.records import Net

Metrics = dict[str, jax.Array]
T = TypeVar("T")
A = TypeVar("A")


def adam(
    learning_rate: Any = 0.0, *, b1: Any = 0.9, eps: Any = 1e-8, max_grad_norm: float | None = None
) -> optax.GradientTransformation:
    """Adam (Kingma & Ba 2015, algorithm 1), after clipping the gradient's *global norm* where a limit is given.

    The state does not depend on the numbers, so `adam()` may initialize it.
    """
    return _optimizer(optax.scale_by_adam(b1=b1, eps=eps), learning_rate, max_grad_norm)


def radam(learning_rate: Any = 0.0, *, max_grad_norm: float | None = None) -> optax.GradientTransformation:
    """Rectified Adam (Liu et al. 2020, arXiv:1908.03265, algorithm 2), after clipping as `adam` does.

    Its first five steps are the moment alone: until then too few gradients were seen to divide by their size.
    """
    return _optimizer(optax.scale_by_radam(), learning_rate, max_grad_norm)


def _optimizer(
    scale: optax.GradientTransformation, learning_rate: Any, max_grad_norm: float | None
) -> optax.GradientTransformation:
    steps = [] if max_grad_norm is None else [optax.clip_by_global_norm(max_grad_norm)]
    return optax.chain(*steps, scale, optax.scale_by_learning_rate(learning_rate))


def make(module: Any, tx: optax.GradientTransformation, key: jax.Array, *inputs: Any) -> Net:
    """Initialize a linen `module` on example `inputs`, with the optimizer state of `tx`."""
    variables = module.init(key, *inputs)
    params = variables["params"]
    return Net(params, tx.init(params), module, variables.get("batch_stats", {}))


def descend(net: Net, tx: optax.GradientTransformation, loss: Callable[[Net], tuple[jax.Array, A]]) -> tuple[Net, A]:
    """One optimizer step of `net` down `loss(net) -> (scalar, more)`; returns the new net and `more`: the metrics."""
    grads, more = jax.grad(lambda params: loss(net.at(params)), has_aux=True)(net.params)
    updates, opt = tx.update(grads, net.opt, net.params)
    return net.replace(params=optax.apply_updates(net.params, updates), opt=opt), more


def polyak(target: T, online: T, tau: jax.Array | float) -> T:
    """Move every leaf of `target` a share `tau` of the way to `online`: exactly there where `tau` is 1."""
    return jax.tree.map(lambda t, o: (1.0 - tau) * t + tau * o, target, online)


def select(flag: jax.Array, new: T, old: T) -> T:
    """`new` where the scalar `flag` holds, else `old`, leaf by leaf. For parameters only, never for a buffer."""
    return jax.tree.map(lambda n, o: jnp.where(flag, n, o), new, old)


def pick(values: jax.Array, index: jax.Array) -> jax.Array:
    """`values[..., index]` along the last axis: (*batch, n) and (*batch,) give (*batch,).

    By a mask, since the gradient of a gather is a scatter: a loop over rows on a CPU.
    """
    chosen = jax.nn.one_hot(index, values.shape[-1], dtype=bool)
    return jnp.where(chosen, values, 0.0).sum(-1)
