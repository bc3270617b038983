"""Pins: what a tiny run of every agent ends in today. They detect change; they say nothing of what is right.

A pin holds, for each network of the agent's state, the sum of squares of its parameters (of anything else in the state,
of its numbers), and the state of a test extension. A restructuring that means to change nothing moves none of them by
more than `RTOL`, which leaves room for another processor's or compiler's rounding.

    AJAX_WRITE_PINS=1 pytest -n 0 tests/agents/test_agent_pins.py

records them anew. Do that in a commit of its own that says why the numbers moved.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.core.records import Net
from tests.agents.contract import SUBJECTS, witnessed

FILE = Path(__file__).with_name("pins.json")
WRITE = "AJAX_WRITE_PINS" in os.environ
RTOL = 1e-3


def pin(name: str, kind: str) -> dict[str, list[float]]:
    """The fingerprint of a tiny run: what is pinned, by name."""
    run = witnessed(name, kind)[0].run()
    state = {f.name: getattr(run.agent, f.name) for f in dataclasses.fields(run.agent)}
    found = {field: [squares(x.params if isinstance(x, Net) else x)] for field, x in state.items()}
    return found | {"extension": [float(x) for x in (run.own[0].count, run.own[0].total, run.own[0].trace)]}


def squares(tree: Any) -> float:
    """Sum of squares of all numbers of a tree, in float64; keys are left out."""
    leaves = [x for x in jax.tree.leaves(tree) if not jnp.issubdtype(x.dtype, jax.dtypes.prng_key)]
    return float(sum(np.square(np.asarray(x, np.float64)).sum() for x in leaves))


def recorded() -> dict[str, dict[str, list[float]]]:
    """The pins on record, by agent and kind of action."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}


@pytest.mark.skipif(WRITE, reason="the pins are being recorded")
def test_every_agent_is_pinned():
    assert sorted(recorded()) == sorted(f"{name} {kind}" for name, kind in SUBJECTS), "see above how to record pins"


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_a_tiny_run_ends_where_it_did(name, kind):
    found, known = pin(name, kind), recorded()
    if WRITE:
        rounded = {what: [float(f"{x:.7g}") for x in values] for what, values in found.items()}
        alive = {key: value for key, value in known.items() if tuple(key.split()) in SUBJECTS}
        FILE.write_text(json.dumps(alive | {f"{name} {kind}": rounded}, indent=1, sort_keys=True) + "\n")
        return
    pinned = known[f"{name} {kind}"]
    assert found.keys() == pinned.keys()
    for what, values in found.items():
        np.testing.assert_allclose(values, pinned[what], rtol=RTOL, atol=1e-9, err_msg=what)


def test_the_tolerance_hides_no_change_worth_the_name():
    assert abs(squares([np.full(3, 1.001)]) / squares([np.ones(3)]) - 1.0) > RTOL
