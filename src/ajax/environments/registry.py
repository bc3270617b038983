"""Environments by name, from every suite; and whatever else a user may hand over as an environment."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pathlib
import sys
from collections.abc import Callable
from typing import Any

from ajax.core.errors import UnknownName, did_you_mean
from ajax.environments import brax, playground
from ajax.environments.base import Env
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.environments.gymnax import MODULES, GymnaxEnv
from ajax.environments.user import as_env

_MAKERS: dict[str, Callable[[str], Any]] = {
    "gymnax": GymnaxEnv.of,
    "gymnasium": GymnasiumEnv,
    "brax": brax.make,
    "playground": playground.make,
}
_PACKAGES = {"brax": "brax", "playground": "mujoco_playground"}


@dataclasses.dataclass(frozen=True)
class Suite:
    """The environments of one library.

    Attributes:
        name: the prefix that chooses the suite ("brax" in "brax:ant").
        environments: their names, without the prefix; none where only the library itself could say.
        missing: what to install to use the suite; empty where it is installed.
    """

    name: str
    environments: tuple[str, ...] = ()
    missing: str = ""


def make(env: Any) -> Env | GymnasiumEnv:
    """Return an environment that can be trained on.

    Args:
        env: one of
            a name: "CartPole-v1" (gymnax, else Gymnasium), or with its suite: "gymnasium:CartPole-v1", "brax:ant",
            "playground:CartpoleBalance";
            a class in a module or file: "package.module:MyEnv", "path/to/file.py:MyEnv";
            an object or class that keeps the `Env` protocol;
            an environment of gymnax or Gymnasium, or a class or function that makes one.

    Returns:
        a JAX environment (a pytree that keeps the `Env` protocol), or a `GymnasiumEnv`, which steps on the host.

    Raises:
        UnknownName: no suite has that name, or its extra isn't installed.
        EnvironmentFault: the object doesn't keep the protocol.
        SpaceError: a space that agents can't act in or observe.
    """
    if isinstance(env, str):
        return _by_name(env)
    if isinstance(env, GymnasiumEnv):
        return env
    made_by = libraries(env if isinstance(env, type) else type(env))
    if "gymnasium" in made_by:
        return GymnasiumEnv(env)
    if isinstance(env, type) or not hasattr(env, "step"):
        return _from_factory(env)
    return GymnaxEnv.of(env) if "gymnax" in made_by else as_env(env)


def identify(env: Any) -> str | None:
    """Return what makes `env` again in another process and folder, or None for an object made in Python."""
    if not isinstance(env, str):
        return None
    where, colon, name = env.rpartition(":")
    return f"{pathlib.Path(where).resolve()}:{name}" if colon and where.endswith(".py") else env


def title(env: Any) -> str:
    """Return what to call whatever was given to `make`."""
    if isinstance(env, str):
        return env
    cls = env if isinstance(env, type) else type(env)
    return env.spec.id if "gymnasium" in libraries(cls) and cls is not env and env.spec else cls.__name__


def names() -> list[Suite]:
    """Return the suites with the names of their environments, or with what to install. Imports the suites."""
    import gymnasium

    suites = [Suite("gymnax", tuple(MODULES)), Suite("gymnasium", tuple(sorted(gymnasium.registry)))]
    suites.append(Suite("brax", brax.NAMES, _missing("brax")))
    missing = _missing("playground")
    suites.append(Suite("playground", () if missing else tuple(playground.names()), missing))
    return suites


def libraries(cls: type) -> set[str]:
    """Return the top-level packages that a class and its bases come from."""
    return {base.__module__.partition(".")[0] for base in cls.__mro__}


def _by_name(name: str) -> Env | GymnasiumEnv:
    prefix, _, rest = name.partition(":")
    if rest and prefix in _MAKERS:
        missing = _missing(prefix)
        if missing:
            raise UnknownName(f"environment {name!r} needs the extra {prefix!r}: {missing}")
        return _MAKERS[prefix](rest)
    if rest:
        return make(_load_class(*name.rsplit(":", 1)))
    if name in MODULES:
        return GymnaxEnv.of(name)
    import gymnasium

    if name in gymnasium.registry or "/" in name:
        return GymnasiumEnv(name)
    known = [*MODULES, *gymnasium.registry, *(f"brax:{env}" for env in brax.NAMES)]
    raise UnknownName(
        f"unknown environment {name!r}.{did_you_mean(name, known)} `ajax envs` lists every name; "
        "a class of your own is 'package.module:Class' or 'path/to/file.py:Class'."
    )


def _missing(suite: str) -> str:
    if suite not in _PACKAGES or importlib.util.find_spec(_PACKAGES[suite]):
        return ""
    return f"pip install 'ajax-agents[{suite}]'"


def _from_factory(factory: Any) -> Env | GymnasiumEnv:
    if not callable(factory):
        return as_env(factory)
    made = factory()
    return GymnasiumEnv(factory) if "gymnasium" in libraries(type(made)) else make(made)


def _load_class(where: str, name: str) -> Any:
    """Return what `name` stands for in a module ("package.module") or a file ("path/to/file.py")."""
    try:
        if where.endswith(".py"):
            spec = importlib.util.spec_from_file_location(pathlib.Path(where).stem, where)
            if spec is None or spec.loader is None:
                raise ImportError(f"can't read {where}")
            module = importlib.util.module_from_spec(spec)
            former = {spec.name: sys.modules[spec.name]} if spec.name in sys.modules else {}
            sys.modules[spec.name] = module  # pickling its classes looks them up here
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[spec.name]  # else an import of that name finds half a module
                sys.modules.update(former)
                raise
        else:
            module = importlib.import_module(where)
    except (ImportError, OSError) as error:
        raise UnknownName(f"environment '{where}:{name}': {where} can't be imported: {error}") from error
    if not hasattr(module, name):
        public = [known for known in vars(module) if not known.startswith("_")]
        raise UnknownName(f"environment '{where}:{name}': {where} has no {name!r}.{did_you_mean(name, public)}")
    return getattr(module, name)
