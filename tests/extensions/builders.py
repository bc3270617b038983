"""Every exported extension, made small, for the contracts that look at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import struct

from ajax import Dataset, Torso
from ajax.core.expert import Expert
from ajax.core.hooks import Extension
from ajax.extensions import get
from tests.environments.identity_env import TERMINATES_AT

TORSO = Torso(widths=(8,))
CLONING = {"steps": 8, "updates": 2, "batch_size": 4}
PHI = {**CLONING, "torso": TORSO}


class Steady(Expert):
    """Does always the same: action 1, or the number 1 in a box.

    Attributes:
        shape: of an action.
    """

    shape: tuple[int, ...] = struct.field(pytree_node=False)

    def act(self, memory: Any, obs: jax.Array, key: jax.Array) -> tuple[jax.Array, Any]:
        """The action."""
        return jnp.ones(self.shape), memory


def steady(env: Any) -> Steady:
    """The expert for an environment."""
    return Steady(env.action_space.shape)


def data(env: Any, n: int = 32) -> Dataset:
    """Transitions of the witness, two of three of whose rows go on."""
    t = np.arange(n) % TERMINATES_AT
    obs = np.stack([t, np.ones(n), np.full(n, 0.5), np.zeros(n)], 1).astype(np.float32)
    after = obs + np.array([1.0, 0.0, 0.0, 0.0], np.float32)
    action = np.arange(n) % 2
    shaped = action if env.kind == "discrete" else action[:, None].astype(np.float32)
    return Dataset(obs, shaped, 10.0 * t, t == TERMINATES_AT - 1, after)


BUILD: dict[str, Callable[[Any], tuple[Extension, ...]]] = {
    # given the environment: the extension, and before it what it needs
    "BehaviorCloning": lambda env: (get("BehaviorCloning")(expert=steady(env), **CLONING),),
    "Imitation": lambda env: (get("Imitation")(expert=steady(env)),),
    "IBRL": lambda env: (get("IBRL")(expert=steady(env)),),
    "ResidualPolicy": lambda env: (get("ResidualPolicy")(expert=steady(env)),),
    "JumpStart": lambda env: (get("JumpStart")(expert=steady(env), steps=2.0),),
    "ExpertReturn": lambda env: (get("ExpertReturn")(expert=steady(env)),),
    "PriorData": lambda env: (get("PriorData")(data=data(env)),),
    "CQL": lambda env: (get("CQL")(),),
    "CalQL": lambda env: (get("MCPretrain")(expert=steady(env), **PHI), get("CalQL")()),
    "TD3BC": lambda env: (get("TD3BC")(),),
    "MCPretrain": lambda env: (get("MCPretrain")(expert=steady(env), **PHI),),
    "BellmanPretrain": lambda env: (get("BellmanPretrain")(expert=steady(env), **PHI),),
    "RND": lambda env: (get("RND")(torso=TORSO),),
    "OrnsteinUhlenbeck": lambda env: (get("OrnsteinUhlenbeck")(),),
    "GAIL": lambda env: (get("GAIL")(data=data(env), torso=TORSO),),
    "CriticDiversity": lambda env: (get("CriticDiversity")(),),
    "TDErrors": lambda env: (get("TDErrors")(),),
    "GradientNorms": lambda env: (get("GradientNorms")(),),
    "Features": lambda env: (get("Features")(steps=4),),
    "QBias": lambda env: (get("QBias")(steps=4),),
    "ExplainedVariance": lambda env: (get("ExplainedVariance")(steps=4),),
}
"""A new extension fails `test_every_extension_has_a_builder` until it is here."""
