"""Configurations: frozen dataclasses whose numbers are arguments of the compiled program.

A configuration is a pytree. Fields annotated `float` (also `float | None`, and fields that hold another configuration
or a `struct.PyTreeNode`) are leaves, so that changing `gamma` recompiles nothing and a batch of values is one `vmap`;
every other field is static structure, compared by value. `None` is structure as well.

    @config
    class Bandit:
        gamma: float = setting(default=0.99, within=(0, 1), help="discount per environment step")
        n_arms: int = setting(default=4, low=1, help="number of arms")
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from typing import Any, TypeVar, dataclass_transform

import jax
import numpy as np
from flax import struct

from ajax.core.errors import ConfigError, UnknownName, did_you_mean, unknown_name

T = TypeVar("T")

_configs: dict[str, type] = {}
_made: set[type] = set()


class Schedule:
    """Base of what may stand where a field takes a number, and changes over a run."""

    def ends(self) -> tuple[float, ...]:
        """The extremes of its values; what the field accepts holds for each."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class Rule:
    """What a field accepts, and the sentence that documents it."""

    help: str
    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    choices: tuple[Any, ...] = ()

    def fault(self, value: Any) -> str | None:
        """Return what is wrong with a number, a schedule of numbers or a choice, or None."""
        if isinstance(value, Schedule):
            # a bound that a number may not equal is one that a schedule may end at: a step size annealed to 0
            closed = dataclasses.replace(self, open_low=False)
            return next((fault for end in value.ends() if (fault := closed.fault(end))), None)
        if self.choices and value not in self.choices:
            hint = did_you_mean(value, self.choices) if isinstance(value, str) else ""
            return f"must be one of {', '.join(map(repr, self.choices))}.{hint}"
        if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
            return None
        if not math.isfinite(value):
            return "must be finite"
        if value < self.low or value > self.high or (self.open_low and value == self.low):
            return f"must be {self.range}"
        return None

    @property
    def range(self) -> str:
        """The allowed range in words."""
        if math.isfinite(self.low) and math.isfinite(self.high):
            return f"within {'(' if self.open_low else '['}{self.low:g}, {self.high:g}]"
        if math.isfinite(self.low):
            return f"greater than {self.low:g}" if self.open_low else f"at least {self.low:g}"
        return f"at most {self.high:g}"


def setting(
    default: Any = dataclasses.MISSING,
    *,
    help: str,
    low: float = -math.inf,
    high: float = math.inf,
    within: tuple[float, float] | None = None,
    positive: bool = False,
    choices: tuple[Any, ...] = (),
) -> Any:
    """Declare a field of a configuration: its default, its meaning (`help`) and what it accepts.

    Args:
        default: value when none is given.
        help: one line for the documentation and the command line; give units (env steps, updates, seconds).
        low, high: inclusive bounds.
        within: both bounds at once.
        positive: greater than zero.
        choices: the values allowed.
    """
    if within is not None:
        low, high = within
    rule = Rule(help, 0.0 if positive else low, high, positive, tuple(choices))
    return dataclasses.field(default=default, metadata={"rule": rule})


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting, dataclasses.field))
def config(cls: type[T]) -> type[T]:
    """Make a class a configuration: frozen, keyword-only, validated when built, and a pytree (see the module).

    A class may define `check(self)` for what concerns several fields; it is called after the fields pass.

    Raises:
        ConfigError: a field is not declared by `setting`; when an instance is built, naming the class, the field, the
            value given and what is allowed.
    """
    check = vars(cls).get("check")

    def __post_init__(self):
        for f in dataclasses.fields(self):
            _validate(self, f)
        if check is not None:
            check(self)

    cls.__post_init__ = __post_init__  # type: ignore[attr-defined]
    cls = dataclasses.dataclass(frozen=True, kw_only=True)(cls)  # type: ignore[call-overload]
    hints = typing.get_type_hints(cls)
    for f in dataclasses.fields(cls):  # type: ignore[arg-type]
        if "rule" not in f.metadata:
            raise ConfigError(f"{cls.__name__}.{f.name}: declare it as {f.name} = setting(default=..., help=...).")
        f.type = hints[f.name]
    names = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    init = cls.__init__

    def __init__(self, **values):
        unknown = [name for name in values if name not in names]
        if unknown:
            raise ConfigError(
                f"{cls.__name__} has no field {unknown[0]!r}.{did_you_mean(unknown[0], names)}"
                f" Its fields: {', '.join(names)}."
            )
        missing = [f for f in dataclasses.fields(cls) if f.default is dataclasses.MISSING and f.name not in values]  # type: ignore[arg-type]
        if missing:
            raise ConfigError(f"{cls.__name__} needs {missing[0].name}: {missing[0].metadata['rule'].help}.")
        init(self, **values)

    __init__.__wrapped__ = init  # type: ignore[attr-defined]
    __init__.__doc__ = init.__doc__
    cls.__init__ = __init__  # type: ignore[method-assign]
    leaves = [f.name for f in dataclasses.fields(cls) if _is_leaf(f.type)]  # type: ignore[arg-type]
    _register(cls, leaves, [n for n in names if n not in leaves])
    _configs[cls.__name__] = cls
    _made.add(cls)
    return cls


