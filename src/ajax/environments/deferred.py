"""Import one module of a package without running the `__init__` of the packages around it.

`import gymnax` runs every environment of the suite, and with them seaborn, pandas and SciPy (seconds), for one
environment whose own module takes milliseconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types


class _Deferred(types.ModuleType):
    """A package whose `__init__` runs when a name is asked of it that none of its loaded modules has."""

    def __getattr__(self, name: str):
        if name.startswith("__") or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def import_module(name: str) -> types.ModuleType:
    """Import the module `name` ("package.part.module"), putting off the `__init__` of packages not yet imported.

    The packages stay in `sys.modules`; each becomes what a plain import gives at the first use of a name that its
    `__init__` defines, and its classes are the same objects whichever import came first.

    Raises:
        ModuleNotFoundError: there is no such module.
    """
    packages = name.split(".")[:-1]
    for depth in range(1, len(packages) + 1):
        package = ".".join(packages[:depth])
        if package in sys.modules:
            continue
        spec = importlib.util.find_spec(package)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {package!r}", name=package)
        module = importlib.util.module_from_spec(spec)
        module.__class__ = _Deferred
        sys.modules[package] = module
        if depth > 1:
            setattr(sys.modules[".".join(packages[: depth - 1])], packages[depth - 1], module)
    return importlib.import_module(name)
