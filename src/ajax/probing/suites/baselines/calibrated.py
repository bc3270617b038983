"""Budgets and tolerances of other libraries' agents, by case: found on 64 seeds, checked on 32 others."""

from __future__ import annotations

from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

CALIBRATED: dict[str, Calibrated] = {
    "p0a-sb3:DQN": Calibrated(
        1_000,
        (0.021, 0.023, 0.02, 0.02, 0.02, 0.02),
        "1000, the only budget tried; worst error of 64 seeds 0.011; cert 32/32",
    ),
    "p0c-sb3:DQN": Calibrated(
        1_000,
        (0.024, 0.02, 0.02, 0.024),  # the first is half of its gap, 1.5 times the worst error
        "1000, the only budget tried; worst error of 64 seeds 0.016; cert 32/32",
    ),
    "p6-sb3:DQN": Calibrated(
        1_000, (0.063, 0.076, 0.02), "1000, the only budget tried; worst error of 64 seeds 0.038; cert 32/32"
    ),
    "p6d-sb3:DQN": Calibrated(1_000, (0.02,), "1000, the only budget tried; worst error of 64 seeds 0.002; cert 32/32"),
}

UNCERTIFIED = {
    "p6b-sb3:DQN": 2_000,
    "p0a-sb3:PPO": 5_120,
    "p1-sb3:PPO": 10_240,
    "p7-sb3:PPO": 2_560,
    "p6-sb3:PPO": 2_560,
    "p6b-sb3:PPO": 2_560,
    "p6c-sb3:PPO": 2_560,
    "box-sb3:PPO": 20_480,
    "p0a-sb3:SAC": 4_000,
    "p6-sb3:SAC": 1_500,
    "p0a-sb3:TD3": 2_000,
    "p6-sb3:TD3": 1_000,
    "p0a-sbx:DQN": 1_000,
    "p0c-sbx:DQN": 1_000,
    "p6-sbx:DQN": 1_000,
    "p6b-sbx:DQN": 2_000,
    "p6d-sbx:DQN": 1_000,
    "p0a-sbx:PPO": 5_120,
    "p1-sbx:PPO": 10_240,
    "p7-sbx:PPO": 5_120,
    "p6-sbx:PPO": 2_560,
    "p6b-sbx:PPO": 2_560,
    "p6c-sbx:PPO": 2_560,
    "box-sbx:PPO": 20_480,
    "p0a-sbx:SAC": 4_000,
    "p6-sbx:SAC": 1_500,
    "p0a-sbx:TD3": 2_000,
    "p6-sbx:TD3": 1_000,
}
"""Budgets of cases without a ladder yet: their tolerances are the largest that can't reach a wrong answer."""


def calibrated(case: str) -> Calibrated:
    """Return what calibration found for a case: `"p0a-sb3:DQN"`."""
    return CALIBRATED.get(case, UNCALIBRATED)
