"""Running normalization of observations and rewards: statistics live in the run, and are frozen at evaluation.

Rows are stored raw. Statistics move only after a tick's updates, so that what an agent saw when it acted is what it
is trained on (PPO's probability ratio starts at exactly 1).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.config import config, setting
from ajax.core.records import Batch, Inputs
from ajax.core.statistics import RunningStats


@config
class Normalize:
    """What a run normalizes."""

    observations: bool = setting(
        default=False, help="shift and scale observations to mean 0 and deviation 1, clipped at 10"
    )
    rewards: bool = setting(
        default=False, help="divide rewards by the running deviation of their discounted sums, where these differ"
    )
    reward_gamma: float = setting(
        default=0.0, within=(0, 1), help="discount of those sums; 0: the rewards' own deviation"
    )


class Statistics(struct.PyTreeNode):
    """What normalization has seen.

    Attributes:
        obs: statistics of observations, or `()` where they are not normalized.
        reward: statistics of discounted reward sums, or `()`.
        discounted: every environment's current discounted sum (n_envs,), or `()`.
    """

    obs: RunningStats | tuple
    reward: RunningStats | tuple
    discounted: jax.Array | tuple


def init(normalize: Normalize, shape: tuple[int, ...], n_envs: int) -> Statistics:
    """Statistics of nothing, for observations of `shape`."""
    return Statistics(
        obs=RunningStats.zeros(shape) if normalize.observations else (),
        reward=RunningStats.zeros(()) if normalize.rewards else (),
        discounted=jnp.zeros(n_envs) if normalize.rewards else (),
    )


def inputs(statistics: Statistics, obs: jax.Array, keep: bool = False) -> Inputs:
    """Build what networks read from raw observations (*batch, *shape); `keep` the raw ones beside them."""
    if not isinstance(statistics.obs, RunningStats):
        return Inputs(obs)
    return Inputs(statistics.obs.normalize(obs), obs if keep else None)


def read(statistics: Statistics, raw: Inputs, keep: bool = False) -> Inputs:
    """What networks read of raw inputs, with what was remembered; see `inputs`."""
    x = inputs(statistics, raw.obs, keep)
    return raw.replace(obs=x.obs, unscaled=x.unscaled)


def batch(statistics: Statistics, b: Batch, keep: bool = False) -> Batch:
    """Normalize a raw batch: both observations and the reward, whose mean is kept; `keep` the raw observations too."""
    reward = b.reward
    if isinstance(statistics.reward, RunningStats):
        reward = jnp.clip(reward / statistics.reward.spread, -10.0, 10.0)
    return b.replace(now=read(statistics, b.now, keep), next=read(statistics, b.next, keep), reward=reward)


def command(statistics: Statistics, asked: jax.Array) -> jax.Array:
    """Commands (..., 2) as networks read them: returns are scaled as rewards are, but never clipped."""
    if not isinstance(statistics.reward, RunningStats):
        return asked
    return asked.at[..., 0].divide(statistics.reward.spread)


def observe(normalize: Normalize, statistics: Statistics, rows: Batch) -> Statistics:
    """Merge rows (time, n_envs, ...) in the order in which they happened."""
    obs = statistics.obs
    if isinstance(obs, RunningStats):
        obs = obs.add(rows.now.obs)
    if not isinstance(statistics.reward, RunningStats):
        return statistics.replace(obs=obs)

    def step(total, row):
        reward, ended = row
        total = normalize.reward_gamma * total + reward
        return total * (1.0 - ended), total

    ended = jnp.maximum(rows.terminated, rows.truncated)
    discounted, sums = jax.lax.scan(step, statistics.discounted, (rows.reward, ended))
    return Statistics(obs, statistics.reward.add(sums), discounted)
