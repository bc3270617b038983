"""Checkpoints: one checksummed file each, written as a whole or not at all, read back bit for bit.

A file is a prelude of fixed size, a JSON header (the user's `meta`, and path, dtype and shape of every leaf), then
the leaves' bytes in C order. The prelude holds the magic word, the format number, the sizes and
the SHA-256 of all else. Nothing is pickled, so that reading a stranger's checkpoint runs no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
import struct
import warnings
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ajax.core.errors import CheckpointError
from ajax.logging.files import TEMPORARY, replacing, sync_folder

MAGIC = b"AJAXCKPT"
FORMAT = 1
_SIZES = struct.Struct("<8sIQQ")  # magic word, format, bytes of the header, bytes of the file
_PRELUDE_BYTES = _SIZES.size + hashlib.sha256().digest_size
_NAME = re.compile(r"step_(\d{12,})\.ckpt")


class _Leaf(NamedTuple):
    """One array of the file. `key` names the generator whose key data it is, or is None for a plain array."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    key: str | None

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * jnp.dtype(self.dtype).itemsize


def save(folder: str | Path, tree: Any, meta: dict[str, Any], *, step: int, keep: int = 2) -> Path:
    """Write `folder/step_<step>.ckpt`, verify it in place, then delete all but the last `keep`.

    Args:
        folder: holds one run's checkpoints (`checkpoints/` of its results folder); created if need be.
        tree: pytree of arrays, Python numbers and typed random keys. Arrays keep dtype and shape; a weak type is lost.
        meta: what JSON holds (tuples come back as lists). `meta["agent"]` and `meta["env"]`, where they are strings,
            are named when the checkpoint doesn't fit.
        step: environment steps so far; orders the checkpoints.
        keep: checkpoints to leave in the folder, at least 1; the new one is always among them.

    Returns:
        The path of the new file.

    Raises:
        CheckpointError: it can't be written (disk full, read-only), or a leaf isn't an array. Older ones are untouched.
        TypeError: `meta` is not JSON.
    """
    folder = Path(folder)
    path = folder / f"step_{step:012d}.ckpt"
    leaves = [_pack(name, leaf) for name, leaf in _named_leaves(tree)]
    header = json.dumps({"meta": meta, "leaves": [leaf for leaf, _ in leaves]}).encode()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for leftover in folder.glob(f"*{TEMPORARY}"):
            leftover.unlink()
        with replacing(path) as file:
            _write(file, header, leaves)
    except OSError as error:
        raise CheckpointError(
            f"can't write the checkpoint {path}: {error.strerror}. Older checkpoints are untouched;"
            " make room, or choose a folder that can be written."
        ) from error
    _require_valid(path)
    others = [other for other in checkpoints(folder) if other != path]
    with contextlib.suppress(OSError):  # one checkpoint too many does no harm
        for old in others[: max(0, len(others) - (keep - 1))]:
            old.unlink()
        sync_folder(folder)
    return path


def load(source: str | Path, like: Any = None) -> tuple[Any, dict[str, Any]]:
    """Read a checkpoint.

    Args:
        source: a checkpoint, or a folder of checkpoints, whose latest valid checkpoint is taken.
        like: pytree of the structure, shapes and dtypes to expect; `jax.ShapeDtypeStruct`s will do.

    Returns:
        `(tree, meta)`. The tree has the structure of `like`: JAX arrays where it has JAX arrays or `ShapeDtypeStruct`s,
        NumPy arrays and Python numbers where it has those. Without `like`: a dict from leaf path to array.

    Raises:
        CheckpointError: it is missing, cut short, corrupt, foreign, or differs from `like`; says in what.
    """
    source = Path(source)
    if source.is_file():
        _require_valid(source)
    else:
        source = latest(source)
    try:
        with open(source, "rb") as file:
            meta, arrays = _read(file)
    except OSError as error:
        raise CheckpointError(f"can't read the checkpoint {source}: {error.strerror}.") from error
    if like is None:
        return {leaf.path: _unpack(leaf, array) for leaf, array in arrays.items()}, meta
    return _fit(arrays, like, meta), meta


def checkpoints(folder: str | Path) -> list[Path]:
    """Return the checkpoints in a folder, oldest first, valid or not."""
    found = [path for path in Path(folder).glob("step_*.ckpt") if _NAME.fullmatch(path.name)]
    return sorted(found, key=lambda path: int(path.stem.removeprefix("step_")))


def latest(folder: str | Path) -> Path:
    """Return the newest valid checkpoint in a folder; warns of each newer one that can't be used.

    Raises:
        CheckpointError: there is none.
    """
    faults = []
    for path in reversed(checkpoints(folder)):
        fault = _fault(path)
        if fault:
            faults.append(fault)
            continue
        for fault in faults:
            warnings.warn(f"{fault} Going on from {path.name}.")
        return path
    if faults:
        raise CheckpointError(f"no checkpoint in {folder} can be used: {' '.join(faults)}")
    raise CheckpointError(f"there is no checkpoint in {folder}.")


