"""Extensions, one file a family. `get` finds one by name, and each is an attribute: `ajax.extensions.CQL`."""

from __future__ import annotations

import importlib

from ajax.core.errors import unknown_name
from ajax.core.hooks import Extension

MODULES = {
    "BehaviorCloning": "expert",
    "BellmanPretrain": "pretrain",
    "CQL": "offline",
    "CalQL": "offline",
    "CriticDiversity": "ensemble",
    "ExpertReturn": "expert",
    "ExplainedVariance": "metrics",
    "Features": "metrics",
    "GAIL": "adversarial",
    "GradientNorms": "metrics",
    "IBRL": "expert",
    "Imitation": "expert",
    "JumpStart": "expert",
    "MCPretrain": "pretrain",
    "OrnsteinUhlenbeck": "exploration",
    "PriorData": "prior_data",
    "QBias": "metrics",
    "RND": "exploration",
    "ResidualPolicy": "expert",
    "TD3BC": "offline",
    "TDErrors": "metrics",
}
"""Every exported extension, and the file of this package that holds it."""


def load(name: str) -> None:
    """Make an exported extension known to `ajax.core.config.by_name`; other names are left to those who define them."""
    if name in MODULES:
        importlib.import_module(f"ajax.extensions.{MODULES[name]}")


def __getattr__(name: str) -> type[Extension]:
    if name not in MODULES:
        raise AttributeError(f"module 'ajax.extensions' has no attribute {name!r}. Extensions: {', '.join(MODULES)}.")
    return get(name)


def get(name: str) -> type[Extension]:
    """Return the extension class of this name, in any case.

    Raises:
        UnknownName: no such extension; the message suggests the nearest.
    """
    by_lower = {known.lower(): known for known in MODULES}
    if name.lower() not in by_lower:
        raise unknown_name("extension", name, MODULES)
    known = by_lower[name.lower()]
    return getattr(importlib.import_module(f"ajax.extensions.{MODULES[known]}"), known)
