"""What `docs/peers.md` says of the released versions, measured; a new version that differs should change the page."""

from __future__ import annotations

import dataclasses
from importlib.metadata import version

import jax
import numpy as np
import pytest

from ajax.probing.baselines import BaselinesSubject, BaselinesTrained
from ajax.probing.suites.baselines.settings import SETTINGS, make
from ajax.probing.suites.value_chains.boxes import BOXED
from ajax.probing.suites.value_chains.discrete import CHAIN

pytestmark = pytest.mark.slow
STEPS = 600


@pytest.fixture(autouse=True)
def released():
    """Skip without the libraries; theirs is not held to our rule on shapes."""
    for package in ("stable_baselines3", "sbx"):
        pytest.importorskip(package)
    with jax.numpy_rank_promotion("allow"):
        yield


def values(subject: BaselinesSubject, steps: int) -> np.ndarray:
    """What one seed has learned after some steps: V, or Q."""
    spec = CHAIN if subject.agent in ("DQN", "PPO") else BOXED
    trained: BaselinesTrained = subject.train(spec, steps, [0])
    if subject.agent == "PPO":
        return trained.v(spec.obs)
    return trained.q(spec.obs, None if spec is CHAIN else np.zeros((3, 1)))


def test_the_versions():
    found = version("stable_baselines3"), version("sbx-rl"), version("torch").partition("+")[0]
    assert found == ("2.9.2", "0.28.0", "2.13.0")


@pytest.mark.parametrize("library", ["sb3", "sbx"])
@pytest.mark.parametrize("agent", SETTINGS)
def test_a_schedule_of_the_learning_rate(library, agent):
    """It is 0 from the first step on, so that nothing should be learned."""
    subject = make(library, agent, learning_rate=lambda remaining: 1e-3 if remaining == 1 else 0.0)
    moved = np.abs(values(subject, STEPS) - values(subject, 0)).max()
    assert (moved > 0.1) == (library == "sbx" and agent in ("DQN", "TD3"))


def test_sbx_dqn_takes_the_first_width_for_both_layers():
    model = dataclasses.replace(make("sbx", "DQN"), widths=(32, 64)).train(CHAIN, 0, [0]).models[0]
    shapes = sorted(leaf.shape for leaf in jax.tree.leaves(model.policy.qf_state.params) if leaf.ndim == 2)
    assert shapes == [(8, 32), (32, 3), (32, 32)]


@pytest.mark.parametrize(("library", "acts"), [("sb3", True), ("sbx", False)])
def test_the_clip_of_ppos_value_loss(library, acts):
    free, clipped = (values(make(library, "PPO", clip_range_vf=clip), 256) for clip in (None, 1e-4))
    assert (np.abs(free - clipped).max() > 0.1) == acts


def test_sb3_sac_writes_into_policy_kwargs():
    import stable_baselines3 as sb3
    from stable_baselines3.common.vec_env import DummyVecEnv

    given = {"net_arch": [32, 32]}
    sb3.SAC("MlpPolicy", DummyVecEnv([BOXED.gymnasium]), policy_kwargs=given)
    assert given == {"net_arch": [32, 32], "use_sde": False}
    with pytest.raises(TypeError, match="use_sde"):
        sb3.TD3("MlpPolicy", DummyVecEnv([BOXED.gymnasium]), policy_kwargs=given)


@pytest.mark.parametrize("library", ["sb3", "sbx"])
def test_dqns_copies_explore_together(library):
    model = dataclasses.replace(make(library, "DQN"), n_envs=16).train(CHAIN, 0, [0]).models[0]
    model.exploration_rate = 0.5
    obs = np.repeat(CHAIN.obs[:1], 16, 0)
    greedy = model.predict(obs, deterministic=True)[0]
    left = [(model.predict(obs)[0] != greedy).sum() for _ in range(200)]
    assert 70 < left.count(0) < 130  # were each to draw by itself: once in 650 steps
