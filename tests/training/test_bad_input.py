"""What can't be trained is refused before anything is compiled, by one error that says what to do."""

from __future__ import annotations

import re

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest
from flax import struct
from gymnasium import spaces

import ajax
from ajax import DQN, PPO, SAC, TD3, Box, Replay, Rollout
from ajax.agents import get
from ajax.core.errors import (
    CapabilityError,
    ConfigError,
    EnvironmentFault,
    FolderInUse,
    SpaceError,
    UnknownName,
)
from ajax.training import programs
from tests.environments.identity_env import IdentityEnv
from tests.training.tiny import CONTINUOUS, DISCRETE, TINY_DQN, TINY_PPO, TINY_TD3, train


@struct.dataclass
class Unbounded(IdentityEnv):
    """Acts in a box without bounds."""

    @property
    def action_space(self):
        return Box(shape=(2,))


@struct.dataclass
class WrongShape(IdentityEnv):
    """Observes one number more than it declares."""

    def reset(self, key):
        state, obs = super().reset(key)
        return state, jnp.append(obs, 0.0)


class ManyDiscrete(gymnasium.Env):
    """Acts in a space that no agent takes."""

    observation_space = spaces.Box(-1, 1, (2,))
    action_space = spaces.MultiDiscrete([2, 3])


CASES = {
    # what is asked for: the error, and what its text must hold
    "continuous agent, discrete space": (lambda: train(TD3(), DISCRETE), SpaceError, "TD3 needs continuous actions"),
    "discrete agent, box": (lambda: train(DQN(), CONTINUOUS), SpaceError, "DQN needs discrete actions"),
    "unknown agent": (lambda: get("SCA"), UnknownName, "unknown agent 'SCA'. Did you mean 'SAC'?"),
    "unknown environment": (lambda: train(PPO(), "CartPole-v11"), UnknownName, "Did you mean 'CartPole-v1'?"),
    "unknown suite's name": (lambda: train(PPO(), "brax:ants"), (UnknownName, ConfigError), "ants"),
    "unknown field": (lambda: PPO(gama=0.9), ConfigError, "PPO has no field 'gama'. Did you mean 'gamma'?"),
    "field of another": (lambda: Replay(batch=3), ConfigError, "Did you mean 'batch_size'?"),
    "negative count": (lambda: Rollout(n_envs=-1), ConfigError, "Rollout(n_envs=-1): n_envs must be at least 1"),
    "zero count": (lambda: TD3(policy_delay=0), ConfigError, "TD3(policy_delay=0): policy_delay must be at least 1"),
    "count as a float": (lambda: Rollout(n_steps=8.0), ConfigError, "n_steps must be a whole number, not float"),
    "batch over buffer": (lambda: Replay(capacity=8, batch_size=9), ConfigError, "a batch can't be larger than the b"),
    "minibatches": (lambda: Rollout(n_minibatches=3), ConfigError, "3 minibatches do not divide the 2048 transitions"),
    "gamma over 1": (lambda: SAC(gamma=1.5), ConfigError, "SAC(gamma=1.5): gamma must be within [0, 1]."),
    "gamma below 0": (lambda: PPO(gamma=-0.1), ConfigError, "PPO(gamma=-0.1): gamma must be within [0, 1]."),
    "learning rate nan": (lambda: PPO(learning_rate=float("nan")), ConfigError, "learning_rate must be finite"),
    "learning rate inf": (lambda: PPO(learning_rate=float("inf")), ConfigError, "learning_rate must be finite"),
    "learning rate 0": (lambda: PPO(learning_rate=0), ConfigError, "learning_rate must be greater than 0"),
    "wrong shape": (lambda: train(TINY_PPO, WrongShape()), EnvironmentFault, "has shape (3,); it must have (2,)"),
    "unbounded actions": (lambda: train(TINY_TD3, Unbounded()), SpaceError, "Unbounded"),
    "unsupported space": (lambda: train(PPO(), ManyDiscrete()), SpaceError, "MultiDiscrete"),
    "no environment": (lambda: train(PPO(), 3), EnvironmentFault, "int has no observation_space"),
    "steps 0": (lambda: train(PPO(), DISCRETE, 0), ConfigError, "steps=0 must be a whole number of at least 1."),
    "steps as a float": (lambda: train(PPO(), DISCRETE, 1e5), ConfigError, "steps=100000.0 must be a whole number"),
    "steps below a tick": (lambda: train(PPO(), DISCRETE, 2047), ConfigError, "PPO takes 2,048 environment steps at"),
    "horizon": (lambda: train(TINY_PPO, DISCRETE, horizon=0), ConfigError, "horizon=0 must be a whole number of at"),
    "seeds 0": (lambda: train(TINY_PPO, DISCRETE, seeds=0), ConfigError, "seeds=0 must be a whole number of at least"),
    "seeds as a float": (lambda: train(TINY_PPO, DISCRETE, seeds=2.0), ConfigError, "seeds=2.0 must be a whole number"),
    "no seeds": (lambda: train(TINY_PPO, DISCRETE, seeds=[]), ConfigError, "seeds=[] must be different whole numbers"),
    "repeated seeds": (lambda: train(TINY_PPO, DISCRETE, seeds=[1, 1]), ConfigError, "seeds=[1, 1] must be different"),
    "seed too large": (lambda: train(TINY_PPO, DISCRETE, seeds=[2**32]), ConfigError, "all below 2**32"),
    "evaluations": (lambda: train(TINY_PPO, DISCRETE, evaluations=0), ConfigError, "give episodes=0"),
    "episodes": (lambda: train(TINY_PPO, DISCRETE, episodes=-1), ConfigError, "episodes=-1 must be a whole number of"),
    "episode length": (lambda: train(TINY_PPO, DISCRETE, episode_length=0), ConfigError, "episode_length=0 must be"),
    "action repeat": (lambda: train(TINY_PPO, DISCRETE, action_repeat=0), ConfigError, "action_repeat=0 must be"),
    "on_nan": (lambda: train(TINY_PPO, DISCRETE, on_nan="wran"), ConfigError, "Did you mean 'warn'?"),
    "reward gamma": (lambda: train(TINY_PPO, DISCRETE, reward_normalization_gamma=2.0), ConfigError, "within [0, 1]"),
    "sweep of a structure": (
        lambda: train(TINY_PPO.sweep(n_envs=[2, 4]), DISCRETE), ConfigError, "n_envs=2 changes the compiled program"
    ),
    "sweep of an unknown field": (lambda: train(TINY_PPO.sweep(gama=[0.9]), DISCRETE), UnknownName, "'gamma'"),
    "sweep without values": (lambda: train(TINY_PPO.sweep(gamma=[]), DISCRETE), ConfigError, "a field without values"),
    "sweep with a bad value": (lambda: train(TINY_PPO.sweep(gamma=[2.0]), DISCRETE), ConfigError, "within [0, 1]"),
    "dataset for PPO": (lambda: train(TINY_PPO, DISCRETE, dataset=dataset()), CapabilityError, "not from a dataset"),
    "unknown name": (lambda: ajax.PPP, AttributeError, "module 'ajax' has no attribute 'PPP'"),
}  # fmt: skip


