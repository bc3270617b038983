"""The names and keywords that other projects import and pass: removing one is a deliberate step.

    AJAX_WRITE_PINS=1 pytest -n 0 tests/test_downstream_api.py

records them anew: in the commit that removes or renames one, with a line in the changelog. What is new is recorded the
same way, and not before: a name counts as promised once it is in `downstream_api.json`.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
from pathlib import Path
from typing import Any

import pytest

MODULES = ("ajax", "ajax.probing", "ajax.core.hooks", "ajax.core.config", "ajax.core.errors", "ajax.core.records")
"""What is public besides `ajax` itself: what an extension and a probe are written with."""

FILE = Path(__file__).with_name("downstream_api.json")
WRITE = "AJAX_WRITE_PINS" in os.environ


def public(module: Any) -> list[str]:
    """The names of a module that others may use: those it lists, else those it defines itself."""
    if hasattr(module, "__all__"):
        return sorted(module.__all__)
    own = {name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__}
    return sorted(name for name in own if not name.startswith("_"))


def keywords(thing: Any) -> list[str]:
    """What may be passed by name or asked for: parameters, fields, methods and properties."""
    if not inspect.isclass(thing):
        return sorted(inspect.signature(thing).parameters) if callable(thing) else []
    fields = [f.name for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
    members = [name for cls in thing.__mro__ if cls.__module__.startswith("ajax") for name in vars(cls)]
    return sorted({name for name in (*fields, *members) if not name.startswith("_")})


def api() -> dict[str, list[str]]:
    """Every public name with its keywords."""
    modules = {name: importlib.import_module(name) for name in MODULES}
    found = {f"{name}.{x}": keywords(getattr(module, x)) for name, module in modules.items() for x in public(module)}
    train = inspect.signature(importlib.import_module("ajax.training.driver").train).parameters
    return found | {"Agent.train": sorted(train)}


PINNED: dict[str, list[str]] = json.loads(FILE.read_text()) if FILE.exists() else {}


@pytest.mark.skipif(not WRITE, reason="only when asked for")
def test_record():
    FILE.write_text(json.dumps(api(), indent=1, sort_keys=True) + "\n")


@pytest.mark.skipif(WRITE, reason="the names are being recorded")
@pytest.mark.parametrize("name", PINNED)
def test_a_public_name_keeps_its_keywords(name):
    found = api()
    assert name in found, f"{name} is gone: a deliberate step? Then record the names anew"
    assert not set(PINNED[name]) - set(found[name])


@pytest.mark.skipif(WRITE, reason="the names are being recorded")
def test_what_ajax_exports_is_pinned():
    new = [name for name in api() if name.startswith("ajax.") and name.count(".") == 1 and name not in PINNED]
    assert new == [], "record the names anew"
