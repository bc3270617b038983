"""Hyper-parameters that change over a run: `Linear` or `Cosine` where a plain number would stand."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ajax.core.config import Schedule, config, setting
from ajax.core.records import Clock


@config
class Linear(Schedule):
    """A value that moves linearly from `start` to `end` over the first `fraction` of the run, then stays."""

    start: float = setting(help="value at step 0")
    end: float = setting(help="value once the fraction of the run is over")
    fraction: float = setting(
        default=1.0, within=(0, 1), positive=True, help="share of the run's horizon that it takes"
    )

    def ends(self) -> tuple[float, float]:
        """The first value and the last."""
        return self.start, self.end

    def at(self, clock: Clock) -> jax.Array:
        """The value at `clock`."""
        return self.start + (self.end - self.start) * _progress(clock, self.fraction)


@config
class Cosine(Schedule):
    """Half a cosine from `start` to `end` over the first `fraction` of the run (Loshchilov & Hutter 2017, eq. 5)."""

    start: float = setting(help="value at step 0")
    end: float = setting(default=0.0, help="value once the fraction of the run is over")
    fraction: float = setting(
        default=1.0, within=(0, 1), positive=True, help="share of the run's horizon that it takes"
    )

    def ends(self) -> tuple[float, float]:
        """The first value and the last."""
        return self.start, self.end

    def at(self, clock: Clock) -> jax.Array:
        """The value at `clock`."""
        progress = _progress(clock, self.fraction)
        return self.end + (self.start - self.end) * 0.5 * (1.0 + jnp.cos(jnp.pi * progress))


def _progress(clock: Clock, fraction: jax.Array | float) -> jax.Array:
    return jnp.clip(clock.step / (fraction * clock.horizon), 0.0, 1.0)


Scheduled = float | Linear | Cosine
"""The type of a field that takes a number or a schedule."""


def value_at(value: Scheduled, clock: Clock) -> jax.Array | float:
    """The value of a scheduled field at `clock`; a plain number is itself."""
    return value.at(clock) if isinstance(value, Linear | Cosine) else value
