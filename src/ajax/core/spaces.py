"""The two kinds of space that agents act in and observe: a box of reals (or bytes) and a finite set."""

from __future__ import annotations

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.errors import SpaceError


@dataclasses.dataclass(frozen=True)
class Box:
    """Arrays of one shape whose elements lie in [low, high].

    Attributes:
        low, high: bounds, one float each or a nested tuple in the shape of the space (hashable, so that a
            space can be part of a compiled program's key). Use `Box.of` to give arrays.
        shape: shape of one element.
        dtype: name of the NumPy dtype, `"float32"` unless it says otherwise; images are `"uint8"`.
    """

    low: float | tuple = -math.inf
    high: float | tuple = math.inf
    shape: tuple[int, ...] = ()
    dtype: str = "float32"

    @classmethod
    def of(cls, low, high, shape: tuple[int, ...] | None = None, dtype="float32") -> Box:
        """Build a box from array-like bounds; `shape` defaults to that of the bounds."""
        low, high = np.asarray(low, np.float64), np.asarray(high, np.float64)
        if shape is None:
            shape = np.broadcast_shapes(low.shape, high.shape)

        def frozen(bound: np.ndarray):
            if bound.size and np.all(bound == bound.flat[0]):
                return float(bound.flat[0])
            return _tuples(np.broadcast_to(bound, shape))

        return cls(frozen(low), frozen(high), tuple(int(n) for n in shape), np.dtype(dtype).name)

    @property
    def bounded(self) -> bool:
        """Whether every bound is finite."""
        return bool(np.all(np.isfinite(self.low)) and np.all(np.isfinite(self.high)))

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw uniformly (from [-1, 1] where a bound is infinite); returns `shape + self.shape`."""
        low = np.where(np.isfinite(self.low), self.low, -1.0)
        high = np.where(np.isfinite(self.high), self.high, 1.0)
        uniform = jax.random.uniform(key, shape + self.shape)
        return (_spread(low, uniform) + uniform * _spread(high - low, uniform)).astype(self.dtype)

    def zeros(self, shape: tuple[int, ...] = ()) -> jax.Array:
        """Return zeros of `shape + self.shape`."""
        return jnp.zeros(shape + self.shape, self.dtype)


@dataclasses.dataclass(frozen=True)
class Discrete:
    """The integers 0 .. n - 1."""

    n: int

    def __post_init__(self):
        if self.n < 1:
            raise SpaceError(f"Discrete(n={self.n}): n must be at least 1.")

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one element: a scalar."""
        return ()

    @property
    def dtype(self) -> str:
        """Name of the dtype of an element."""
        return "int32"

    def sample(self, key: jax.Array, shape: tuple[int, ...] = ()) -> jax.Array:
        """Draw uniformly; returns integers of `shape`."""
        return jax.random.randint(key, shape, 0, self.n)

    def zeros(self, shape: tuple[int, ...] = ()) -> jax.Array:
        """Return zeros of `shape`."""
        return jnp.zeros(shape, jnp.int32)


Space = Box | Discrete


def _tuples(array: np.ndarray):
    return tuple(_tuples(row) for row in array) if array.ndim else float(array)


def _spread(bound: float | tuple | np.ndarray, like: jax.Array) -> jax.Array:
    """A bound in the shape of an array of elements, so that no rank is promoted silently."""
    return jnp.broadcast_to(jnp.asarray(bound, jnp.float32), like.shape)


def to_box(space: Space, action: jax.Array) -> jax.Array:
    """Map actions in agent units onto those of the environment's `space`, clipping to its edges.

    Box actions are (batch, size) in [-1, 1] and become (batch, *space.shape); discrete ones stay as they are.
    """
    if isinstance(space, Discrete):
        return action
    action = action.reshape(action.shape[0], *space.shape)
    low, high = _spread(space.low, action), _spread(space.high, action)
    return low + (jnp.clip(action, -1.0, 1.0) + 1.0) * 0.5 * (high - low)


def to_agent(space: Space, action: jax.Array) -> jax.Array:
    """Map actions (batch, *space.shape) in the environment's units onto agent units; inverse of `to_box` in the box."""
    if isinstance(space, Discrete):
        return action
    low, high = _spread(space.low, action), _spread(space.high, action)
    return (2.0 * (action - low) / (high - low) - 1.0).reshape(action.shape[0], -1)