def _named_leaves(tree: Any) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_flatten_with_path(tree)[0]
    named = [(jax.tree_util.keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves]
    if len({name for name, _ in named}) < len(named):
        names = [name for name, _ in named]
        twice = next(name for name in names if names.count(name) > 1)
        raise CheckpointError(f"two leaves of the tree have the path {twice!r}; rename a field or key.")
    return named


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _pack(name: str, leaf: Any) -> tuple[_Leaf, np.ndarray]:
    generator = None
    if _is_key(leaf):
        generator, leaf = str(jax.random.key_impl(leaf)), jax.random.key_data(leaf)
    array = np.asarray(leaf)
    if array.dtype.kind in "OSUMm" or array.dtype.names:
        raise CheckpointError(f"{name} is {type(leaf).__name__} of dtype {array.dtype}; a checkpoint holds numbers.")
    dtype = array.dtype.name
    return _Leaf(name, dtype, array.shape, generator), np.asarray(array, dtype=jnp.dtype(dtype), order="C")


def _unpack(leaf: _Leaf, array: np.ndarray) -> np.ndarray | jax.Array:
    return array if leaf.key is None else jax.random.wrap_key_data(jnp.asarray(array), impl=leaf.key)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _write(file: BinaryIO, header: bytes, leaves: list[tuple[_Leaf, np.ndarray]]) -> None:
    total = _PRELUDE_BYTES + len(header) + sum(leaf.n_bytes for leaf, _ in leaves)
    sizes = _SIZES.pack(MAGIC, FORMAT, len(header), total)
    checksum = hashlib.sha256(sizes)
    file.write(bytes(_PRELUDE_BYTES))
    for block in (memoryview(header), *(_bytes(array) for _, array in leaves)):
        checksum.update(block)
        file.write(block)
    file.seek(0)
    file.write(sizes + checksum.digest())


def _fault(path: Path) -> str | None:
    """Return the sentence that says why a file can't be used, or None if it is whole and ours."""
    try:
        with open(path, "rb") as file:
            prelude = file.read(_PRELUDE_BYTES)
            sizes, digest = prelude[: _SIZES.size], prelude[_SIZES.size :]
            checksum = hashlib.file_digest(file, lambda: hashlib.sha256(sizes)).digest()
            n_bytes = file.tell()
    except OSError as error:
        return f"can't read the checkpoint {path}: {error.strerror}."
    if not MAGIC.startswith(prelude[: len(MAGIC)]):
        return f"{path} is not an Ajax checkpoint."
    if len(prelude) < _PRELUDE_BYTES:
        return f"{path} is cut short: it ends after {n_bytes} bytes."
    _, format_number, _, total = _SIZES.unpack(sizes)
    if format_number != FORMAT:
        return f"{path} is of format {format_number}; this version of Ajax reads format {FORMAT}."
    if n_bytes < total:
        return f"{path} is cut short: {n_bytes} of {total} bytes are there."
    return None if checksum == digest else f"{path} is corrupt: its content doesn't match its checksum."


def _require_valid(path: Path) -> None:
    fault = _fault(path)
    if fault:
        raise CheckpointError(fault)


def _read(file: BinaryIO) -> tuple[dict[str, Any], dict[_Leaf, np.ndarray]]:
    """Return meta and arrays of a verified file."""
    _, _, header_bytes, _ = _SIZES.unpack(file.read(_PRELUDE_BYTES)[: _SIZES.size])
    header = json.loads(file.read(header_bytes))
    arrays = {}
    for path, dtype, shape, key in header["leaves"]:
        array = np.empty(shape, jnp.dtype(dtype))
        file.readinto(_bytes(array))  # type: ignore[attr-defined]
        arrays[_Leaf(path, dtype, tuple(shape), key)] = array
    return header["meta"], arrays


def _fit(arrays: dict[_Leaf, np.ndarray], like: Any, meta: dict[str, Any]) -> Any:
    there = {leaf.path: _unpack(leaf, array) for leaf, array in arrays.items()}
    here = dict(_named_leaves(like))
    for name in there:
        if name not in here:
            raise CheckpointError(f"{name} is in the file, but not here{_origin(meta)}.")
    for name, expected in here.items():
        if name not in there:
            raise CheckpointError(f"{name} is here, but not in the file{_origin(meta)}.")
        found, wanted = there[name], expected if _is_array(expected) else np.asarray(expected)
        if found.shape != wanted.shape:
            raise CheckpointError(f"{name} is {found.shape} in the file, {wanted.shape} here{_origin(meta)}.")
        if found.dtype != wanted.dtype:
            raise CheckpointError(f"{name} is {found.dtype} in the file, {wanted.dtype} here{_origin(meta)}.")
    return jax.tree.unflatten(jax.tree.structure(like), [_like(there[name], here[name]) for name in here])


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | np.ndarray)


def _like(value: np.ndarray | jax.Array, expected: Any) -> Any:
    if isinstance(expected, np.ndarray):
        return value
    return jnp.asarray(value) if _is_array(expected) else value.item()


def _origin(meta: dict[str, Any]) -> str:
    agent, env = meta.get("agent"), meta.get("env")
    who = f"; the run trained {agent}" if isinstance(agent, str) else "; the run was trained" if env else ""
    return who + (f" on {env}" if isinstance(env, str) else "")
