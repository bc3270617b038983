"""Learning curves read back from results folders."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from ajax.core.errors import CheckpointError
from ajax.logging.table import read_csv

Curve = tuple[np.ndarray, np.ndarray]
"""Steps (evaluations,) and returns (seeds, evaluations)."""


def read_curves(folder: str | Path) -> dict[str, Curve]:
    """The curves of a results folder, one a value of a sweep, each called after the folder.

    Raises:
        CheckpointError: there is no progress in that folder.
    """
    rows = read_csv(Path(folder) / "progress.csv")
    if not rows:
        raise CheckpointError(
            f"{folder} has no progress.csv with an evaluation in it: no results folder, or a new one."
        )
    steps = sorted({row["step"] for row in rows})
    curves = {}
    for label in dict.fromkeys(str(row.get("label", "")) for row in rows):
        name = f"{Path(folder).name}, {label}" if label else Path(folder).name
        mine = [row for row in rows if str(row.get("label", "")) == label]
        seeds = sorted({row["seed"] for row in mine})
        returns = np.full((len(seeds), len(steps)), np.nan)
        for row in mine:
            returns[seeds.index(row["seed"]), steps.index(row["step"])] = row["return"]
        curves[name] = np.array(steps), returns
    return curves
