"""Randomness comes from the key that an agent is given: another key, other networks, other actions, other updates."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from ajax.core.records import Net, Spec
from tests.agents.build import KEY, clock, equal, first, random_batch
from tests.agents.test_fields import SUBJECTS

AGENTS = pytest.mark.parametrize(("agent", "space"), SUBJECTS.values(), ids=SUBJECTS)


@AGENTS
def test_every_network_of_another_seed_is_another(agent: Any, space: Spec):
    a, b = first(agent, space, 0), first(agent, space, 1)
    for name, net in vars(a).items():
        if isinstance(net, Net):
            for path, leaf in jax.tree_util.tree_leaves_with_path(net.params):
                if "kernel" in jax.tree_util.keystr(path):
                    other = dict(jax.tree_util.tree_leaves_with_path(getattr(b, name).params))[path]
                    assert not np.isclose(leaf, other).all(), (name, path)


@pytest.mark.parametrize(
    ("agent", "space"), [pytest.param(*pair, id=name) for name, pair in SUBJECTS.items() if not pair[0].brings()]
)  # what an agent brings may explore in its place
def test_exploration_draws_from_the_key_and_evaluation_does_not(agent: Any, space: Spec):
    state, x = first(agent, space), random_batch(space).now
    explored = [np.asarray(agent.act(state, x, jax.random.key(i), clock(), True)[0]) for i in range(24)]
    assert (np.ptp(explored, axis=0) > 0).all()  # in every row, sooner or later
    assert len(np.unique(explored[0], axis=0)) > 1
    greedy = [agent.act(state, x, key, clock(), False)[0] for key in (KEY, jax.random.key(7))]
    assert equal(*greedy)
