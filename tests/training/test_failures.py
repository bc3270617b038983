"""What goes wrong while a run trains costs no more than itself, and is said in a sentence."""

from __future__ import annotations

import contextlib
import subprocess
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct

from ajax import TD3, load, resume
from ajax.core.errors import CheckpointError, ConfigError, FolderInUse
from ajax.core.spaces import Box
from ajax.environments.base import Step
from ajax.logging.folder import RunFolder
from ajax.training import session
from tests.logging.conftest import tiny_disk as tiny_disk
from tests.training.tiny import DISCRETE, REPLAY, TINY_DQN, TINY_PPO, TORSO, assert_same_runs, leaves, train


@struct.dataclass
class Poisoned:
    """Rewards become NaN at step 10 of an episode, in one of about two episodes; they never end by themselves."""

    observation_space = Box(0.0, 1.0, (1,))
    action_space = Box(-1.0, 1.0, (1,))

    def reset(self, key):
        bad = jnp.asarray(key_bit(key), jnp.float32)
        return jnp.stack([jnp.float32(0.0), bad]), jnp.zeros(1)

    def step(self, key, state, action):
        t, bad = state
        reward = jnp.where((t + 1 >= 10) & (bad > 0), jnp.nan, 1.0)
        state = jnp.stack([t + 1, bad])
        return state, Step(jnp.ones(1), jnp.float32(reward), jnp.bool_(False), jnp.bool_(False))


def key_bit(key):
    """A fair coin."""
    import jax

    return jax.random.bernoulli(key)


POISONED_TD3 = TD3(torso=TORSO, replay=REPLAY.__class__(capacity=32, batch_size=16, warmup=4, n_envs=1))


def test_a_run_that_is_not_finite_stops_and_the_others_go_on(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "CHUNK_SECONDS", 0.0)
    with pytest.warns(
        RuntimeWarning, match=r"seed \d: .*critic_loss.* stopped being finite at step \d+\. This run stops"
    ):
        result = train(POISONED_TD3, Poisoned(), 40, seeds=6, evaluations=4, episode_length=60, out=tmp_path / "run")
    stopped, going = set(result.stopped), set(range(6)) - set(result.stopped)
    assert stopped and going
    for lane in stopped:
        step = int(result.stopped[lane].rpartition("step ")[2].rstrip("."))
        assert 10 <= step < 30
        assert np.isnan(result.returns[lane, -1]) and np.isnan(result.metrics["critic_loss"][lane, -1])
    assert np.isfinite(result.metrics["critic_loss"][sorted(going)]).all()
    assert "stopped being finite" in (tmp_path / "run" / "run.log").read_text()
    alone = train(POISONED_TD3, Poisoned(), 40, seeds=[min(going)], evaluations=4, episode_length=60)
    for path, leaf in leaves(alone).items():
        np.testing.assert_array_equal(leaf[0], leaves(result)[path][min(going)])
    again = resume(tmp_path / "run", 48, env=Poisoned(), progress=False)
    assert set(again.stopped) == stopped and again.steps[-1] == 48


def test_warning_only_goes_on_and_warns_once_a_run(monkeypatch):
    monkeypatch.setattr(session, "CHUNK_SECONDS", 0.0)
    options = {"seeds": 6, "evaluations": 4, "episode_length": 60, "on_nan": "warn"}
    with pytest.warns(RuntimeWarning, match="stopped being finite") as caught:
        result = train(POISONED_TD3, Poisoned(), 40, **options)
    assert result.stopped == {} and result.steps[-1] == 40
    assert len({str(w.message).partition(":")[0] for w in caught}) == len(caught)


def test_a_run_whose_every_seed_stops_ends_early():
    huge = TINY_PPO.__class__(
        torso=TORSO, rollout=TINY_PPO.rollout, learning_rate=1e30, max_grad_norm=1e30, standardize_advantages=False
    )
    with pytest.warns(RuntimeWarning, match=r"seed 0: .* finite"):
        result = train(huge, DISCRETE, 240, evaluations=30)
    assert list(result.stopped) == [0] and result.steps[-1] < 240
    assert np.isnan(result.mean_return)


