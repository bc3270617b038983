"""Datasets of Minari (https://minari.farama.org), the format of offline data for Gymnasium's spaces."""

from __future__ import annotations

from typing import Any

import numpy as np

from ajax.buffers.dataset import Dataset, concatenate
from ajax.core.errors import ConfigError


def from_minari(dataset: Any) -> Dataset:
    """Read a Minari dataset: every episode's transitions in order, its final observation the last step's `next_obs`.

    Args:
        dataset: its id, such as `"mujoco/pusher/expert-v0"`, downloaded unless it is there; or a `MinariDataset`.

    Returns:
        the transitions. `terminated` and `truncated` are the dataset's own; an episode that ends with neither, because
        recording stopped, is cut (truncated) there.

    Raises:
        ImportError: an id was given, and Minari is not installed.
        ConfigError: its observations or actions are no arrays, or an episode lacks its final observation.
    """
    if isinstance(dataset, str):
        try:
            import minari
        except ImportError as error:
            raise ImportError(
                f"the dataset {dataset!r} needs the extra 'minari': pip install 'ajax-agents[minari]'"
            ) from error
        dataset = minari.load_dataset(dataset, download=True)
    return concatenate([_transitions(episode) for episode in dataset.iterate_episodes()])


def _transitions(episode: Any) -> Dataset:
    """One episode, whose observations are one more than its steps."""
    n = len(episode.rewards)
    for name, array, length in (("observations", episode.observations, n + 1), ("actions", episode.actions, n)):
        if not isinstance(array, np.ndarray):
            raise ConfigError(
                f"Minari episode {episode.id}: its {name} are a {type(array).__name__}, not one array. Record it with"
                " gymnasium.wrappers.FlattenObservation, and with a Box or Discrete of actions."
            )
        if len(array) != length:
            raise ConfigError(
                f"Minari episode {episode.id}: {n} steps need {length} {name}, and there are {len(array)}."
            )
    terminated, truncated = np.asarray(episode.terminations, bool), np.array(episode.truncations, bool)
    truncated[-1:] |= ~terminated[-1:]
    return Dataset(
        obs=episode.observations[:-1],
        action=episode.actions,
        reward=episode.rewards,
        terminated=terminated,
        next_obs=episode.observations[1:],
        truncated=truncated,
    )
