"""The rules of `tests/conftest.py` bite: run on small test files of their own."""

from __future__ import annotations

import os
from pathlib import Path

import jax.numpy as jnp
import pytest

from tests.conftest import shards

ROOT = Path(__file__).parents[1]
pytest_plugins = ["pytester"]

TRAINS = """
    import pytest
    from ajax import PPO, Rollout

    PPO_64 = PPO(rollout=Rollout(n_envs=1, n_steps=32, n_epochs=64, n_minibatches=1))  # 64 gradient steps a rollout

    def test_within():
        PPO_64.train("CartPole-v1", steps=64, episodes=1, progress=False)

    def test_beyond():
        PPO_64.train("CartPole-v1", steps=96, episodes=1, progress=False)

    @pytest.mark.slow
    def test_slow():
        PPO_64.train("CartPole-v1", steps=96, episodes=1, progress=False)
"""

TIMED = """
    import pytest

    @pytest.mark.slow
    @pytest.mark.parametrize("i", range(6))
    def test_long(i):
        pass

    def test_quick():
        pass
"""


def test_a_fast_test_may_take_128_gradient_steps(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makeini("[pytest]\nmarkers = slow: trains")
    pytester.makepyfile(test_it=TRAINS)
    # A process of its own: in this one the budget of this very test would count the steps too.
    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*192 gradient steps in a fast test, which may take 128*"])


def test_a_shard_runs_its_share_and_durations_are_kept_where_asked(pytester, monkeypatch):
    from tests import conftest

    monkeypatch.setattr(conftest, "DURATIONS", pytester.path / ".durations")
    pytester.makeini("[pytest]\nmarkers = slow: trains")
    pytester.makepyfile(test_it=TIMED)
    outcomes = []
    for shard in ("0/3", "1/3", "2/3"):
        monkeypatch.setenv("AJAX_TEST_SHARD", shard)
        result = pytester.runpytest_inprocess("-p", "tests.conftest", "-p", "no:cacheprovider", "-m", "slow")
        outcomes.append(result.parseoutcomes()["passed"])
    assert outcomes == [2, 2, 2] and conftest.durations() == {}
    monkeypatch.delenv("AJAX_TEST_SHARD")
    monkeypatch.setenv("AJAX_WRITE_DURATIONS", "1")
    pytester.runpytest_inprocess("-p", "tests.conftest", "-p", "no:cacheprovider")
    assert sorted(conftest.durations()) == [f"test_it.py::test_long[{i}]" for i in range(6)]


def test_shards_hold_every_test_once_and_keep_a_case_together():
    names = [f"tests/probing/test_chains.py::test_{verb}[p{i}-DQN]" for verb in ("learns", "ends") for i in range(40)]
    of = shards(names, 6, {})
    assert sorted(of) == sorted(names) and set(of.values()) == set(range(6))
    assert [of[name] for name in names[:40]] == [of[name] for name in names[40:]]
    assert of == shards(reversed(names), 6, {})


def test_shards_are_balanced_by_seconds_and_an_unknown_test_counts_one():
    names = [f"tests/test_a.py::test_{i}" for i in range(12)]
    of = shards(names, 3, {names[0]: 6.0, names[1]: 4.0, names[2]: 3.0})
    seconds = [sum({0: 6, 1: 4, 2: 3}.get(i, 1) for i in range(12) if of[names[i]] == shard) for shard in range(3)]
    assert sorted(seconds) == [7, 7, 8]


def test_a_column_against_a_row_is_an_error():
    with pytest.raises(ValueError, match="rank_promotion"):
        _ = jnp.ones(3) - jnp.ones((3, 1))
