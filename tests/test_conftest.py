"""The rules of `tests/conftest.py` bite: run on small test files of their own."""

from __future__ import annotations

import os
from pathlib import Path

import jax.numpy as jnp
import pytest

from tests.conftest import shard_of

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


def test_a_fast_test_may_take_128_gradient_steps(pytester, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makeini("[pytest]\nmarkers = slow: trains")
    pytester.makepyfile(test_it=TRAINS)
    # A process of its own: in this one the budget of this very test would count the steps too.
    result = pytester.runpytest_subprocess("-p", "tests.conftest", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*192 gradient steps in a fast test, which may take 128*"])


def test_shards_hold_every_test_once_and_keep_a_case_together():
    names = [f"tests/probing/test_chains.py::test_{verb}[p{i}-DQN]" for verb in ("learns", "ends") for i in range(40)]
    shards = [shard_of(name, 6) for name in names]
    assert set(shards) == set(range(6))
    assert shards[:40] == shards[40:]


def test_a_column_against_a_row_is_an_error():
    with pytest.raises(ValueError, match="rank_promotion"):
        _ = jnp.ones(3) - jnp.ones((3, 1))
