"""The results folder of a run: `config.json`, `progress.csv`, `curve.png`, `checkpoints/`, `run.log`."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import warnings
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TextIO

from ajax.core.errors import CheckpointError, FolderInUse
from ajax.logging.files import TEMPORARY, replacing
from ajax.logging.table import Row, columns, read_csv, to_csv

_LOCK = ".lock"
_BEFORE_A_RUN = {_LOCK, "run.log", "config.json" + TEMPORARY}  # what a run killed at its very start leaves


class RunFolder:
    """A results folder that this process alone writes to, until `close` or the end of the process.

    Once a run is going, a write that fails (disk full) doesn't stop it: the failure is warned of once, kept in
    `problems`, and `progress.csv` is written anew as soon as there is room.

        with RunFolder("runs/x") as folder:
            folder.write_config({"agent": "PPO"})
            folder.append({"step": 1000, "seed": 0, "return": 21.5})

    Args:
        path: the folder; it is created with its parents.
        resume: open the folder of an existing run. Otherwise the folder must be new or empty.

    Raises:
        FolderInUse: a live process writes to it, or it holds another run or other files.
        CheckpointError: it can't be created or written, or there is no run in it to resume.
    """

    def __init__(self, path: str | Path, *, resume: bool = False):
        self.path = Path(path)
        self.config_path = self.path / "config.json"
        self.progress_path = self.path / "progress.csv"
        self.curve_path = self.path / "curve.png"
        self.log_path = self.path / "run.log"
        self.problems: list[str] = []
        if resume and not self.config_path.is_file():
            raise CheckpointError(f"there is no run in {self.path}: it has no config.json.")
        if not resume:
            _refuse_other_files(self.path)
        self._lock = _acquire(self.path)
        if not resume and self.config_path.exists():
            self.close()
            raise FolderInUse(
                f"{self.path} holds another run; go on with it by `ajax resume {self.path}`, or choose another --out."
            )
        self._rows = read_csv(self.progress_path)
        self._columns = columns(self._rows)
        self._on_disk = False  # whether progress.csv holds the rows so far, so that a line may be added

    @property
    def rows(self) -> list[Row]:
        """The rows of `progress.csv`, in order."""
        return list(self._rows)

    def write_config(self, config: dict[str, Any]) -> None:
        """Write `config.json` as a whole.

        Raises:
            CheckpointError: it can't be written. Unlike later failures this one stops the run: nothing is lost yet,
                and a run without its configuration couldn't be resumed.
        """
        try:
            _replace(self.config_path, json.dumps(config, indent=2) + "\n")
        except OSError as error:
            raise CheckpointError(f"can't write {self.config_path}: {error.strerror}.") from error

    def append(self, row: Row) -> None:
        """Add a row to `progress.csv`; a column not seen before is added to the right, empty in earlier rows."""
        self._rows.append(row)
        if self._on_disk and row.keys() <= set(self._columns):
            text = to_csv([row], self._columns, header=False)
            self._on_disk = self._attempt(_add, self.progress_path, text)
        else:
            self.rewrite(self._rows)

    def rewrite(self, rows: Iterable[Row]) -> None:
        """Replace all of `progress.csv`, as when a run resumes from a checkpoint older than its last rows."""
        self._rows = list(rows)
        self._columns = columns(self._rows)
        text = to_csv(self._rows, self._columns, header=True)
        self._on_disk = self._attempt(_replace, self.progress_path, text)

    def log(self, text: str) -> None:
        """Add a line to `run.log`, with the time (UTC)."""
        self._attempt(_add, self.log_path, f"{_now()} {text}\n")

    def close(self) -> None:
        """Let another process use the folder."""
        if not self._lock.closed:
            fcntl.flock(self._lock, fcntl.LOCK_UN)  # closing alone would not do while a forked child has the file open
            self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _attempt(self, write: Callable[[Path, str], None], path: Path, text: str) -> bool:
        """Write text to a file and return whether that worked; report each kind of failure once."""
        try:
            write(path, text)
        except OSError as error:
            problem = f"can't write {path}: {error.strerror}. The run goes on."
            if problem not in self.problems:
                self.problems.append(problem)
                warnings.warn(problem)
            return False
        return True


def read_config(folder: str | Path) -> dict[str, Any]:
    """Return what the `config.json` of a results folder holds.

    Raises:
        CheckpointError: there is none, or it can't be read.
    """
    path = Path(folder) / "config.json"
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CheckpointError(f"there is no run in {folder}: can't read {path} ({error}).") from error


def _refuse_other_files(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise FolderInUse(f"{path} is a file; choose another --out.")
    names = set(os.listdir(path)) - _BEFORE_A_RUN if path.exists() else set()
    if names and "config.json" not in names:
        raise FolderInUse(f"{path} holds other files ({', '.join(sorted(names)[:3])}); choose another --out.")


def _acquire(path: Path) -> TextIO:
    """Create the folder and lock it. The system drops the lock when the process ends, however it ends."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = open(path / _LOCK, "a+")  # noqa: SIM115 (stays open: closing it would drop the lock)
    except OSError as error:
        raise CheckpointError(
            f"can't write the results folder {path}: {error.strerror}; choose another --out."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip()
        lock.close()
        raise FolderInUse(f"{path} is in use by {holder}; wait for it to end, or choose another --out.") from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()} since {_now()}")
    lock.flush()
    return lock


def _replace(path: Path, text: str) -> None:
    with replacing(path) as file:
        file.write(text.encode())


def _add(path: Path, text: str) -> None:
    with open(path, "ab") as file:
        file.write(text.encode())


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
