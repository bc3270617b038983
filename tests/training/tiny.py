"""Agents and a way to train them small enough for fast tests; and what tells two trained runs apart."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ajax import DQN, PPO, SAC, TD3, UDRL, Episodes, Linear, Replay, Result, Rollout, Torso
from tests.environments.identity_env import IdentityEnv

TORSO = Torso(widths=(8,))
REPLAY = Replay(capacity=32, batch_size=4, warmup=8, n_envs=2)

TINY_PPO = PPO(
    torso=TORSO,
    learning_rate=Linear(start=1e-2, end=0.0),
    rollout=Rollout(n_envs=2, n_steps=4, n_epochs=1, n_minibatches=2),
)
"""8 environment steps and 2 gradient steps a tick."""
TINY_DQN = DQN(torso=TORSO, n_step=2, epsilon=Linear(start=1.0, end=0.1), target_period=3, replay=REPLAY)
"""2 environment steps and 1 gradient step a tick, after 4 ticks of warm-up; so the next two."""
TINY_SAC = SAC(torso=TORSO, replay=REPLAY)
TINY_TD3 = TD3(torso=TORSO, replay=REPLAY)
TINY_UDRL = UDRL(
    torso=TORSO,
    learning_rate=Linear(start=1e-2, end=0.0),
    replay=Episodes(capacity=8, max_length=500, last_few=3, batch_size=4, warmup=8, n_envs=2, steps=4, updates=2),
)
"""8 environment steps and 2 gradient steps a tick, after a tick of warm-up."""

DISCRETE, CONTINUOUS = IdentityEnv(), IdentityEnv(continuous=True)

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "PPO": (TINY_PPO, DISCRETE, {"normalize_observations": True, "normalize_rewards": True}),
    "DQN": (TINY_DQN, DISCRETE, {}),
    "SAC": (TINY_SAC, CONTINUOUS, {"normalize_observations": True}),
    "TD3": (TINY_TD3, CONTINUOUS, {}),
    "UDRL": (TINY_UDRL, DISCRETE, {"normalize_observations": True, "normalize_rewards": True}),
}
"""Name: agent, environment, options of training. Between them every loop, schedules, n-step windows, normalization."""


def train(agent: Any, env: Any, steps: int = 48, **options: Any) -> Result:
    """Train without a progress bar, with few and short evaluations."""
    return agent.train(env, steps, **{"evaluations": 2, "episodes": 2, "progress": False, **options})


def leaves(result: Result) -> dict[str, np.ndarray]:
    """Every array of every run, by path."""
    found = jax.tree_util.tree_flatten_with_path(result.session.lanes.tree())[0]
    return {jax.tree_util.keystr(path): plain(leaf) for path, leaf in found}


def plain(leaf: Any) -> np.ndarray:
    """A NumPy array of a leaf, be it a random key."""
    is_key = isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return np.asarray(jax.random.key_data(leaf) if is_key else leaf)


def assert_same_runs(a: Result, b: Result) -> None:
    """The runs of two results are equal bit for bit."""
    first, second = leaves(a), leaves(b)
    assert first.keys() == second.keys()
    different = [path for path in first if not np.array_equal(first[path], second[path], equal_nan=True)]
    assert different == []


def assert_same_history(a: Result, b: Result) -> None:
    """The curves of two results are equal bit for bit, apart from the seconds."""
    first, second = ([{k: v for k, v in row.items() if k != "seconds"} for row in r.rows()] for r in (a, b))
    np.testing.assert_equal(first, second)
