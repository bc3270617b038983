"""The matrix product of a dense layer, with a gradient that suits XLA's CPU kernels."""

from __future__ import annotations

from typing import Any

import jax


def dot_general(x: jax.Array, w: jax.Array, dimension_numbers: Any, precision: Any = None) -> jax.Array:
    """The product (batch, in) @ (in, out), as `flax.linen.Dense` asks for it."""
    if jax.default_backend() == "cpu":
        return product(x, w)
    return jax.lax.dot_general(x, w, dimension_numbers, precision=precision)


@jax.custom_vjp
def product(x: jax.Array, w: jax.Array) -> jax.Array:
    """x @ w. Its gradient transposes x in memory before the product that contracts over the batch.

    XLA's CPU backend leaves a product of a transposed operand to a slower kernel: on 256 x 64 x 64, 31 us to 24 us.
    """
    return x @ w


def _forward(x: jax.Array, w: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    return x @ w, (x, w)


def _backward(seen: tuple[jax.Array, jax.Array], g: jax.Array) -> tuple[jax.Array, jax.Array]:
    x, w = seen
    return g @ w.T, jax.lax.optimization_barrier(x.T) @ g


product.defvjp(_forward, _backward)