def test_a_full_disk_loses_nothing_that_was_saved_and_training_goes_on(tiny_disk):
    folder = tiny_disk / "run"
    first = train(TINY_DQN, DISCRETE, 16, horizon=32, out=folder)
    filler = tiny_disk / "filler"
    with open(filler, "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1024))
    with pytest.warns(Warning, match=r"can't write .* No space left on device") as caught:
        second = resume(folder, 32, env=DISCRETE, progress=False)
    assert all("\n" not in str(w.message) for w in caught)
    assert second.problems and second.steps[-1] == 32
    filler.unlink()
    assert_same_runs(first, load(folder, env=DISCRETE))
    assert_same_runs(second, resume(folder, 32, env=DISCRETE, progress=False))


def test_a_read_only_disk_is_one_sentence(tiny_disk):
    train(TINY_DQN, DISCRETE, 16, out=tiny_disk / "run")
    subprocess.run(["mount", "-o", "remount,ro", tiny_disk], check=True)
    with pytest.raises(CheckpointError, match="Read-only file system"):
        resume(tiny_disk / "run", 32, env=DISCRETE, progress=False)
    assert load(tiny_disk / "run", env=DISCRETE).steps[-1] == 16


def test_a_truncated_checkpoint_falls_back_to_the_one_before(tmp_path):
    folder = tmp_path / "run"
    whole = train(TINY_DQN, DISCRETE, 32)
    train(TINY_DQN, DISCRETE, 16, horizon=32, checkpoint_seconds=0.0, out=folder)
    older, newest = sorted((folder / "checkpoints").iterdir())
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.warns(UserWarning, match=rf"{newest.name} .* Going on from {older.name}"):
        again = resume(folder, 32, env=DISCRETE, progress=False)
    assert_same_runs(whole, again)


def test_a_foreign_checkpoint_is_refused_and_left_alone(tmp_path):
    train(TINY_DQN, DISCRETE, 16, out=tmp_path / "mine")
    train(TINY_PPO, DISCRETE, 16, out=tmp_path / "other")
    for path in (tmp_path / "mine" / "checkpoints").iterdir():
        path.unlink()
    (foreign,) = (path for path in (tmp_path / "other" / "checkpoints").iterdir() if "16" in path.name)
    copy = tmp_path / "mine" / "checkpoints" / foreign.name
    copy.write_bytes(foreign.read_bytes())
    with pytest.raises(CheckpointError):
        resume(tmp_path / "mine", 32, env=DISCRETE, progress=False)
    assert copy.read_bytes() == foreign.read_bytes()


def test_a_folder_in_use_is_refused(tmp_path):
    train(TINY_DQN, DISCRETE, 16, out=tmp_path / "run")
    with RunFolder(tmp_path / "run", resume=True):
        with pytest.raises(FolderInUse, match="is in use by process"):
            resume(tmp_path / "run", 32, env=DISCRETE, progress=False)
        assert load(tmp_path / "run", env=DISCRETE).steps[-1] == 16  # looking at it is allowed


def test_two_results_of_one_folder_do_not_write_at_once(tmp_path):
    result = train(TINY_DQN, DISCRETE, 16, out=tmp_path / "run")
    with RunFolder(tmp_path / "run", resume=True), pytest.raises(FolderInUse):
        result.resume(32, progress=False)
    assert result.resume(32, progress=False).steps[-1] == 32
    assert load(tmp_path / "run", env=DISCRETE).steps[-1] == 32


def test_fewer_steps_than_were_taken_are_refused():
    with pytest.raises(ConfigError, match="steps=8: the run has taken 16 already"):
        train(TINY_DQN, DISCRETE, 16).resume(8, progress=False)


def test_an_environment_made_in_python_must_be_given_again(tmp_path):
    train(TINY_DQN, DISCRETE, 16, out=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            CheckpointError, match=r"was trained on IdentityEnv, an object made in Python\. Open it from"
        ):
            resume(tmp_path / "run", 32, progress=False)
