"""The errors Ajax raises. One class a cause; each message says what was given, what is allowed, what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AjaxError(Exception):
    """Base class of every error that Ajax raises on purpose; the command line prints it as one line."""


class ConfigError(AjaxError, ValueError):
    """A configuration value is unknown, of the wrong type or out of range.

    Common causes: a misspelt field, a count given as a float, a discount above 1.
    """


class SpaceError(AjaxError, ValueError):
    """An agent was given an observation or action space that it can't act in.

    Common causes: a continuous agent (SAC, TD3) on discrete actions, a value agent (DQN) on a box.
    """


class EnvironmentFault(AjaxError, ValueError):
    """An environment breaks the protocol of `ajax.environments.Env`.

    Common causes: an observation of another shape than declared, a reward that is not finite.
    """


class UnknownName(AjaxError, LookupError):
    """A name (agent, environment, field, metric) is not registered."""


class CapabilityError(AjaxError, TypeError):
    """Two parts were combined that can't work together, because one lacks what the other needs."""


class CheckpointError(AjaxError, OSError):
    """A checkpoint could not be written or read: disk full, folder read-only, file cut short or foreign."""


class FolderInUse(AjaxError, OSError):
    """The output folder belongs to another run, finished or still running."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `" Did you mean 'gamma'?"` for the nearest of the `known` names, or an empty string."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    if not close:
        lowered = {k.lower(): k for k in known}
        close = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.5)]
    return f" Did you mean {close[0]!r}?" if close else ""


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UnknownName:
    """Return the error for a `name` that is none of the `known` names of this `kind` (agent, environment, ...)."""
    known = sorted(known)
    return UnknownName(f"unknown {kind} {name!r}.{did_you_mean(name, known)} Known: {', '.join(known)}.")
