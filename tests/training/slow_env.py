"""An environment that takes its time, so that a test can interrupt a run while it goes."""

from __future__ import annotations

import os
import time

import jax
from flax import struct

from tests.environments.identity_env import IdentityEnv

SECONDS = "SLOW_ENV_SECONDS"
"""Environment variable: how long a step takes."""


@struct.dataclass
class SlowEnv(IdentityEnv):
    """`IdentityEnv`, of which each step of training and evaluation takes a while."""

    def step(self, key, state, action):
        """Wait, then step; see `IdentityEnv`."""
        state = jax.pure_callback(
            _wait, jax.ShapeDtypeStruct(state.shape, state.dtype), state, vmap_method="broadcast_all"
        )
        return super().step(key, state, action)


def _wait(state):
    time.sleep(float(os.environ.get(SECONDS, "0")))
    return state
