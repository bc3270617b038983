"""Return estimators. Each is one equation, per time-major arrays (time, ...); `terminated` alone cuts a bootstrap.

A value here is always that of the observation which the step *led to* (`next_value[t]` = V(s_{t+1}), the final
observation's at an episode's end), so truncation needs no special case beyond cutting the trace.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ajax.core.records import Batch, Inputs


def td_target(reward: jax.Array, discount: jax.Array, next_value: jax.Array) -> jax.Array:
    """One-step targets r + discount V(s') (Sutton & Barto 2018, eq. 6.2). All arguments and the result have one shape.

    Args:
        reward: what the step paid.
        discount: gamma (1 - terminated), or gamma^k of an n-step window: what `n_step` returns.
        next_value: V of the observation that the step led to; not read where the discount is 0, so that a value that
            overflowed at a terminal observation can't turn the target into NaN.
    """
    return reward + discount * jnp.where(discount > 0, next_value, 0.0)


def n_step(batch: Batch, gamma: jax.Array | float, n: int) -> tuple[Batch, jax.Array]:
    """Fold windows of `n` consecutive transitions into one n-step transition each.

    G = sum_{i<k} gamma^i r_i with k the first step that ends the episode, or n; the bootstrap observation is the
    one that step k led to (Sutton & Barto 2018, eq. 7.1; truncation ends a window but keeps the bootstrap).

    Args:
        batch: leading axes (n, batch); for n = 1 simply (batch,).
        gamma: discount per step.
        n: window length.

    Returns:
        The folded batch, leading axis (batch,), and the discount of its bootstrap: gamma^k (1 - terminated).
    """
    if n == 1:
        return batch, gamma * (1.0 - batch.terminated)
    ended = jnp.maximum(batch.terminated, batch.truncated)  # (n, batch)
    alive = jnp.concatenate([jnp.ones_like(ended[:1]), jnp.cumprod(1.0 - ended, 0)[:-1]])  # step i is before the end
    powers = jnp.power(gamma, jnp.arange(n))[:, None]
    last = alive.sum(0).astype(jnp.int32) - 1  # (batch,): the step that closes the window

    def at_last(x: jax.Array) -> jax.Array:
        return jnp.take_along_axis(x, last.reshape(1, -1, *[1] * (x.ndim - 2)), 0)[0]

    terminated = at_last(batch.terminated)
    folded = Batch(
        now=jax.tree.map(lambda x: x[0], batch.now),
        action=batch.action[0],
        reward=(alive * powers * batch.reward).sum(0),
        terminated=terminated,
        truncated=at_last(batch.truncated),
        next=jax.tree.map(at_last, batch.next),
        extras=jax.tree.map(lambda x: x[0], batch.extras),
    )
    return folded, jnp.power(gamma, last + 1.0) * (1.0 - terminated)


def lambda_returns(
    reward: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    gamma: jax.Array | float,
    lam: jax.Array | float,
) -> jax.Array:
    """Lambda returns: G_t = r_t + gamma (1 - terminated_t) [(1 - lam) V(s_{t+1}) + lam G_{t+1}].

    The recursion restarts from V(s_{t+1}) where an episode ends and at the last row (Sutton & Barto 2018,
    eq. 12.2). All arguments (time, ...); returns the same shape.
    """
    ended = jnp.maximum(terminated, truncated).at[-1].set(1.0)

    def back(g, row):
        r, v, term, end = row
        g = td_target(r, gamma * (1.0 - term), jnp.where(end > 0, v, (1.0 - lam) * v + lam * g))
        return g, g

    return jax.lax.scan(back, jnp.zeros_like(reward[0]), (reward, next_value, terminated, ended), reverse=True)[1]


def discounted(reward: jax.Array, terminated: jax.Array, truncated: jax.Array, gamma: jax.Array | float) -> jax.Array:
    """Every reward of a window as its start values it: gamma^k r_t.

    k counts the steps since the window's start, or since the start of the episode if that began within the window:
    either end of an episode starts the count again. All arguments (time, ...); returns the same shape.
    """
    ended = jnp.maximum(terminated, truncated)

    def forth(weight, row):
        r, end = row
        return jnp.where(end > 0, 1.0, gamma * weight), weight * r

    return jax.lax.scan(forth, jnp.ones_like(reward[0]), (reward, ended))[1]


def gae(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    gamma: jax.Array | float,
    lam: jax.Array | float,
) -> jax.Array:
    """Generalized advantages: A_t = delta_t + gamma lam (1 - ended_t) A_{t+1} (Schulman et al. 2016, eq. 16).

    delta_t = r_t + gamma (1 - terminated_t) V(s_{t+1}) - V(s_t). Any end of an episode cuts the trace; only
    termination cuts the bootstrap. All arguments (time, ...); returns the same shape.
    """
    delta = td_target(reward, gamma * (1.0 - terminated), next_value) - value
    trace = gamma * lam * (1.0 - jnp.maximum(terminated, truncated))

    def back(advantage, row):
        d, c = row
        advantage = d + c * advantage
        return advantage, advantage

    return jax.lax.scan(back, jnp.zeros_like(delta[0]), (delta, trace), reverse=True)[1]


def differential_gae(
    reward: jax.Array,
    value: jax.Array,
    next_value: jax.Array,
    terminated: jax.Array,
    truncated: jax.Array,
    gain: jax.Array,
    lam: jax.Array | float,
) -> jax.Array:
    """Advantages for the average reward: `gae` of r_t - gain without a discount (Ma et al. 2021, arXiv:2106.03442).

    A terminal state has the value 0: what follows it, a fresh episode, is worth neither more nor less than the average.
    All arguments but the scalar `gain` and `lam` are (time, ...); returns the same shape.
    """
    return gae(reward - gain, value, next_value, terminated, truncated, 1.0, lam)


def charge_resets(reward: jax.Array, terminated: jax.Array, cost: jax.Array | float) -> jax.Array:
    """Rewards r - cost d of a task that goes on: one that terminated is reset, at a `cost` (Hisaki & Ono 2024).

    `reward` and `terminated` have one shape, the result's; a time limit costs nothing.
    """
    return reward - cost * terminated


def rvi_target(reward: jax.Array, reference: jax.Array, next_value: jax.Array) -> jax.Array:
    """Targets r - f(Q) + V(s') of relative value iteration (Abounadi, Bertsekas & Borkar 2001; Hisaki & Ono 2024).

    The scalar `reference`, f(Q), moves with Q by a constant, and becomes the gain. Nothing cuts the bootstrap: the task
    goes on, by `after_resets` where it terminated. The others and the result have one shape.
    """
    return reward - reference + next_value


def after_resets(windows: Batch) -> tuple[Batch, Inputs]:
    """Windows of two steps (2, batch) as their first, and what the task goes on from after it, each (batch, ...).

    That is what the step led to or, where it terminated, the first observation after the reset: what the window's
    second step was taken at (Hisaki & Ono 2024, whose replay holds it in the place of the final observation).
    """
    first, then = (jax.tree.map(lambda x, i=i: x[i], windows) for i in range(2))

    def choose(reset: jax.Array, led_to: jax.Array) -> jax.Array:
        return jnp.where(first.terminated.reshape(-1, *[1] * (reset.ndim - 1)) > 0, reset, led_to)

    def seen(x: Inputs) -> tuple:
        return x.obs, x.unscaled

    obs, unscaled = jax.tree.map(choose, seen(then.now), seen(first.next))
    return first, first.next.replace(obs=obs, unscaled=unscaled)
