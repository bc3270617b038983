"""Honest statistics of a handful of runs: robust aggregates with stratified bootstrap intervals, in NumPy.

Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical Precipice" (arXiv 2108.13264).
Scores are arrays of shape (runs,), or (runs, tasks) when several tasks are pooled: runs are then resampled within
each task (strata). With fewer than about five runs, percentile intervals are too narrow.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Statistic = Callable[..., Any]
"""Reduces the last axis of an array; called as `statistic(values, axis=-1)`, like `np.mean`."""


@dataclass(frozen=True)
class Estimate:
    """A value and its interval. `low` and `high` are nan where a single run allows no interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        interval = "one run" if np.isnan(self.low) else f"{self.low:.4g}, {self.high:.4g}"
        return f"{self.value:.4g} [{interval}]"


@dataclass(frozen=True)
class Comparison:
    """Final returns of two groups of runs, side by side.

    Attributes:
        n_runs: runs of a and of b that ended with a finite return; all statistics are theirs.
        n_failed: runs of a and of b that didn't.
        rows: name of a statistic -> its estimates for a and for b.
        improvement: probability that a run of a beats a run of b; a tie counts one half.
    """

    n_runs: tuple[int, int]
    n_failed: tuple[int, int]
    rows: dict[str, tuple[Estimate, Estimate]]
    improvement: Estimate


def interquartile_mean(values: np.ndarray, axis: int = -1) -> np.ndarray:
    """Return the mean without the lowest and the highest quarter (rounded down to whole runs) along an axis."""
    values = np.sort(np.asarray(values, float), axis=axis)
    n = values.shape[axis]
    return np.take(values, range(n // 4, n - n // 4), axis=axis).mean(axis=axis)


def bootstrap_interval(
    values: np.ndarray,
    statistic: Statistic = interquartile_mean,
    *,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Estimate:
    """Return a statistic of the pooled scores with its percentile bootstrap interval.

    Args:
        values: (runs,) or (runs, tasks), finite; runs are resampled with replacement, in each task on its own.
        statistic: what to estimate.
        confidence: share of the resamples' statistics that the interval covers.
        resamples: number of resamples.
        seed: the interval is a function of `values` and this.

    Raises:
        ValueError: no values, a value that isn't finite, or another number of axes.
    """
    values = _checked(values)
    n_runs, n_tasks = values.shape
    picks = np.random.default_rng(seed).integers(n_runs, size=(resamples, n_runs, n_tasks))
    resampled = values[picks, np.arange(n_tasks)].reshape(resamples, -1)
    return _estimate(statistic(values.reshape(-1), axis=-1), statistic(resampled, axis=-1), confidence, n_runs)


def mean_band(
    returns: np.ndarray, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low and high over seeds at every evaluation of a learning curve.

    Args:
        returns: (seeds, evaluations). A seed counts where its return is finite.

    Returns:
        Three arrays (evaluations,); nan where no seed, for low and high fewer than two, has a finite return.
    """
    returns = np.asarray(returns, float)
    finite = np.isfinite(returns)
    sums, counts = np.where(finite, returns, 0.0), finite.astype(float)
    weights = _weights(np.random.default_rng(seed), resamples, len(returns))
    with np.errstate(invalid="ignore"):
        mean = sums.sum(0) / counts.sum(0)
        resampled = (weights @ sums) / (weights @ counts)
    low, high = np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    known = counts.sum(0) >= 2
    if known.any():
        low[known], high[known] = np.nanquantile(resampled[:, known], _tails(confidence), axis=0)
    return mean, low, high


def probability_of_improvement(
    x: np.ndarray, y: np.ndarray, *, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> Estimate:
    """Return the probability that a run of x scores above a run of y, a tie counting one half (Mann-Whitney's U / nm).

    Args:
        x: scores (runs,) or (runs, tasks); with several tasks the probability is averaged over them.
        y: scores of the same tasks; the number of runs may differ.

    Raises:
        ValueError: no values, a value that isn't finite, or different tasks.
    """
    x, y = _checked(x), _checked(y)
    if x.shape[1] != y.shape[1]:
        raise ValueError(f"x has {x.shape[1]} tasks and y {y.shape[1]}; give the same tasks in the same order.")
    rng = np.random.default_rng(seed)
    values, resampled = [], []
    for a, b in zip(x.T, y.T, strict=True):
        wins = (np.sign(a[:, None] - b[None, :]) + 1) / 2
        weights_a, weights_b = _weights(rng, resamples, len(a)), _weights(rng, resamples, len(b))
        values.append(wins.mean())
        resampled.append(((weights_a @ wins) * weights_b).sum(1) / wins.size)
    return _estimate(np.mean(values), np.mean(resampled, axis=0), confidence, min(len(x), len(y)))


def compare(a: np.ndarray, b: np.ndarray, *, confidence: float = 0.95, seed: int = 0) -> Comparison:
    """Compare the final returns of two groups of runs, one return a seed.

    A run that ended without a finite return is counted as failed and left out of the statistics.

    Raises:
        ValueError: a group has no run with a finite return.
    """
    a, b = np.asarray(a, float).reshape(-1), np.asarray(b, float).reshape(-1)
    x, y = a[np.isfinite(a)], b[np.isfinite(b)]

    def both(statistic: Statistic) -> tuple[Estimate, Estimate]:
        return (
            bootstrap_interval(x, statistic, confidence=confidence, seed=seed),
            bootstrap_interval(y, statistic, confidence=confidence, seed=seed),
        )

    return Comparison(
        n_runs=(len(x), len(y)),
        n_failed=(len(a) - len(x), len(b) - len(y)),
        rows={"interquartile mean": both(interquartile_mean), "mean": both(np.mean), "median": both(np.median)},
        improvement=probability_of_improvement(x, y, confidence=confidence, seed=seed),
    )


def _checked(values: np.ndarray) -> np.ndarray:
    """Return scores as (runs, tasks)."""
    values = np.asarray(values, float)
    if values.ndim not in (1, 2) or values.size == 0:
        raise ValueError(f"scores must be (runs,) or (runs, tasks) with at least one run, not {values.shape}.")
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite; leave out the runs that failed, and say how many they are.")
    return values[:, None] if values.ndim == 1 else values


def _weights(rng: np.random.Generator, resamples: int, n_runs: int) -> np.ndarray:
    """Return how often each run is drawn in each resample: (resamples, runs), rows summing to runs."""
    return rng.multinomial(n_runs, np.full(n_runs, 1 / n_runs), size=resamples).astype(float)


def _tails(confidence: float) -> tuple[float, float]:
    return (1 - confidence) / 2, (1 + confidence) / 2


def _estimate(value: Any, resampled: np.ndarray, confidence: float, n_runs: int) -> Estimate:
    low, high = np.quantile(resampled, _tails(confidence)) if n_runs > 1 else (np.nan, np.nan)
    return Estimate(float(value), float(low), float(high))
