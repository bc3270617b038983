"""Commands in a run: what an agent that follows them is asked for, from each episode's start to its end.

All of it is empty where the agent follows none: `Run.commands` is then `()`, and inputs stay as they are.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from flax import struct

from ajax.core.commands import Goal, exploring, greedy, remaining
from ajax.core.records import Inputs
from ajax.training import normalise


class Commands(struct.PyTreeNode):
    """What a run asks for.

    Attributes:
        goal: what the best episodes of the ticks before set, for the episodes that start.
        first: what every environment's episode was asked for at its start (n_envs, 2), in the environment's units.
    """

    goal: Goal
    first: jax.Array


def of(agent: Any, n_envs: int) -> Commands | tuple:
    """The commands of a run that begins."""
    return Commands(Goal.none(), jnp.zeros((n_envs, 2))) if agent.loop == "episodic" else ()


def renewed(commands: Any, elapsed: jax.Array, key: jax.Array) -> Any:
    """The commands with one drawn for every environment whose episode starts: `elapsed` (n_envs,) is 0 there."""
    if not isinstance(commands, Commands):
        return commands
    drawn = exploring(commands.goal, key, len(elapsed))
    return commands.replace(first=jnp.where((elapsed == 0)[:, None], drawn, commands.first))


def to_follow(commands: Any, n: int) -> jax.Array | None:
    """What `n` episodes that are evaluated are asked for at their start (n, 2); None for an agent that is not asked."""
    return greedy(commands.goal, n) if isinstance(commands, Commands) else None


def told(
    x: Inputs, statistics: normalise.Statistics, first: jax.Array | None, earned: jax.Array, elapsed: jax.Array
) -> Inputs:
    """The inputs with what is left of the first commands, after the rewards and the steps of the episodes so far."""
    if first is None:
        return x
    return x.replace(command=normalise.command(statistics, remaining(first, earned, elapsed)))
