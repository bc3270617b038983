"""Compiled programs: each is traced and compiled once in a process, and kept in the user's cache between processes.

A program is found by what it computes: its function, its static arguments, and the structure, shapes and dtypes of
the others. Configurations are pytrees whose numbers are leaves, so a run with another `gamma` finds the same program.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

CACHE_VARIABLE = "AJAX_COMPILE_CACHE"
"""Environment variable that names the folder of the compile cache; empty turns the cache off."""

KEPT = 64
"""Programs that a process keeps at hand. One takes 240 or so memory maps, of which Linux allows a process 65,530."""


@dataclasses.dataclass
class _Program:
    traced: jax.stages.Traced
    compiled: Future | None = None  # None until it is asked for


_programs: dict[Hashable, _Program] = {}  # the one that was asked for last stands last
_looking = threading.Lock()  # of two threads that want one program, one makes it
_compilers = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="ajax-compile")

QUICK: dict[str, Any] = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Compiler options for programs that run once or seldom: cheap to compile, slower to run."""


def numbers(tree: Any) -> Any:
    """Turn every Python number of a pytree into an array, so that equal structures meet equal programs."""
    return jax.tree.map(lambda x: x if isinstance(x, jax.Array | jax.ShapeDtypeStruct) else jnp.asarray(x), tree)


def shapes(function: Callable, *args: Any) -> Any:
    """The shapes and dtypes that `function(*args)` returns, without computing it."""
    with _looking:
        return _find(function, args, {}, ()).traced.out_info


def compile_soon(
    function: Callable, *args: Any, static: dict[str, Any], donate: tuple[int, ...] = (), quick: bool = False
) -> Future:
    """Start to compile `function(*args, **static)` in the background, or find it compiled.

    Args:
        function: a module's function, traced in the calling thread.
        args: arrays, or the `ShapeDtypeStruct`s of `shapes`.
        static: keyword arguments that are part of the program.
        donate: positions of arguments whose memory the outputs may take over.
        quick: spend less on compiling and more on running.

    Returns:
        A future of the compiled program, to be called with arrays in the place of `args`.
    """
    with _looking:
        program = _find(function, args, static, donate)
        if program.compiled is None:
            use_cache()
            options = QUICK if quick and jax.default_backend() == "cpu" else None
            program.compiled = _compilers.submit(program.traced.lower().compile, options)
        return program.compiled


def _find(function: Callable, args: tuple, static: dict[str, Any], donate: tuple[int, ...]) -> _Program:
    signature = jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x) if not _is_key(x) else str(x.dtype)), args)
    leaves, structure = jax.tree.flatten(signature, is_leaf=lambda x: isinstance(x, tuple) and len(x) == 2)
    identity = getattr(function, "func", function), tuple(sorted(static.items())), structure, tuple(map(str, leaves))
    if identity in _programs:
        _programs[identity] = _programs.pop(identity)
    else:
        jitted = jax.jit(functools.partial(function, **static), donate_argnums=donate)
        _programs[identity] = _Program(jitted.trace(*args))
        if len(_programs) > KEPT:
            del _programs[next(iter(_programs))]
    return _programs[identity]


def _is_key(x: Any) -> bool:
    return hasattr(x, "dtype") and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


@functools.cache
def use_cache() -> None:
    """Keep compiled programs in the user's cache folder, unless the user's JAX already has a folder of its own."""
    if jax.config.jax_compilation_cache_dir is not None:  # type: ignore[attr-defined]
        return
    folder = os.environ.get(CACHE_VARIABLE)
    if folder is None:
        import platformdirs

        folder = str(Path(platformdirs.user_cache_dir("ajax")) / "xla")
    if folder:
        jax.config.update("jax_compilation_cache_dir", folder)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.2)
