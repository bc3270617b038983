"""Demonstrations: what an expert does in an environment, recorded as a dataset."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from ajax.buffers.dataset import Dataset
from ajax.core.errors import ConfigError
from ajax.core.expert import Expert
from ajax.core.keys import seed_key
from ajax.core.records import Batch
from ajax.core.spaces import to_box
from ajax.environments import registry
from ajax.environments.gymnasium import GymnasiumEnv
from ajax.training import host, pretrain
from ajax.training.driver import with_options
from ajax.training.plan import check_count
from ajax.training.programs import numbers
from ajax.training.run import Task


def demonstrate(
    expert: Expert,
    env: Any,
    steps: int,
    *,
    seed: int = 0,
    episode_length: int | None = None,
    action_repeat: int = 1,
) -> Dataset:
    """Record an expert's transitions in order, whole episodes but for the last, which is cut (truncated) at its end.

    Args:
        expert: who acts, such as `Stateless(lambda obs: ...)` or `result.expert()`.
        env: the environment, as for `train`.
        steps: transitions to record.
        seed: of the environment and the expert.
        episode_length, action_repeat: as for `train`.

    Raises:
        ConfigError: `steps` is no count, or `expert` is none.
    """
    check_count("steps", steps, 1)
    if not isinstance(expert, Expert):
        raise ConfigError(f"expert={expert!r} is no Expert. A function of one observation: Stateless(function).")
    made = with_options(registry.make(env), episode_length, action_repeat)
    if isinstance(made, GymnasiumEnv):
        spaces = host.Spaces(made.observation_space, made.action_space)
        rows = host.play(made, numbers(Task(spaces, 1)), numbers(expert), steps, seed_key(seed), seed)
    else:
        rows = jax.jit(pretrain.play, static_argnums=2)(numbers(Task(made, 1)), numbers(expert), steps, seed_key(seed))
    return dataset_of(jax.tree.map(lambda x: x[:, 0], rows), made.action_space)


def dataset_of(rows: Batch, space: Any) -> Dataset:
    """A dataset of raw transitions (n, ...) in their order; the last one ends its episode."""
    terminated, truncated = (np.asarray(x) > 0 for x in (rows.terminated, rows.truncated))
    truncated = truncated.copy()
    truncated[-1] |= not terminated[-1]
    return Dataset(
        obs=np.asarray(rows.now.obs),
        action=np.asarray(to_box(space, rows.action)),
        reward=np.asarray(rows.reward),
        terminated=terminated,
        next_obs=np.asarray(rows.next.obs),
        truncated=truncated,
    )
