"""Where each leaf of an original's state is found in ours, and how far the two may be apart.

A record is a flat dictionary of arrays by name (`critic1/layer0/kernel`); ours are nested parameters. A `Leaf` says
which of the record's arrays make one of ours, so that the map can be read both ways.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

import jax
import numpy as np

Flat = dict[str, np.ndarray]

F64_SHARE = 1e-9
"""Error allowed in float64, as a share of the largest change of the leaf."""

F32_ROUNDINGS = 40.0
"""Error allowed in float32, in roundings of the leaf: the difference that rounding made to the original itself."""


class Leaf(NamedTuple):
    """One of our arrays and the record's arrays that it is made of.

    Attributes:
        ours: path in our parameters, `MLP_0/Dense_0/kernel`.
        theirs: names in the record.
        join: how several become one: stacked (an ensemble), side by side (two heads of one layer), or, alone, as
            it is or without its axis of one element.
    """

    ours: str
    theirs: tuple[str, ...]
    join: Literal["alone", "stack", "concat", "scalar"] = "alone"

    def to_ours(self, arrays: list[np.ndarray]) -> np.ndarray:
        """Our array, given the record's."""
        if self.join == "stack":
            return np.stack(arrays)
        if self.join == "concat":
            return np.concatenate(arrays, -1)
        return arrays[0].reshape(()) if self.join == "scalar" else arrays[0]

    def to_theirs(self, array: np.ndarray) -> list[np.ndarray]:
        """The record's arrays, given ours."""
        if self.join == "stack":
            return list(array)
        if self.join == "concat":
            return np.split(array, len(self.theirs), -1)
        return [array.reshape(1)] if self.join == "scalar" else [array]


def mlp(path: str, *layers: str | tuple[str, ...]) -> list[Leaf]:
    """The leaves of an MLP at `path`, whose layers have these names in the record; two names are two heads."""
    leaves = []
    for i, layer in enumerate(layers):
        names = (layer,) if isinstance(layer, str) else layer
        for part in ("kernel", "bias"):
            theirs = tuple(f"{name}/{part}" for name in names)
            leaves.append(Leaf(f"{path}/Dense_{i}/{part}", theirs, "concat" if len(names) > 1 else "alone"))
    return leaves


def ensemble(path: str, members: Iterable[str], n_layers: int) -> list[Leaf]:
    """The leaves of an ensemble of MLPs at `path`, whose members have these names in the record."""
    return [
        Leaf(f"{path}/Dense_{i}/{part}", tuple(f"{member}/layer{i}/{part}" for member in members), "stack")
        for i in range(n_layers)
        for part in ("kernel", "bias")
    ]


def to_params(flat: Flat, leaves: list[Leaf], prefix: str) -> dict:
    """Our nested parameters (or moments) from the record's arrays under `prefix`."""
    params: dict = {}
    for leaf in leaves:
        *folders, name = leaf.ours.split("/")
        at = params
        for folder in folders:
            at = at.setdefault(folder, {})
        at[name] = leaf.to_ours([flat[prefix + theirs] for theirs in leaf.theirs])
    return params


def to_flat(params: dict, leaves: list[Leaf], prefix: str) -> Flat:
    """The inverse of `to_params`."""
    flat: Flat = {}
    for leaf in leaves:
        at = params
        for part in leaf.ours.split("/"):
            at = at[part]
        flat |= dict(zip((prefix + name for name in leaf.theirs), leaf.to_theirs(np.asarray(at)), strict=True))
    assert len(jax.tree.leaves(params)) == len(leaves), "a parameter of ours has no place in the record"
    return flat


def misfits(ours: Flat, before: Flat, after: Flat, after32: Flat | None = None) -> list[str]:
    """Leaves whose *change* differs from the record's, each as a sentence; empty where the update conforms.

    Args:
        ours: our state after the updates.
        before, after: the record's, `after` computed in float64.
        after32: the record's, computed in float32, where ours was too.
    """
    found = []
    assert ours.keys() == after.keys(), ours.keys() ^ after.keys()
    for name, value in ours.items():
        start, right = np.asarray(before[name], np.float64), np.asarray(after[name], np.float64)
        change = np.abs(right - start).max()
        if after32 is None:
            wanted, limit = right, F64_SHARE * change
        else:
            wanted = np.asarray(after32[name], np.float64)
            size = max(np.abs(start).max(), np.abs(right).max())
            limit = F32_ROUNDINGS * max(np.abs(wanted - right).max(), 2.0**-24 * size) if change else 0.0
        error = np.abs(np.asarray(value, np.float64) - wanted).max()
        if not error <= limit:
            found.append(f"{name}: off by {error:.3g}, allowed {limit:.3g}, the leaf changes by {change:.3g}")
    return found
