"""A run split in two ends in the state that one uninterrupted call reaches, for every agent.

Both calls are told the run's horizon, so that schedules run as in one; the second half is made by another instance of
everything, from the results folder alone.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from ajax import DQN, Linear, resume
from ajax.core.config import assign, config, paths
from ajax.core.schedules import Scheduled, value_at
from tests.agents.contract import NORMALIZED, SUBJECTS, Keep, Witness, settle, steps_for, taught, tiny
from tests.environments.identity_env import IdentityEnv
from tests.training.tiny import assert_same_runs

UPDATES = 24


def scheduled(name: str) -> Any:
    """A small agent whose every number that may follow a schedule follows one."""
    agent = tiny(name)
    ends = {
        f.name: getattr(agent, f.name) for f in dataclasses.fields(agent) if f.type in (Scheduled, Scheduled | None)
    }
    numbers = {path: value for path, value in ends.items() if isinstance(value, float)}
    return assign(agent, {path: Linear(start=value, end=0.5 * value) for path, value in numbers.items()})


@pytest.mark.parametrize("name", sorted({name for name, _ in SUBJECTS}))
def test_every_learning_rate_follows_a_schedule_here(name):
    rates = [value for path, value in paths(scheduled(name)).items() if path.endswith("learning_rate.start")]
    assert rates, f"{name} has no learning rate that may follow a schedule"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, NORMALIZED], ids=["plain", "normalized"])
@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_a_split_run_ends_where_the_whole_run_does(name, kind, options, tmp_path):
    agent, env = assign(scheduled(name), taught(name, kind)), Witness(kind)
    steps, half = steps_for(agent, UPDATES), steps_for(agent, UPDATES // 2)
    common = {"seeds": 2, "evaluations": 2, "episodes": 2, "progress": False, "extensions": (Keep(),), **options}
    whole = agent.train(env, steps, **common)
    dataclasses.replace(agent).train(env, half, horizon=steps, out=tmp_path / "run", **common)
    assert_same_runs(whole, resume(tmp_path / "run", steps, env=Witness(kind), agent=agent, progress=False))


_epsilons: list[tuple[float, float]] = []


@config
class Noting(DQN):
    """DQN that tells the host each step's epsilon."""

    def act(self, state, x, key, clock, explore):
        if explore:
            jax.debug.callback(_note, clock.step, value_at(self.epsilon, clock))
        return super().act(state, x, key, clock, explore)


def _note(step: Any, epsilon: Any) -> None:
    _epsilons.append((float(step), float(epsilon)))


def test_a_two_call_runs_epsilon_at_every_step_is_the_one_calls(tmp_path):
    small = {f.name: getattr(tiny("DQN"), f.name) for f in dataclasses.fields(DQN)}
    agent = Noting(**{**small, "epsilon": Linear(start=1.0, end=0.1, fraction=0.5)})

    def run(*stops: int) -> list[tuple[float, float]]:
        _epsilons.clear()
        result = agent.train(IdentityEnv(), stops[0], horizon=48, episodes=0, evaluations=1, progress=False)
        for steps in stops[1:]:
            result = result.resume(steps, progress=False)
        settle(lambda: len(_epsilons), 20)
        return sorted(_epsilons)

    whole = run(48)
    assert whole == run(26, 48) == run(10, 12, 48)
    steps, epsilons = np.array(whole).T
    assert steps.tolist() == list(range(8, 48, 2))  # two environments, four ticks of warm-up
    np.testing.assert_allclose(epsilons, 1.0 - 0.9 * np.minimum(1.0, steps / 24), rtol=1e-6)
