"""Our agents against the installed Stable-Baselines3: the checks of the records, on records made now."""

from __future__ import annotations

import dataclasses
from functools import cache

import pytest

pytest.importorskip("stable_baselines3", reason="make conformance-live installs it")

from tests.conformance import test_dqn_sb3, test_ppo_sb3, test_sac_sb3, test_td3_sfujim
from tests.conformance.kit import Check
from tests.conformance.live import sb3
from tests.conformance.live.capture import record
from tests.conformance.test_conventions import without

CHECKS = {
    "DQN": (sb3.DQN, test_dqn_sb3.check_of),
    "PPO": (sb3.PPO, test_ppo_sb3.check_of),
    "SAC": (sb3.SAC, test_sac_sb3.check_of),
    "TD3": (sb3.TD3, test_td3_sfujim.check_of),
}
WRONG = {
    "DQN": ({"gamma": 0.985}, {"target_period": 1}, {"adam_eps": 1e-5}, {"max_grad_norm": 0.21}),
    "PPO": ({"gae_lambda": 0.91}, {"clip": 0.025}, {"entropy_coef": 0.015}, {"value_coef": 0.5}),
    "SAC": ({"gamma": 0.985}, {"tau": 0.011}, {"target_entropy": -2.2}, {"alpha_learning_rate": 1.01e-3}),
    "TD3": ({"target_noise": 0.33}, {"target_noise_clip": 0.36}, {"policy_delay": 1}, {"tau": 0.011}),
}


@cache
def check(name: str) -> Check:
    """One agent, and what its namesake does."""
    original, check_of = CHECKS[name]
    return check_of(record(original))


@pytest.mark.parametrize("name", CHECKS)
def test_float64(name):
    assert check(name).misfits() == []


@pytest.mark.parametrize("name", CHECKS)
def test_float32(name):
    """Two updates: the roundings of more gradient steps than PPO's 24 pile up."""
    assert check(name).misfits(2, x64=False) == []


@pytest.mark.parametrize(("name", "wrong"), [(name, wrong) for name in WRONG for wrong in WRONG[name]], ids=str)
def test_a_wrong_number_is_caught(name, wrong):
    assert check(name).misfits(2, agent=dataclasses.replace(check(name).agent, **wrong))


@pytest.mark.parametrize(
    ("name", "conventions"),
    [("DQN", ["torch_clip"]), ("PPO", ["torch_clip", "unbiased_std"]), ("SAC", ["tanh_eps", "linear_log_alpha"])],
)
def test_a_registered_difference_is_there(name, conventions):
    assert {patch.__name__ for patch in check(name).conventions} == set(conventions)
    for convention in conventions:
        assert without(check(name), convention).misfits(2), convention
