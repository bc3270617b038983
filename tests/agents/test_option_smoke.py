"""Options together: every pair of an agent's options, on or off, trains a tiny logged run.

A covering array needs a handful of runs for all pairs: in some run both are set, in some neither, in some one alone.
Every switch of an agent and of `train` is an option here, or is excused with a reason.
"""

from __future__ import annotations

import inspect
import itertools
import math
from typing import Any

import jax
import numpy as np
import pytest

from ajax import APG, RVISAC
from ajax.agents import MODULES
from ajax.core.config import assign, paths
from ajax.core.records import Net
from ajax.training.driver import engine, train
from tests.agents.build import steps_taken
from tests.agents.contract import SUBJECTS, Witness, steps_for, taught, tiny
from tests.agents.test_fields import NEW_STRUCTURE
from tests.agents.test_fields import SUBJECTS as WITH_ALL_OPTIONS

UPDATES = 8

OF_THE_LOOP = {
    "replay.n_envs": 3,
    "replay.steps": 2,
    "replay.updates": 2,
    "replay.trailing": False,
    "rollout.n_envs": 4,
    "rollout.n_epochs": 2,
    "rollout.n_minibatches": 4,
}
"""Another value of what the loops read."""

OF_TRAINING = {
    "normalize_observations": True,
    "normalize_rewards": True,
    "reward_normalization_gamma": 0.9,
    "episode_length": 4,
    "action_repeat": 2,
    "on_nan": "warn",
    "seeds": 2,
}
"""Another value of what `train` takes."""

NO_OPTION = {
    "agent": "the subject",
    "env": "the task",
    "steps": "how long, not what",
    "horizon": "schedules have tests of their own, and the resume contract",
    "evaluations": "when to look, not what to do",
    "episodes": "when to look, not what to do",
    "extensions": "the compatibility matrix, and the phase contract",
    "dataset": "another loop: tests/training/test_offline.py",
    "start": "networks of another training, with tests of its own",
    "out": "set in every run here",
    "checkpoint_seconds": "when to write, not what",
    "loggers": "no part of the program",
    "progress": "no part of the program",
    "expert": "must be given",
    "torso.cnn": "needs images: the compatibility matrix",
    "torso.memory": "the compatibility matrix",
    "replay.capacity": "a size",
    "replay.batch_size": "a size",
    "replay.warmup": "a size",
    "replay.max_length": "a size",
    "replay.last_few": "a size",
    "rollout.n_steps": "a size",
}
"""What is not switched, and why."""


def options(name: str) -> dict[str, Any]:
    """Every option of an agent by path, with its other value; those of training too."""
    agent, full = paths(tiny(name)), paths(WITH_ALL_OPTIONS[name][0])
    found: dict[str, Any] = {}
    for path, value in agent.items():
        other = NEW_STRUCTURE.get(
            f"{name}.{path}", NEW_STRUCTURE.get(path.removeprefix("critic_"), OF_THE_LOOP.get(path))
        )
        if path in OF_THE_LOOP or (other is not None and path not in NO_OPTION):
            found[path] = other
        elif value is None and full[path] is not None:
            found[path] = full[path]
        elif value is not None and path not in NO_OPTION and may_be_none(name, path):
            found[path] = None
    return found | OF_TRAINING


def may_be_none(name: str, path: str) -> bool:
    """Whether a field can be switched off by None."""
    try:
        assign(tiny(name), {path: None})
    except Exception:
        return False
    return True


def rows(n: int) -> list[tuple[bool, ...]]:
    """The fewest rows of `n` switches in which every pair of them takes all four values (Kleitman & Spencer 1973)."""
    size = next(size for size in itertools.count(4) if math.comb(size - 1, -(-size // 2)) >= n)
    columns = list(itertools.islice(itertools.combinations(range(1, size), -(-size // 2)), n))
    return [tuple(row in column for column in columns) for row in range(size)]


RUNS = [(name, kind, i) for name, kind in SUBJECTS for i in range(len(rows(len(options(name)))))]


@pytest.mark.parametrize("n", [2, 7, 15, 16])
def test_every_pair_of_switches_takes_all_four_values(n):
    array = np.array(rows(n))
    for one, other in itertools.combinations(range(n), 2):
        assert {(a, b) for a, b in array[:, [one, other]].tolist()} == set(itertools.product((True, False), repeat=2))


@pytest.mark.parametrize("name", MODULES)
def test_every_field_is_a_number_an_option_or_excused(name):
    unknown = [
        path
        for path, value in paths(tiny(name)).items()
        if not isinstance(value, float) and path not in options(name) and path.removeprefix("critic_") not in NO_OPTION
    ]
    schedules = [path for path in unknown if path.rsplit(".", 1)[-1] in ("start", "end", "fraction")]
    assert sorted(set(unknown) - set(schedules)) == [], "give another value in NEW_STRUCTURE, or excuse it in NO_OPTION"


def test_every_parameter_of_train_is_an_option_or_excused():
    assert set(inspect.signature(train).parameters) <= set(OF_TRAINING) | set(NO_OPTION)


def may_stand(agent: Any, net: Net) -> bool:
    """Whether a network may stay as it is: a cost held at its bound of 0, or no slope to learn from."""
    held = isinstance(agent, RVISAC) and [float(x.sum()) for x in jax.tree.leaves(net.params)] == [0.0]
    return held or (isinstance(agent, APG) and not agent.stochastic)  # the task rounds its actions


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind", "i"), RUNS)
def test_the_options_train_together(name, kind, i, tmp_path):
    known = options(name)
    chosen = {path: value for (path, value), on in zip(known.items(), rows(len(known))[i], strict=True) if on}
    of_training = {path: chosen.pop(path) for path in OF_TRAINING if path in chosen}
    agent = assign(tiny(name, **taught(name, kind)), chosen)
    result = agent.train(
        Witness(kind), steps_for(agent, UPDATES), out=tmp_path / "run", evaluations=2, episodes=2, progress=False,
        **of_training,
    )  # fmt: skip
    assert not result.stopped and not result.problems
    assert len((tmp_path / "run" / "progress.csv").read_text().splitlines()) == 1 + len(result.rows())
    start = engine(result.session.plan, result.session.lanes.task)
    start.begin()
    trained = 0
    for before, after in zip(nets(start.run(0).agent), nets(result.run().agent), strict=True):
        leaves = jax.tree.leaves(after.params)
        assert all(np.isfinite(leaf).all() for leaf in leaves)
        moved = [not np.array_equal(a, b) for a, b in zip(jax.tree.leaves(before.params), leaves, strict=True)]
        steps = steps_taken(after) if after.opt else 0
        assert any(moved) or not steps or may_stand(agent, after), "a network that is trained has not moved"
        trained += steps
    assert trained >= UPDATES


def nets(state: Any) -> list[Net]:
    """The networks of an agent's state."""
    return [x for x in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Net)) if isinstance(x, Net)]
