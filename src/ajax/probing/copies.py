"""Scratch copies of the repository, in which tests run on a changed source.

Importing JAX and pytest costs more than most tests. So each copy has a process that has imported them, and nothing of
Ajax: every run of tests is a fork of it, which imports the copy as it then is.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from typing import Self

PACKAGE = Path("src/ajax")  # what is changed lies under it
SKIPPED = shutil.ignore_patterns(
    ".git", "__pycache__", ".venv*", "*.egg-info", ".hypothesis", ".*_cache", "runs", "results", "site", "*.pyc"
)
SECONDS = 900.0  # after which a run of tests is stopped

_FORKING = """
import json, os, sys, time, warnings
warnings.filterwarnings("ignore", message=".*fork")
import jax, optax, flax.linen, pytest
for line in sys.stdin:
    request = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1), os.dup2(output, 2)
        os._exit(int(pytest.main(request["arguments"])))
    late, done = time.monotonic() + request["seconds"], 0
    while not done and time.monotonic() < late:
        done, status = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    if not done:
        os.killpg(child, 9)
        os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status) if done else "late", flush=True)
"""


class Copy:
    """A copy of the repository at `root` in `folder`, less what tests don't need. A context manager.

    Args:
        root: the repository.
        folder: where the copy lies; what lay there is replaced.
        cache: folder of a compile cache. Programs are found there by what they compute, so that a change of source
            never meets the program of another. None: no cache.
    """

    def __init__(self, root: Path, folder: Path, cache: Path | None = None):
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(root, folder, ignore=SKIPPED)
        self.folder, self.cache = folder.resolve(), cache
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the files stay."""
        if self._process is not None:
            self._process.communicate()  # it ends with its input
            self._process = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables under which Python imports the copy, on the CPU."""
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        cached = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
        if self.cache is not None:
            cached = {"JAX_ENABLE_COMPILATION_CACHE": "true", "JAX_COMPILATION_CACHE_DIR": str(self.cache)}
        return {
            **kept,
            **cached,
            "PYTHONPATH": str(self.folder / PACKAGE.parent),
            "JAX_PLATFORMS": "cpu",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def check_import(self) -> None:
        """Check that Python imports the copy.

        Raises:
            RuntimeError: it imports another one, or none.
        """
        command = [sys.executable, "-c", f"import {PACKAGE.name}; print({PACKAGE.name}.__file__)"]
        found = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        if not Path(found.stdout.strip() or "/").is_relative_to(self.folder):
            what = found.stdout.strip() or found.stderr.strip()
            raise RuntimeError(f"Python imports {what}, not the copy in {self.folder}")

    def read(self, path: str) -> str:
        """Return the text of a file under src/ajax."""
        return (self.folder / PACKAGE / path).read_text()

    def write(self, path: str, text: str) -> None:
        """Replace the text of a file under src/ajax, and forget its byte code: a clock's second may not tell them."""
        file = self.folder / PACKAGE / path
        file.write_text(text)
        Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)

    def run(
        self, nodes: Sequence[str], seconds: float = SECONDS, first: bool = False
    ) -> dict[str, tuple[bool, str]] | None:
        """Run pytest nodes; return by node whether it failed and its message, or None past the time.

        Args:
            nodes: relative to the repository.
            seconds: after which the run is stopped.
            first: whether to stop at the first node that fails.

        Raises:
            RuntimeError: pytest finds none of the nodes.
        """
        written, output = self.folder / "faults.xml", self.folder / "faults.txt"
        written.unlink(missing_ok=True)
        arguments = ["-q", "-p", "no:cacheprovider", f"--junitxml={written}", *["-x"] * first, *nodes]
        code = self._fork({"arguments": arguments, "seconds": seconds, "output": str(output)})
        if code == "late":
            return None
        outcomes = {}
        if written.exists():
            for case in ET.parse(written).getroot().iter("testcase"):
                bad = [child for child in case if child.tag in ("failure", "error")]
                node = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
                outcomes[node] = (bool(bad), "\n".join(child.get("message", "") for child in bad))
        if code not in ("0", "1") and not any(bad for bad, _ in outcomes.values()):
            tail = "\n".join(output.read_text().splitlines()[-5:])
            raise RuntimeError(f"pytest ran none of {', '.join(nodes)}:\n{tail}")
        return outcomes

    def _fork(self, request: dict) -> str:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _FORKING],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self._process.stdin is not None and self._process.stdout is not None  # both are pipes
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()
