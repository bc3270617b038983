"""The probes of Ajax's own agents: presets, and by subject the calibrated cases. The harness beside it knows no agent.

A module of cases is a folder: files of its cases by kind of action, and an `__init__` with `CASES`, every case by id,
and `ANSWER_DIGEST`, which pins their answers. A case's id has its agent's name between hyphens: `p0a-DQN-double`.
"""

from __future__ import annotations

import importlib

from ajax.core.errors import unknown_name
from ajax.probing.query import Case

MODULES = ("value_chains",)
"""The modules of cases, in the order in which they are run."""


def cases(agent: str, module: str | None = None) -> list[Case]:
    """Return the cases of an agent, of one module or of all.

    Raises:
        UnknownName: there is no such module, or no case of such an agent.
    """
    if module is not None and module not in MODULES:
        raise unknown_name("module of cases", module, MODULES)
    found = [case for name in MODULES if module in (None, name) for case in load(name).values()]
    if not any(agent == agent_of(case) for case in found):
        raise unknown_name("probed agent", agent, sorted({agent_of(case) for case in found}))
    return [case for case in found if agent_of(case) == agent]


def load(module: str) -> dict[str, Case]:
    """Return a module's cases by id."""
    return importlib.import_module(f"{__name__}.{module}").CASES


def agent_of(case: Case) -> str:
    """Return the name of the agent that a case trains: the second part of its id."""
    return case.id.split("-")[1]