def dataset() -> ajax.Dataset:
    """Two transitions of the discrete task."""
    return ajax.Dataset(np.zeros((2, 2)), np.zeros(2, int), np.zeros(2), np.zeros(2, bool), np.zeros((2, 2)))


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_before_anything_is_compiled(case, tmp_path):
    ask, error, text = CASES[case]
    before = set(programs._programs)
    with pytest.raises(error, match=re.escape(text)) as caught:
        ask()
    assert set(programs._programs) == before
    assert "\n" not in str(caught.value)


def test_a_folder_with_another_run_is_refused_and_left_alone(tmp_path):
    train(TINY_PPO, DISCRETE, 8, out=tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    with pytest.raises(FolderInUse, match=r"holds another run; go on with it by `ajax resume"):
        train(TINY_DQN, DISCRETE, 8, out=tmp_path / "run")
    kept = {path: path.read_bytes() for path in before}
    assert [path.name for path in before if before[path] != kept[path] and path.name != ".lock"] == []


def test_a_folder_where_nothing_could_begin_may_be_used_again(tmp_path):
    @struct.dataclass
    class Broken(IdentityEnv):
        def reset(self, key):
            state, obs = super().reset(key)
            return state, obs * jnp.nan

    with pytest.raises(EnvironmentFault, match=r"Broken: reset's observation held NaN or infinity in the first step\."):
        train(TINY_DQN, Broken(), 8, out=tmp_path / "run")
    train(TINY_PPO, DISCRETE, 8, out=tmp_path / "run")
