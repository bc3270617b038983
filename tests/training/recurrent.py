"""Agents with a memory, small enough for fast tests, and what they should remember."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np

from ajax import GRU, LSTM, Mamba, Replay, Rollout, Transformer
from ajax.agents import get
from ajax.core.records import Inputs
from ajax.networks.memory import Memory
from ajax.training import memory
from tests.training.tiny import CONTINUOUS, DISCRETE, TORSO

KINDS: dict[str, Memory] = {
    "GRU": GRU(size=4, length=2),
    "LSTM": LSTM(size=4, length=2),
    "Transformer": Transformer(size=4, heads=2, window=3, length=2),
    "Mamba": Mamba(size=4, state=3, length=2),
}

LOOPS: dict[str, dict[str, Any]] = {
    "on_policy": {"rollout": Rollout(n_envs=2, n_steps=4, n_epochs=1, n_minibatches=2)},
    "off_policy": {"replay": Replay(capacity=64, batch_size=4, warmup=32, n_envs=2)},
}


def recurrent(name: str, kind: str = "GRU", burn_in: int = 0) -> tuple[Any, Any]:
    """An agent by name with a memory of a kind, and an environment that it acts in."""
    agent = get(name)()
    torso = dataclasses.replace(TORSO, memory=dataclasses.replace(KINDS[kind], burn_in=burn_in))
    env = DISCRETE if "discrete" in agent.acts else CONTINUOUS
    return dataclasses.replace(agent, torso=torso, **LOOPS[agent.loop]), env


def assert_remembered(agent: Any, state: Any, rows: Any, carries: Any) -> None:
    """Each of the carries (time, n_envs, ...) is what the episode so far leaves behind, of every network.

    Args:
        agent, state: whose networks they are.
        rows: the transitions (time, n_envs, ...), as they happened.
        carries: what was remembered after the observation of each.
    """
    ended = np.maximum(rows.terminated, rows.truncated) > 0
    assert ended[:-1].any() and carries, "some episode begins in the middle, and something is remembered"
    step = jax.jit(lambda obs, carry: memory.remember(agent, state, Inputs(obs, None, None, carry)))
    for env in range(ended.shape[1]):
        expected = nothing = memory.nothing(agent, state, 1)
        for t in range(len(ended)):
            expected = step(np.asarray(rows.now.obs)[t, env][None], expected)
            found = jax.tree.map(lambda x, t=t, env=env: x[t, env][None], carries)
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), found, expected)
            expected = nothing if ended[t, env] else expected
