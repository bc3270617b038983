"""Hand-built views for the extensions' unit tests: linear networks on one-hot observations are tables."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.hooks import Extension, View
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from tests.agents.build import KEY, LINEAR, clock

__all__ = ["KEY", "LINEAR", "clock"]


def fixed(function: Any, params: Any = ()) -> Net:
    """A network that computes `function(params, *inputs)`."""
    return Net(params, (), Function(function))


class Function:
    """What stands for a linen module: `apply({"params": params}, *inputs)`."""

    def __init__(self, function: Any):
        self.function = function

    def apply(self, variables: dict, *inputs: Any) -> Any:
        return self.function(variables["params"], *inputs)


def batch(obs: Any, action: Any, reward: Any, next_obs: Any, terminated: Any = None, **extras: Any) -> Batch:
    """A batch from lists; nothing ends unless told."""
    reward = jnp.asarray(reward, jnp.float32)
    zeros = jnp.zeros_like(reward)
    ended = zeros if terminated is None else jnp.asarray(terminated, jnp.float32)
    now, after = (Inputs(jnp.asarray(x, jnp.float32)) for x in (obs, next_obs))
    return Batch(now, jnp.asarray(action), reward, ended, zeros, after, {k: jnp.asarray(v) for k, v in extras.items()})


def view(
    agent: Any, state: Any, b: Batch | None, extension: Extension, spec: Spec, own: Any = None, **parts: Any
) -> View:
    """What an extension sees; what it keeps is its first state, unless given."""
    own = extension.init(agent, spec, jax.random.key(5)) if own is None else own
    moment: Clock = parts.pop("clock", clock())
    parts = {"each": extension.init_each(agent, spec, 2) if b is not None else ()} | parts
    return View(agent, state, b, moment, KEY, own, spec=spec, stack=((extension, own),), **parts)
