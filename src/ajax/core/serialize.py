"""Configurations as JSON (results folders) and as text (the command line)."""

from __future__ import annotations

import ast
import dataclasses
import json
import typing
from typing import Any

from ajax.core.config import Schedule, by_name, is_config, members, paths, resolve
from ajax.core.errors import CheckpointError, ConfigError


def to_dict(value: Any) -> Any:
    """A configuration as JSON values: its fields, and its class's name under `"config"`.

    What JSON can't hold (an expert, a dataset) is left as its class's name under `"object"`.
    """
    if is_config(value):
        fields = {f.name: to_dict(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"config": type(value).__name__, **fields}
    if isinstance(value, tuple):
        return [to_dict(item) for item in value]
    if value is None or isinstance(value, str | int | float):
        return value
    return {"object": type(value).__name__}


def from_dict(value: Any) -> Any:
    """The inverse of `to_dict`, validated again.

    Raises:
        UnknownName, ConfigError: the data names a class or field that does not exist here, or a value not allowed.
        CheckpointError: it held an object.
    """
    if isinstance(value, dict) and "object" in value:
        raise CheckpointError(f"{value['object']} is an object made in Python, which a results folder does not hold.")
    if isinstance(value, dict):
        fields = {name: from_dict(v) for name, v in value.items() if name != "config"}
        return by_name(value["config"])(**fields)
    return tuple(value) if isinstance(value, list) else value


def parse(agent: Any, name: str, text: str) -> Any:
    """Read the value of a field of `agent`, given by name or dotted path, from the command line.

    Numbers, `true` and `false`, `none`, names, `64,64` for a tuple, `linear:START,END[,FRACTION]` or `cosine:...` for a
    schedule, and for other configurations what Python would read: `CNN(channels=(16, 32))`.

    Raises:
        UnknownName: no such field.
        ConfigError: the text is of the wrong type; the message says what the field takes.
    """
    path = resolve(agent, name)
    owner = agent
    for part in path.split(".")[:-1]:
        owner = getattr(owner, part)
    field = next(f for f in dataclasses.fields(owner) if f.name == path.rsplit(".", 1)[-1])
    accepted = members(field.type)
    for kind in accepted:
        try:
            return _read(kind, text)
        except ConfigError:
            raise
        except ValueError:
            continue
    known = ", ".join(words for kind in accepted if (words := _WORDS.get(kind) or _words(kind)))
    raise ConfigError(f"{type(agent).__name__}: {name}={text!r}: {name} takes {known}.")


_WORDS: dict[Any, str] = {
    float: "a number",
    int: "a whole number",
    bool: "true or false",
    str: "a name",
    type(None): "none",
}


def _words(kind: Any) -> str:
    if typing.get_origin(kind) is tuple:
        return "whole numbers such as 64,64"
    if not is_config(kind):
        return ""
    if issubclass(kind, Schedule):
        return f"{kind.__name__.lower()}:START,END[,FRACTION]"
    return f"{kind.__name__}(FIELD=VALUE, ...)"


def _read(kind: Any, text: str) -> Any:
    if kind is type(None):
        if text.lower() == "none":
            return None
        raise ValueError
    if kind is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError(text)
        return text.lower() == "true"
    if kind is int:
        return whole_number(text)
    if kind in (float, str):
        return kind(text)
    if typing.get_origin(kind) is tuple:
        return tuple(int(part) for part in text.split(",") if part)
    if is_config(kind) and issubclass(kind, Schedule) and text.startswith(f"{kind.__name__.lower()}:"):
        start, end, *fraction = (float(part) for part in text.partition(":")[2].split(","))
        if len(fraction) > 1:
            raise ValueError(text)
        return kind(start=start, end=end, **dict(zip(("fraction",), fraction, strict=False)))
    if is_config(kind):
        return _read_call(kind, text)
    raise ValueError


def _read_call(kind: Any, text: str) -> Any:
    """Read `Kind(field=literal, ...)`."""
    try:
        call = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise ValueError(text) from None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != kind.__name__ or call.args:
        raise ValueError(text)
    return kind(**{str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords})


def whole_number(text: str) -> int:
    """Read a count: `2000`, `200k`, `1.5M`, `1e6`, `10_000`.

    Raises:
        ValueError: it is none, or not whole.
    """
    scale = {"k": 1e3, "m": 1e6}.get(text[-1:].lower(), 1.0)
    number = float(text[:-1] if scale > 1 else text) * scale
    if not number.is_integer():
        raise ValueError(text)
    return int(number)


def describe(agent: Any) -> list[tuple[str, str, str]]:
    """Every field of a configuration: dotted path, default as JSON, and the sentence that documents it."""
    rows = []
    for path, value in paths(agent).items():
        owner = agent
        for part in path.split(".")[:-1]:
            owner = getattr(owner, part)
        field = next(f for f in dataclasses.fields(owner) if f.name == path.rsplit(".", 1)[-1])
        rows.append((path, json.dumps(to_dict(value)), field.metadata["rule"].help))
    return rows
