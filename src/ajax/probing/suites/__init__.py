"""The probes of Ajax's own agents, and of other libraries' (`peers`): settings, and by subject the calibrated cases.

The harness beside this package knows no agent.

A module of cases is a folder: files of its cases by kind of action, and an `__init__` with `CASES`, every case by id,
and `ANSWER_DIGEST`, which pins their answers. A case's id has its agent's name between hyphens: `p0a-DQN-double`.
"""

from __future__ import annotations

from ajax.core.errors import unknown_name
from ajax.probing.calibrate import find_case, load_cases
from ajax.probing.query import Case

MODULES = ("value_chains", "episode_ends", "bookkeeping", "action_box", "extensions", "memory", "split_run")
"""The modules of cases, in the order in which they are run."""

PEERS = "peers"
"""The module of other libraries' cases."""


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
    """Return the cases by id of a module of this package (`PEERS` too), or of any other by dotted name or by its file.

    Raises:
        ConfigError: there is no such module, or it has no `CASES`.
    """
    return load_cases(_name(module))


def find(module: str, case: str) -> Case:
    """Return one case of a module, which is given as for `load`.

    Raises:
        ConfigError: see `load`.
        UnknownName: the module has no such case.
    """
    return find_case(_name(module), case)


def _name(module: str) -> str:
    return f"{__name__}.{module}" if module in (*MODULES, PEERS) else module


def agent_of(case: Case) -> str:
    """Return the name of the agent that a case trains: the second part of its id."""
    return case.id.split("-")[1]
