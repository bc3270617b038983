"""The house's rules, held on the syntax tree of every file of `src/ajax`: what may import what, and sizes.

A new area (a folder or a file directly under `src/ajax`) fails until `LAYERS` says what it may import.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "ajax"
FILES = sorted(SRC.rglob("*.py"))
AGENT_FILES = [f for f in FILES if f.relative_to(SRC).parts[0] == "agents"]

NUMERIC = {"jax", "flax", "optax", "numpy"}
ANY = None

LAYERS: dict[str, tuple[set[str] | None, set[str] | None]] = {
    # area: (what it may import of ajax, what it may import of other packages)
    "__init__": (set(), set()),
    "core": (set(), NUMERIC),
    "networks": ({"core"}, NUMERIC),
    "buffers": ({"core"}, NUMERIC),
    "agents": ({"core", "networks", "buffers"}, NUMERIC),
    "extensions": ({"core", "networks", "buffers"}, NUMERIC),
    "environments": ({"core"}, ANY),
    "logging": ({"core"}, ANY),
    "training": ({"core", "networks", "buffers", "environments", "extensions", "agents", "logging"}, ANY),
    "probing": ({"core", "environments.base"}, ANY),
    "probing.commands": ({"core", "agents", "probing", "probing.suites"}, ANY),
    "probing.suites": ({"core", "networks", "buffers", "agents", "training", "probing"}, ANY),
    "cli": (ANY, ANY),
    "__main__": ({"cli"}, set()),
}

EXCEPTIONS = {
    # The public names' homes, for type checkers alone.
    ("__init__.py", "ajax"),
    # `agent.train(...)` reaches the driver when it is called, so that core loads no training code.
    ("core/agent.py", "ajax.training.driver"),
}

HEAVY = (
    "gymnasium",
    "gymnax",
    "brax",
    "mujoco",
    "matplotlib",
    "pandas",
    "orbax",
    "wandb",
    "tensorboardX",
    "torch",
    "minari",
    "scipy",
)
"""Packages that cost seconds to import: they load when they are used, never with the module that may use them."""

MAX_LINES = 500
MAX_AGENT_LINES = 250
MAX_FIELDS = 15
MAX_PARAMETERS = 8


@dataclass(frozen=True)
class Import:
    """One import of a module, by its full dotted name."""

    module: str
    line: int

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), filename=str(path))


def imports(tree: ast.AST, package: str) -> Iterator[Import]:
    """Every module that a tree imports, inside functions too; `package` resolves relative ones.

    `from ajax import core` and `from ajax.core import config` count as imports of the names too, so that neither
    spelling hides one.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
            yield Import(base, node.lineno)
            yield from (Import(f"{base}.{a.name}", node.lineno) for a in node.names if _is_module(f"{base}.{a.name}"))


def _is_module(name: str) -> bool:
    path = SRC.parent.joinpath(*name.split("."))
    return name.startswith("ajax.") and (path.with_suffix(".py").exists() or (path / "__init__.py").exists())


def faults(path: Path, tree: ast.AST) -> list[str]:
    """The imports of a file that its area does not allow, as sentences."""
    inside = path.relative_to(SRC)
    area = area_of(".".join(inside.with_suffix("").parts))
    allowed, third_party = LAYERS[area]
    package = ".".join(("ajax", *inside.parts[:-1]))
    found = []
    for item in imports(tree, package):
        if any(inside.as_posix() == file and _within(item.module, name) for file, name in EXCEPTIONS):
            continue
        if item.package == "ajax":
            inner = item.module.partition(".")[2]
            own = inner != "" and area_of(inner) == area and (area != "agents" or _same_agent(inside, item.module))
            known = inner == "" or own or allowed is ANY or any(_allows(row, inner) for row in allowed)
        else:
            known = third_party is ANY or item.package in third_party or item.package in sys.stdlib_module_names
        if not known:
            found.append(f"{inside}:{item.line} imports {item.module}, which {area} may not")
    return found


def area_of(name: str) -> str:
    """The area of a dotted name inside the package: the longest one that `LAYERS` has a row for, or its first part."""
    first, second = (*name.split(".")[:2], "")[:2]
    return f"{first}.{second}" if f"{first}.{second}" in LAYERS else first


def _allows(row: str, name: str) -> bool:
    """Whether a row's entry covers a module: it lies within, and in no area that has a row of its own."""
    return _within(name, row) and area_of(name) == area_of(row)


def _within(name: str, ancestor: str) -> bool:
    return name == ancestor or name.startswith(f"{ancestor}.")


