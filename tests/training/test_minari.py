"""Minari's datasets: every row belongs to its episode, ends are kept apart, and an agent trains from one."""

from __future__ import annotations

import re
import sys
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from ajax import from_minari
from ajax.core.errors import ConfigError
from tests.training.tiny import TINY_TD3, train


def episode(number: int, n: int, end: str, **changes) -> SimpleNamespace:
    """An episode of n steps, whose observation says (episode, step)."""
    last = np.arange(n) == n - 1
    arrays = {
        "observations": np.stack([np.full(n + 1, number), np.arange(n + 1), np.zeros(n + 1)], 1).astype(np.float32),
        "actions": np.full((n, 1), 0.5 * number, np.float32),
        "rewards": np.arange(n, dtype=np.float64),
        "terminations": last & (end == "terminated"),
        "truncations": last & (end == "truncated"),
    }
    return SimpleNamespace(id=number, **(arrays | changes))


def dataset(*episodes: SimpleNamespace) -> SimpleNamespace:
    return SimpleNamespace(iterate_episodes=lambda: iter(episodes))


ENDS = dataset(episode(0, 3, "terminated"), episode(1, 2, "truncated"), episode(2, 2, "neither"))


def test_rows_are_transitions_of_their_episode():
    data = from_minari(ENDS)
    np.testing.assert_array_equal(data.obs[:, :2], [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [2, 0], [2, 1]])
    np.testing.assert_array_equal(data.next_obs[:, :2], [[0, 1], [0, 2], [0, 3], [1, 1], [1, 2], [2, 1], [2, 2]])
    np.testing.assert_array_equal(data.reward, [0, 1, 2, 0, 1, 0, 1])
    np.testing.assert_array_equal(data.action[:, 0], [0, 0, 0, 0.5, 0.5, 1, 1])


def test_terminations_and_time_limits_are_kept_apart_and_a_recording_that_stops_is_cut():
    data = from_minari(ENDS)
    assert np.flatnonzero(data.terminated).tolist() == [2]
    assert np.flatnonzero(data.truncated).tolist() == [4, 6]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"observations": {"a": np.zeros(3)}}, "Minari episode 7: its observations are a dict, not one array."),
        ({"actions": (np.zeros(2),)}, "Minari episode 7: its actions are a tuple, not one array."),
        ({"observations": np.zeros((2, 3))}, "Minari episode 7: 2 steps need 3 observations, and there are 2."),
    ],
)
def test_what_is_no_array_or_lacks_the_final_observation_is_refused(changes, text):
    with pytest.raises(ConfigError, match=re.escape(text)):
        from_minari(dataset(episode(7, 2, "terminated", **changes)))


def test_an_id_without_minari_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "minari", None)
    with pytest.raises(ImportError, match=r"'some/data-v0' needs the extra 'minari': pip install 'ajax-agents\[minari"):
        from_minari("some/data-v0")


@pytest.fixture
def pendulum(tmp_path, monkeypatch) -> tuple[str, list[tuple]]:
    """The id of a local dataset of Pendulum, recorded by Minari itself, and every step as it was taken."""
    minari = pytest.importorskip("minari", reason="the extra minari is not installed")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(gymnasium.make("Pendulum-v1", max_episode_steps=5))
    env.action_space.seed(0)
    steps = []
    for seed in range(3):
        obs, _ = env.reset(seed=seed)
        for _ in range(5):
            action = env.action_space.sample()
            following, reward, terminated, truncated, _ = env.step(action)
            steps.append((obs, action, reward, terminated, following, truncated))
            obs = following
    env.create_dataset("ajax-test/pendulum-v0", algorithm_name="random")
    env.close()
    return "ajax-test/pendulum-v0", steps


def test_what_minari_recorded_comes_back_and_an_agent_trains_from_it(pendulum):
    name, steps = pendulum
    data = from_minari(name)
    for i, field in enumerate(("obs", "action", "reward", "terminated", "next_obs", "truncated")):
        wanted = np.stack([step[i] for step in steps])
        np.testing.assert_allclose(getattr(data, field), wanted, rtol=1e-6, err_msg=field)
    assert data.truncated.sum() == 3 and not data.terminated.any()
    result = train(TINY_TD3, "Pendulum-v1", 8, dataset=data, evaluations=1, episodes=1)
    assert result.steps[-1] == 8 and np.isfinite(result.returns).all()


def test_a_loaded_dataset_is_read_as_well_as_its_id(pendulum):
    import minari

    loaded, named = from_minari(minari.load_dataset(pendulum[0])), from_minari(pendulum[0])
    for field in ("obs", "action", "reward", "terminated", "next_obs", "truncated"):
        np.testing.assert_array_equal(getattr(loaded, field), getattr(named, field))
