"""The limit on this machine: importing JAX and nothing else, and the matrix products of training alone.

The products are those of the forward and backward passes through multilayer perceptrons at the sizes of `work`, one
after another on the same operands.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from benchmarks import child, work

Product = tuple[str, int, int, int]
"""Kind, batch, inputs and outputs of a layer. Kinds: `x`, its outputs; `w`, its weights' gradient; `i`, its inputs'."""


def forward(batch: int, *sizes: int) -> list[Product]:
    """Products of a pass through layers of these sizes."""
    return [("x", batch, n_in, n_out) for n_in, n_out in pairwise(sizes)]


def backward(batch: int, *sizes: int, weights: bool = True, inputs: bool = False) -> list[Product]:
    """Products of the gradient with respect to the weights, the network's inputs, or both."""
    layers = list(pairwise(sizes))
    ws = [("w", batch, n_in, n_out) for n_in, n_out in layers] if weights else []
    return ws + [("i", batch, n_in, n_out) for n_in, n_out in (layers if inputs else layers[1:])]


def ppo() -> list[Product]:
    """A whole iteration: acting, the values of what was reached, and all epochs."""
    w = work.PPO
    pi, v = (4, *w.widths, 2), (4, *w.widths, 1)
    n, m = w.n_epochs * w.n_minibatches, w.batch_size
    update = forward(m, *pi) + backward(m, *pi) + forward(m, *v) + backward(m, *v)
    return w.n_steps * (forward(w.n_envs, *pi) + forward(w.n_envs, *v)) + forward(w.rollout, *v) + n * update


def pqn() -> list[Product]:
    """A whole iteration: acting, the values of what was reached, and all epochs."""
    w = work.PQN
    q, n, m = (4, *w.widths, 2), w.n_epochs * w.n_minibatches, w.batch_size
    return w.n_steps * forward(w.n_envs, *q) + forward(w.rollout, *q) + n * (forward(m, *q) + backward(m, *q))


def dqn() -> list[Product]:
    """One update and one action."""
    m, q = work.DQN.batch_size, (4, *work.DQN.widths, 2)
    return forward(1, *q) + 2 * forward(m, *q) + backward(m, *q)


def sac() -> list[Product]:
    """One update and one action."""
    m, pi, q = work.SAC.batch_size, (3, *work.SAC.widths, 2), (4, *work.SAC.widths, 1)
    critics = forward(m, *pi) + 2 * (forward(m, *q) + forward(m, *q) + backward(m, *q))
    through = 2 * (forward(m, *q) + backward(m, *q, weights=False, inputs=True))
    return forward(1, *pi) + critics + forward(m, *pi) + through + backward(m, *pi)


def td3() -> list[Product]:
    """One update and one action; the actor's part, every second time, counts half."""
    m, pi, q = work.TD3.batch_size, (3, *work.TD3.widths, 1), (4, *work.TD3.widths, 1)
    critics = forward(m, *pi) + 2 * (forward(m, *q) + forward(m, *q) + backward(m, *q))
    actor = forward(m, *pi) + forward(m, *q) + backward(m, *q, weights=False, inputs=True) + backward(m, *pi)
    return 2 * (forward(1, *pi) + critics) + actor  # two updates


def redq() -> list[Product]:
    """The updates of one step and its action: ten critics, two of them in each target, and one step of the actor."""
    w = work.REDQ
    m, pi, q = w.batch_size, (3, *w.widths, 2), (4, *w.widths, 1)
    critics = forward(m, *pi) + 2 * forward(m, *q) + 10 * (forward(m, *q) + backward(m, *q))
    through = 10 * (forward(m, *q) + backward(m, *q, weights=False, inputs=True))
    return forward(1, *pi) + w.per_step * critics + forward(m, *pi) + through + backward(m, *pi)


def crossq() -> list[Product]:
    """Three updates, one with a step of the actor, and their actions."""
    m, pi, q = work.CrossQ.batch_size, (3, *work.CrossQ.widths, 2), (4, *work.CrossQ.widths, 1)
    critics = forward(m, *pi) + 2 * (forward(2 * m, *q) + backward(2 * m, *q))
    through = 2 * (forward(m, *q) + backward(m, *q, weights=False, inputs=True))
    return 3 * (forward(1, *pi) + critics) + forward(m, *pi) + through + backward(m, *pi)


PRODUCTS = {"ppo": (ppo, work.PPO.rollout), "pqn": (pqn, work.PQN.rollout), "dqn": (dqn, 1), "sac": (sac, 1),
            "td3": (td3, 2), "redq": (redq, work.REDQ.per_step), "crossq": (crossq, 3)}  # fmt: skip
"""Name: the products, and how many environment steps (PPO, PQN) or updates they belong to."""


def measure(name: str) -> dict[str, Any]:
    """Steps or updates per second if the products were all there is, and floating-point operations of each."""
    import jax
    import jax.numpy as jnp

    make, n = PRODUCTS[name]
    products = make()
    dims = {"x": ((1,), (0,)), "w": ((0,), (0,)), "i": ((1,), (1,))}
    shapes = {"x": lambda b, i, o: ((b, i), (i, o)), "w": lambda b, i, o: ((b, i), (b, o)),
              "i": lambda b, i, o: ((b, o), (i, o))}  # fmt: skip
    kinds = sorted(set(products))
    operands = [[jnp.ones(shape) for shape in shapes[kind](b, i, o)] for kind, b, i, o in kinds]
    flops = sum(2 * b * i * o for _, b, i, o in products) / n
    repeats = max(5, int(2e10 / flops / n))

    def once(carry: jax.Array, which: int) -> jax.Array:
        # the barriers keep the product from being moved out of the loop, or shortened to the element that is used
        (a, b), carry = jax.lax.optimization_barrier((operands[which], carry))
        out = jax.lax.dot_general(a, b, (dims[kinds[which][0]], ((), ())))
        return carry + 1e-9 * jax.lax.optimization_barrier(out)[0, 0]

    def all_products(carry: jax.Array) -> jax.Array:
        for which, kind in enumerate(kinds):
            count = products.count(kind)
            carry = jax.lax.fori_loop(0, count, lambda _, c, which=which: once(c, which), carry)
        return carry

    program = jax.jit(lambda c: jax.lax.fori_loop(0, repeats, lambda _, c: all_products(c), c))
    jax.block_until_ready(program(jnp.float32(0)))
    measured = child.rates(lambda: jax.block_until_ready(program(jnp.float32(0))), repeats * n)
    return {"flops": flops, **measured}


def import_jax(seeds: int) -> dict[str, Any]:
    """Import what any agent in JAX needs."""

    def load() -> None:
        import flax  # noqa: F401
        import jax  # noqa: F401
        import optax  # noqa: F401

    return {"seconds": child.seconds(load)}


if __name__ == "__main__":
    child.main({"import": import_jax} | {name: lambda seeds, name=name: measure(name) for name in PRODUCTS})
