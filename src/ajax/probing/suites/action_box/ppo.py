"""Three bandits in a box that overhangs [-1, 1] above alone, for agents of other libraries."""

from __future__ import annotations

from ajax.core.spaces import Box
from ajax.probing import Spec, parabola

BEST = (-1.5, 1.2, 3.0)  # below, inside and above the box
BOX = Spec.of(
    "three bandits in a box",
    lambda s, r: (3, 0.0, True),
    n_states=4,
    start=(1 / 3, 1 / 3, 1 / 3, 0),
    box=Box.of([-0.5], [2.0]),
    quadratic=lambda s: parabola(BEST[s]) if s < 3 else (0, 0, 0),
)
