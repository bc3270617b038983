"""An environment of its own for every library, under `.venv-peers/`, installed from `benchmarks/requirements/`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / ".venv-peers"


@dataclass(frozen=True)
class Library:
    """A library that is measured.

    Attributes:
        name: what tables call it.
        script: module that takes its measurements; of d3rlpy, that trains its agents for the learning checks.
        requirements: name of its requirements file and environment; None: the environment that runs this.
        python: the Python it needs, "3.12"; None: the one that runs this.
        seed_axis: whether it trains several seeds at once.
        measurements: those it can take; None: all but those it `lacks`.
        lacks: measurements of agents that it doesn't have.
    """

    name: str
    script: str
    requirements: str | None = None
    python: str | None = None
    seed_axis: bool = True
    measurements: tuple[str, ...] | None = None
    lacks: tuple[str, ...] = ()

    def takes(self, measurement: str, seeds: int) -> bool:
        """Whether it can take a measurement with so many seeds."""
        able = measurement not in self.lacks and (self.measurements is None or measurement in self.measurements)
        return able and (seeds == 1 or self.seed_axis)


LIBRARIES = (
    Library("Ajax", "benchmarks.peers.ajax"),
    Library("rejax", "benchmarks.peers.rejax", "rejax", lacks=("redq", "crossq")),
    Library("ajax-rl", "benchmarks.peers.ajax_rl", "ajax-rl", python="3.12", lacks=("pqn", "crossq")),
    Library("SB3", "benchmarks.peers.sb3", "sb3", seed_axis=False, lacks=("pqn", "redq", "crossq")),
    Library("SBX", "benchmarks.peers.sbx", "sb3", seed_axis=False, lacks=("pqn", "redq")),
    Library("d3rlpy", "benchmarks.peers.d3rlpy", "d3rlpy", seed_axis=False, measurements=()),
    Library("limit", "benchmarks.limit", seed_axis=False, lacks=("newcomer",)),
)
"""In the order in which they are measured. The last is JAX alone: what no library in JAX can be faster than."""


def install(library: Library) -> Path | None:
    """Create a library's environment unless it stands already; returns its Python, or None if none suits."""
    if library.requirements is None:
        return Path(sys.executable)
    base = _python(library.python)
    if base is None:
        print(f"{library.name} is left out: it needs Python {library.python}, and there is none on PATH or in pyenv.")
        return None
    requirements = ROOT / "benchmarks" / "requirements" / f"{library.requirements}.txt"
    folder = FOLDER / library.requirements
    python, stamp = folder / "bin" / "python", folder / "installed"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Installing {library.name} into {folder} ...", flush=True)
        subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
        # every package is listed; d3rlpy asks for an older Gymnasium than it needs
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", requirements], check=True)
        stamp.write_text(wanted)
    return python


def versions(python: Path) -> dict[str, str]:
    """Versions of what is installed beside a Python."""
    names = ("jax", "flax", "optax", "gymnax", "gymnasium", "torch", "numpy", "rejax", "ajax-rl", "ajax-agents",
             "stable-baselines3", "sbx-rl")  # fmt: skip
    code = (
        "import importlib.metadata as m, json, sys, platform\n"
        "found = {d.metadata['Name'].lower().replace('_', '-'): d.version for d in m.distributions()}\n"
        "print(json.dumps({'python': platform.python_version()} | {n: found[n] for n in sys.argv[1:] if n in found}))"
    )
    out = subprocess.run([python, "-c", code, *names], capture_output=True, text=True, check=True).stdout
    return json.loads(out)


def _python(version: str | None) -> str | None:
    if version is None:
        return sys.executable
    return next((path for path in _candidates(version) if _is(path, version)), None)


def _candidates(version: str) -> Iterator[str]:
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield on_path
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    yield from (str(path) for path in sorted(pyenv.glob(f"versions/{version}.*/bin/python"), reverse=True))


def _is(path: str, version: str) -> bool:
    """Whether a path is that Python and runs (pyenv leaves stubs on PATH that don't)."""
    code = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    result = subprocess.run([path, "-c", code], capture_output=True, text=True)
    return result.returncode == 0 and result.stdout.strip() == version
