"""The probes of Stable-Baselines3 and SBX, on the Specs of Ajax's own agents.

Budgets and tolerances are their own: `CALIBRATED` holds for the settings that `DIGEST` pins, of one library each.
"""

from __future__ import annotations

import dataclasses

from ajax.core.errors import unknown_name
from ajax.probing.baselines import PACKAGES
from ajax.probing.query import Case
from ajax.probing.suites.baselines import boxes, discrete
from ajax.probing.suites.baselines.calibrated import UNCERTIFIED

BUILDERS = {"DQN": discrete.dqn, "PPO": discrete.ppo, "SAC": boxes.sac, "TD3": boxes.td3}
"""Agent: what makes its cases, given the library and a subclass (or None)."""


def cases(library: str, agent: str, cls: type | None = None) -> list[Case]:
    """Return the cases of an agent of a library, or those of a subclass of it.

    Args:
        library: `"sb3"` or `"sbx"`.
        agent: DQN, PPO, SAC or TD3.
        cls: a subclass to train in the agent's place.

    Raises:
        UnknownName: there is no such library, or no such agent among those probed.
    """
    if library not in PACKAGES:
        raise unknown_name("library", library, PACKAGES)
    if agent not in BUILDERS:
        raise unknown_name(f"probed agent of {library}", agent, BUILDERS)
    return [_ready(case, f"{library}:{agent}") for case in BUILDERS[agent](library, cls)]


def _ready(case: Case, known: str) -> Case:
    """The case, with its largest tolerances where none are calibrated."""
    id = f"{case.id.partition('-')[0]}-{known}"
    if id not in UNCERTIFIED:
        return case
    largest = tuple(query.cap for query in case.queries)
    note = "no ladder yet: tolerances are the largest that reach no wrong answer"
    return dataclasses.replace(case, budget=UNCERTIFIED[id], tolerances=largest, note=note)
