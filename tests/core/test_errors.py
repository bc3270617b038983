"""Errors: one class a cause, each also the built-in error that a caller would expect, and suggestions that help."""

from __future__ import annotations

import pytest

from ajax.core import errors
from ajax.core.errors import AjaxError, UnknownName, did_you_mean, unknown_name


@pytest.mark.parametrize(
    ("cls", "builtin"),
    [
        (errors.ConfigError, ValueError),
        (errors.SpaceError, ValueError),
        (errors.EnvironmentFault, ValueError),
        (errors.UnknownName, LookupError),
        (errors.CapabilityError, TypeError),
        (errors.CheckpointError, OSError),
        (errors.FolderInUse, OSError),
    ],
)
def test_each_is_an_ajax_error_and_the_built_in_of_its_kind(cls, builtin):
    assert issubclass(cls, AjaxError) and issubclass(cls, builtin)


@pytest.mark.parametrize(("name", "near"), [("gama", "gamma"), ("GAMMA", "gamma"), ("lamda", "lambda")])
def test_the_nearest_name_is_suggested(name, near):
    assert did_you_mean(name, ["gamma", "lambda", "tau"]) == f" Did you mean {near!r}?"


def test_nothing_is_suggested_where_nothing_is_near():
    assert did_you_mean("zzz", ["gamma", "tau"]) == ""


def test_an_unknown_name_lists_what_is_known():
    error = unknown_name("agent", "DQM", ["SAC", "DQN"])
    assert isinstance(error, UnknownName)
    assert str(error) == "unknown agent 'DQM'. Did you mean 'DQN'? Known: DQN, SAC."
