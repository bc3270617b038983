"""What other libraries' agents are probed with: small and fast, frozen behind `DIGEST`."""

from __future__ import annotations

import hashlib
from typing import Any

from ajax.probing.baselines import BaselinesSubject, Decay

DECAY = Decay(3e-3, 1e-5)  # what is read in the end should have settled
N_ENVS = 4
REPLAY: dict[str, Any] = {
    "gamma": 0.7,
    "buffer_size": 4_000,
    "learning_starts": 200,
    "batch_size": 64,
    "train_freq": 1,
    "gradient_steps": 1,
}

SETTINGS: dict[str, dict[str, Any]] = {
    "DQN": {
        **REPLAY,
        "learning_rate": 3e-3,
        "target_update_interval": 80,
        "exploration_initial_eps": 0.5,
        "exploration_final_eps": 0.5,
    },
    "PPO": {"gamma": 0.7, "learning_rate": 3e-3, "n_steps": 32, "batch_size": 32, "n_epochs": 4},
    "SAC": {**REPLAY, "tau": 0.05, "learning_rate": DECAY, "ent_coef": 0.2},
    "TD3": {**REPLAY, "tau": 0.05, "learning_rate": DECAY, "learning_starts": 400, "gradient_steps": 4},
}
"""Arguments of the agents' constructors, the same in both libraries."""

DIGEST = "4d32e79ed93d"


def make(
    library: str, agent: str, cls: type | None = None, *, n_envs: int = N_ENVS, **overrides: Any
) -> BaselinesSubject:
    """Return an agent with its settings, some of them replaced.

    Args:
        library: `"sb3"` or `"sbx"`.
        agent: a key of `SETTINGS`.
        cls: a subclass to train in its place.
        n_envs: copies of the environment.
        overrides: further arguments of its constructor.
    """
    return BaselinesSubject(
        library,
        agent,
        {**SETTINGS[agent], **overrides},
        activation="relu" if agent == "DQN" else "tanh",
        exploration_noise=0.5 if agent == "TD3" else 0.0,
        n_envs=n_envs,
        cls=cls,
    )


def digest() -> str:
    """Return the 12 hexadecimal digits that pin the settings."""
    return hashlib.sha256(repr(SETTINGS).encode()).hexdigest()[:12]