def _same_agent(inside: Path, module: str) -> bool:
    """Whether an import within agents/ stays in the importing agent's own folder (the world models have one)."""
    return len(inside.parts) > 2 and _within(module, ".".join(("ajax", *inside.parts[:-1])))


def is_config(node: ast.ClassDef) -> bool:
    return any(isinstance(d, ast.Name) and d.id == "config" for d in node.decorator_list)


def fields(node: ast.ClassDef) -> int:
    """The number of fields that a configuration declares."""
    return sum(isinstance(s, ast.AnnAssign) and "ClassVar" not in ast.unparse(s.annotation) for s in node.body)


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of parameters of a function, `self` and `cls` not counted."""
    args = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([a for a in args if a.arg not in ("self", "cls")])


def _id(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def test_every_area_has_its_row():
    areas = {f.relative_to(SRC).parts[0].removesuffix(".py") for f in FILES}
    assert areas <= set(LAYERS), f"say in LAYERS what these may import: {sorted(areas - set(LAYERS))}"


@pytest.mark.parametrize("path", FILES, ids=_id)
def test_imports_follow_the_layers(path):
    assert not faults(path, parse(path))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/returns.py", "import scipy"),
        ("core/returns.py", "from ajax.networks import torsos"),
        ("core/returns.py", "def f():\n    from ajax.training import driver"),
        ("agents/ppo.py", "from ajax.agents.dqn import DQN"),
        ("agents/ppo.py", "from .dqn import DQN"),
        ("agents/ppo.py", "from ajax.training.driver import train"),
        ("agents/tdmpc2/agent.py", "from ajax.agents.sac import State"),
        ("extensions/expert.py", "from ajax.agents.sac import SAC"),
        ("training/driver.py", "import ajax.probing.spec"),
        ("probing/spec.py", "from ajax.environments.checker import check_env"),
        ("probing/suite.py", "from ajax.probing.suites import presets"),
        ("__init__.py", "import jax"),
    ],
)
def test_a_forbidden_import_is_found(file, source):
    assert len(faults(SRC / file, ast.parse(source))) >= 1


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("core/returns.py", "import math\nimport jax.numpy as jnp\nfrom ajax.core.records import Batch"),
        ("agents/tdmpc2/agent.py", "from ajax.agents.tdmpc2.model import Model\nfrom .plan import plan"),
        ("probing/spec.py", "from ajax.environments.base import Step"),
        ("probing/suites/presets.py", "from ajax.agents.dqn import DQN\nfrom ajax.probing.spec import Spec"),
    ],
)
def test_an_allowed_import_passes(file, source):
    assert not faults(SRC / file, ast.parse(source))


def test_files_stay_readable():
    long = {_id(f): n for f in FILES if (n := len(f.read_text().splitlines())) > MAX_LINES}
    assert not long, f"over {MAX_LINES} lines"
    long = {_id(f): n for f in AGENT_FILES if (n := len(f.read_text().splitlines())) > MAX_AGENT_LINES}
    assert not long, f"an agent's file has at most {MAX_AGENT_LINES} lines"


def test_configurations_stay_small():
    found = {
        f"{_id(f)}: {node.name}": fields(node)
        for f in FILES
        for node in ast.walk(parse(f))
        if isinstance(node, ast.ClassDef) and is_config(node)
    }
    assert "agents/ppo.py: PPO" in found
    wide = {name: n for name, n in found.items() if n > MAX_FIELDS}
    assert not wide, f"over {MAX_FIELDS} fields: group a family of options in a configuration of its own"


def test_agents_functions_take_few_parameters():
    wide = {
        f"{_id(f)}:{node.lineno} {node.name}": n
        for f in AGENT_FILES
        for node in ast.walk(parse(f))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (n := parameters(node)) > MAX_PARAMETERS
    }
    assert not wide, f"over {MAX_PARAMETERS} parameters"


def loaded_by(statement: str, suspects: tuple[str, ...]) -> list[str]:
    """Which of the `suspects` a fresh interpreter has loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*(m for m in {suspects!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=SRC.parent, timeout=120
    )
    return done.stdout.split()


def test_import_ajax_loads_nothing_heavy():
    agents = tuple(f"ajax.agents.{f.stem}" for f in AGENT_FILES)
    assert loaded_by("import ajax", ("jax", "flax", "optax", "numpy", *agents, *HEAVY)) == []


@pytest.mark.parametrize("statement", ["from ajax import *", "import ajax.cli", "import ajax.probing"])
def test_heavy_packages_load_only_when_used(statement):
    assert loaded_by(statement, HEAVY) == []
