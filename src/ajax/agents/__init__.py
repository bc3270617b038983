"""The agents, one file each. `get` finds one by name."""

from __future__ import annotations

import importlib

from ajax.core.agent import Agent
from ajax.core.errors import unknown_name

MODULES = {
    "APG": "apg",
    "APO": "apo",
    "ASAC": "asac",
    "AVG": "avg",
    "CrossQ": "crossq",
    "DAgger": "dagger",
    "DQN": "dqn",
    "IQL": "iql",
    "PPO": "ppo",
    "PQN": "pqn",
    "REDQ": "redq",
    "RVISAC": "rvisac",
    "SAC": "sac",
    "TD3": "td3",
    "UDRL": "udrl",
}
"""Every exported agent, and the file of this package that holds it."""


def get(name: str) -> type[Agent]:
    """Return the agent class of this name, in any case.

    Raises:
        UnknownName: no such agent; the message suggests the nearest.
    """
    by_lower = {known.lower(): known for known in MODULES}
    if name.lower() not in by_lower:
        raise unknown_name("agent", name, MODULES)
    known = by_lower[name.lower()]
    return getattr(importlib.import_module(f"ajax.agents.{MODULES[known]}"), known)
