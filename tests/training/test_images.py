"""Image observations: bytes stay bytes until a network reads them, every agent moves its filters, MinAtar trains."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np
import pytest

from ajax import CNN, DQN, PPO, Replay, Rollout
from ajax.core.errors import SpaceError
from tests.environments.identity_env import IdentityEnv
from tests.environments.picture_env import PictureEnv
from tests.training.tiny import CASES, TORSO, leaves, train

IMAGES = dataclasses.replace(TORSO, cnn=CNN(channels=(4,), kernels=(2,), strides=(1,)))


def with_cnn(name: str) -> tuple[Any, PictureEnv]:
    agent, env, _ = CASES[name]
    return dataclasses.replace(agent, torso=IMAGES), PictureEnv(continuous=env.continuous)


def filters(run: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {path: leaf for path, leaf in run.items() if "Conv" in path and "params" in path and "kernel" in path}


@pytest.mark.parametrize("name", CASES)
def test_a_few_updates_move_every_networks_filters(name):
    agent, env = with_cnn(name)
    short, long = (leaves(train(agent, env, n, horizon=48, normalize_observations=name == "SAC")) for n in (8, 48))
    before, after = filters(short), filters(long)
    assert before and all(not np.array_equal(before[path], after[path]) for path in before)
    assert all(np.isfinite(leaf).all() for leaf in long.values() if np.issubdtype(leaf.dtype, np.floating))


def test_bytes_stay_bytes_in_the_replay_and_are_normalized_from_there():
    agent, env = with_cnn("DQN")
    result = train(agent, env, normalize_observations=True)
    run = result.session.lanes.run(0)
    assert run.obs.dtype == run.store.rows.now.obs.dtype == run.store.rows.next.obs.dtype == np.uint8
    assert run.store.rows.now.obs.max() == 255
    seen = np.asarray(run.statistics.obs.mean).reshape(4, 4)
    np.testing.assert_allclose(seen, np.broadcast_to(seen[:1], (4, 4)), rtol=1e-5)
    assert seen[0].sum() == pytest.approx(255.0, rel=1e-5), "one column of each picture is bright"


def test_what_is_no_image_is_refused_before_anything_is_compiled():
    with pytest.raises(SpaceError, match=r"observations have shape \(2,\), and convolutions need images"):
        train(dataclasses.replace(CASES["DQN"][0], torso=IMAGES), IdentityEnv())


FOUR = dataclasses.replace(TORSO, cnn=CNN(channels=(4,)))
MINATAR = {
    "DQN": DQN(torso=FOUR, replay=Replay(capacity=64, batch_size=8, warmup=16)),
    "PPO": PPO(torso=FOUR, rollout=Rollout(n_envs=2, n_steps=8, n_epochs=1, n_minibatches=2)),
}


@pytest.mark.parametrize("name", MINATAR)
def test_minatar_trains(name):
    result = train(MINATAR[name], "Breakout-MinAtar", 48, episode_length=20)
    kernels = filters(leaves(result))
    assert {kernel.shape for kernel in kernels.values()} == {(1, 3, 3, 4, 4)}, "a lane, 3 x 3 pixels, 4 channels each"
    assert np.isfinite(result.returns).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["DQN", "PPO"])
def test_pictures_are_told_apart(name):
    """Naming the column's half pays 1 a step: whoever sees the picture earns the whole of the episode's length."""
    agent, env = with_cnn(name)
    agent = dataclasses.replace(agent, learning_rate=1e-2)
    result = train(agent, env, 2_000, episodes=32)
    outcome = jax.device_get(result.evaluate(32))
    assert (outcome.returns == outcome.lengths).mean() > 0.9
