"""Programs are compiled once, and the latest of them are kept."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import jax.numpy as jnp

from ajax.training import programs


def double(x):
    return 2 * x


def test_a_program_is_found_again_whatever_its_numbers():
    first = programs.compile_soon(double, jnp.arange(3.0), static={})
    assert programs.compile_soon(double, jnp.ones(3), static={}) is first
    assert programs.compile_soon(double, jnp.ones(4), static={}) is not first
    assert first.result()(jnp.arange(3.0)).tolist() == [0.0, 2.0, 4.0]


def test_threads_that_want_one_program_get_one():
    traced, ready = [], Barrier(4)

    def triple(x):
        traced.append(x)
        return 3 * x

    def ask(_):
        ready.wait()
        return programs.compile_soon(triple, jnp.arange(3.0), static={})

    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(ask, range(4)))) == 1
    assert len(traced) == 1


def test_what_was_asked_for_longest_ago_is_let_go(monkeypatch):
    monkeypatch.setattr(programs, "_programs", {})
    monkeypatch.setattr(programs, "KEPT", 2)
    one = programs.compile_soon(double, jnp.ones(1), static={})
    two = programs.compile_soon(double, jnp.ones(2), static={})
    assert programs.compile_soon(double, jnp.ones(1), static={}) is one
    programs.compile_soon(double, jnp.ones(3), static={})
    assert programs.compile_soon(double, jnp.ones(1), static={}) is one
    assert programs.compile_soon(double, jnp.ones(2), static={}) is not two