def by_name(name: str) -> type:
    """The configuration class of this name, among those that were loaded.

    Raises:
        UnknownName: no such class.
    """
    if name not in _configs:
        raise unknown_name("configuration", name, _configs)
    return _configs[name]


def _register(cls: type, leaves: list[str], static: list[str]) -> None:
    """Make `cls` a pytree. JAX rebuilds instances with tracers and placeholders, so rebuilding does not validate."""

    def flatten(x: Any):
        keyed = [(jax.tree_util.GetAttrKey(name), getattr(x, name)) for name in leaves]
        return keyed, tuple(getattr(x, name) for name in static)

    def rebuild(values: tuple, children: Any) -> Any:
        x: Any = object.__new__(cls)
        for name, value in zip(leaves + static, (*children, *values), strict=True):
            object.__setattr__(x, name, value)
        return x

    jax.tree_util.register_pytree_with_keys(cls, flatten, rebuild)


def is_config(value: Any) -> bool:
    """Whether `value` is a configuration (instance or class) made by `config`."""
    return (value if isinstance(value, type) else type(value)) in _made


def members(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the one type itself."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return typing.get_args(annotation)
    return (annotation,)


def _is_leaf(annotation: Any) -> bool:
    return any(
        member is float or is_config(member) or (isinstance(member, type) and issubclass(member, struct.PyTreeNode))
        for member in members(annotation)
    )


def _validate(owner: Any, f: dataclasses.Field) -> None:
    value, rule = getattr(owner, f.name), f.metadata["rule"]
    if _is_leaf(f.type) and isinstance(value, jax.Array | np.ndarray):
        return  # a traced or batched number: it was validated when it was a number
    where = f"{type(owner).__name__}({f.name}={value!r})"
    allowed = members(f.type)
    if not any(_accepts(member, value) for member in allowed):
        raise ConfigError(f"{where}: {f.name} must be {_names(allowed)}, not {type(value).__name__}.")
    if isinstance(value, (int, np.number)) and not isinstance(value, bool):
        object.__setattr__(owner, f.name, float(value) if float in allowed else int(value))  # plain: JSON holds it
    fault = rule.fault(value)
    if fault:
        raise ConfigError(f"{where}: {f.name} {fault.rstrip('.')}. {rule.help[0].upper()}{rule.help[1:]}.")


def _accepts(annotation: Any, value: Any) -> bool:
    if annotation is float:
        return isinstance(value, (int, float, np.floating, np.integer)) and not isinstance(value, bool)
    if annotation is int:
        return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if typing.get_origin(annotation) is tuple:
        item = typing.get_args(annotation)[0]
        return isinstance(value, tuple) and all(_accepts(item, v) for v in value)
    if typing.get_origin(annotation) is typing.Literal:
        return value in typing.get_args(annotation)
    return isinstance(value, annotation) if isinstance(annotation, type) else True


def _names(allowed: tuple[Any, ...]) -> str:
    words = {float: "a number", int: "a whole number", bool: "True or False", str: "a string", type(None): "None"}
    return " or ".join(words.get(kind, kind.__name__ if isinstance(kind, type) else str(kind)) for kind in allowed)


def paths(agent: Any, prefix: str = "") -> dict[str, Any]:
    """Return every field of a configuration by dotted path (`"replay.batch_size"`), nested ones included."""
    found: dict[str, Any] = {}
    for f in dataclasses.fields(agent):
        value = getattr(agent, f.name)
        if is_config(value):
            found |= paths(value, f"{prefix}{f.name}.")
        else:
            found[prefix + f.name] = value
    return found


def resolve(agent: Any, name: str) -> str:
    """Return the dotted path that `name` stands for: itself, or the one nested field of that name.

    Raises:
        UnknownName: no field, or several, have that name; the message suggests the nearest.
    """
    known = {**paths(agent), **{f.name: None for f in dataclasses.fields(agent)}}
    if name in known:
        return name
    matches = [path for path in known if path.rsplit(".", 1)[-1] == name]
    if len(matches) == 1:
        return matches[0]
    cls = type(agent).__name__
    if matches:
        raise UnknownName(f"{cls}: {name!r} is ambiguous. Give one of {', '.join(matches)}.")
    short = [path.rsplit(".", 1)[-1] for path in known]
    raise UnknownName(f"{cls} has no field {name!r}.{did_you_mean(name, short)} Its fields: {', '.join(known)}.")


def assign(agent: T, values: dict[str, Any]) -> T:
    """Return a copy of a configuration with fields replaced by name or dotted path, all at once, then validated."""
    return _assign(agent, [(resolve(agent, name).split("."), value) for name, value in values.items()])


def _assign(agent: Any, values: list[tuple[list[str], Any]]) -> Any:
    fields = {path[0]: value for path, value in values if len(path) == 1}
    for head in dict.fromkeys(path[0] for path, _ in values if len(path) > 1):
        inner = [(path[1:], value) for path, value in values if path[0] == head and len(path) > 1]
        fields[head] = _assign(fields.get(head, getattr(agent, head)), inner)
    return dataclasses.replace(agent, **fields)
