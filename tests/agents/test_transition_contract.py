"""The transitions that every agent learns from: each continues its own episode and carries the flags of its step.

Seen by an extension, on a task whose observation says which step of which episode a row is of.
"""

from __future__ import annotations

import numpy as np
import pytest

from ajax.core.spaces import to_box
from tests.agents.contract import NORMALIZED, ONE_KIND, SUBJECTS, Witness, rows, witnessed
from tests.environments.identity_env import TERMINATES_AT, TRUNCATES_AT


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_each_transition_continues_its_own_episode(name, kind):
    seen = rows(witnessed(name, kind)[1])
    t, c, u, _ = seen.now.obs.T
    executed = np.asarray(to_box(Witness(kind).action_space, seen.action)).reshape(-1)
    np.testing.assert_array_equal(seen.next.obs[:, :3], np.stack([t + 1, c, u], -1))
    np.testing.assert_allclose(seen.next.obs[:, 3], executed, rtol=1e-6, atol=1e-6)  # compilers round the map otherwise
    np.testing.assert_array_equal(seen.reward, c * (10 * t + np.round(executed)) + np.where(t == 0, u, 0.0))


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_each_transition_carries_the_flags_that_its_step_raised(name, kind):
    seen = rows(witnessed(name, kind)[1])
    t, c = seen.now.obs[:, 0], seen.now.obs[:, 1]
    np.testing.assert_array_equal(seen.terminated, (c > 0) & (t == TERMINATES_AT - 1))
    np.testing.assert_array_equal(seen.truncated, (c < 0) & (t == TRUNCATES_AT - 1))
    assert seen.terminated.any() and seen.truncated.any()


@pytest.mark.parametrize(("name", "kind"), SUBJECTS)
def test_targets_and_rewards_are_one_number_a_row(name, kind):
    """A column that meets a row would make a matrix, and every value the mean of a batch."""
    for target, batch, _ in witnessed(name, kind)[1]:
        n = (len(batch.now.obs),)
        assert target.shape == batch.reward.shape == batch.terminated.shape == batch.truncated.shape == n


@pytest.mark.parametrize(("name", "kind"), ONE_KIND)
def test_normalized_transitions_are_the_raw_ones_shifted_and_scaled(name, kind):
    """Both observations by one shift and scale; the reward by one scale, so that its sign and mean are kept."""
    checked = 0
    for batch in (told.batch for told in witnessed(name, kind, **NORMALIZED)[1]):
        now, after = batch.now.obs, batch.next.obs
        step = after[:, 0] - now[:, 0]
        np.testing.assert_allclose(step, step[0], rtol=1e-4)
        np.testing.assert_allclose(after[:, 1:3], now[:, 1:3], rtol=1e-5, atol=1e-6)
        ends = np.flatnonzero(batch.terminated + batch.truncated)
        if not len(ends):
            continue
        end = ends[0]  # a row whose t and c its flags tell
        last = TERMINATES_AT if batch.terminated[end] else TRUNCATES_AT
        t = np.round(last - 1 + (now[:, 0] - now[end, 0]) / step)
        c = np.where(np.isclose(now[:, 1], now[end, 1]), 1, -1) * (1 if batch.terminated[end] else -1)
        raw = c * (10 * t + np.round(np.asarray(to_box(Witness(kind).action_space, batch.action)).reshape(-1)))
        plain = (t > 0) & (np.abs(batch.reward) < 10)  # at t = 0 the reward holds u as well; beyond 10 it is clipped
        if plain.any():
            np.testing.assert_allclose(
                batch.reward[plain] / raw[plain], batch.reward[plain][0] / raw[plain][0], rtol=1e-3
            )
            checked += 0 < batch.reward[plain][0] / raw[plain][0] < 0.5  # 1 before anything was seen
    assert checked > 3
