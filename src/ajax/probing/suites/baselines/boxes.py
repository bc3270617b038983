"""Other libraries' agents with actions in a box: SAC and TD3, and PPO's actions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ajax.probing import Actor, Case, Estimator, Problem
from ajax.probing.suites.action_box.ppo import BOX
from ajax.probing.suites.baselines.calibrated import calibrated
from ajax.probing.suites.baselines.settings import make
from ajax.probing.suites.boxes import box_case
from ajax.probing.suites.episode_ends import boxes as ends
from ajax.probing.suites.value_chains import boxes as chains

PLACES = ((0, 1.8), (1, 0.0))
BANDITS = Problem(BOX, Estimator(gamma=chains.GAMMA, backup="policy"), Actor(stochastic=False))


def sac(library: str, cls: type | None = None) -> Iterator[Case]:
    """A chain whose second action matters, and three ends where nothing but entropy does."""
    yield _chain(library, "SAC", cls, ent_coef=chains.TEMPERATURE)
    yield _ends(library, "SAC", cls, (1, 2))


def td3(library: str, cls: type | None = None) -> Iterator[Case]:
    """A chain whose second action matters, and three ends."""
    yield _chain(library, "TD3", cls, target_policy_noise=1.0)
    yield _ends(library, "TD3", cls, (0, 1, 2))


def box_ppo(library: str, cls: type | None = None) -> Case:
    """The best action below, inside and above a box."""
    subject = make(library, "PPO", cls, learning_rate=1e-3, ent_coef=0.03)
    found, title = calibrated(f"box-{library}:PPO"), f"{subject.name}, actions in a box"
    return box_case(f"box-{subject.name}", title, subject, BANDITS, acts=(0, 1, 2), calibrated=found)


def _chain(library: str, agent: str, cls: type | None, **overrides: Any) -> Case:
    subject = make(library, agent, cls, **overrides)
    found, title = calibrated(f"p0a-{library}:{agent}"), f"{subject.name}, two-step chain in a box"
    return box_case(f"p0a-{subject.name}", title, subject, chains.PROBLEMS[agent], q=PLACES, calibrated=found)


def _ends(library: str, agent: str, cls: type | None, states: tuple[int, ...]) -> Case:
    subject, problem = make(library, agent, cls), ends.PROBLEMS[agent]
    found, title = calibrated(f"p6-{library}:{agent}"), f"{subject.name}, three ends"
    places = tuple((s, ends.MIDDLE) for s in states)
    return box_case(f"p6-{subject.name}", title, subject, problem, q=places, mistakes=ends.ENDINGS, calibrated=found)
