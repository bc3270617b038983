"""Split runs with discrete actions: APO, DQN, PPO, PQN and UDRL."""

from __future__ import annotations

from ajax.core.schedules import Linear
from ajax.probing.suites.presets import make
from ajax.probing.suites.split_run.facts import DICE, split_case

# Both halves learn; schedules are under way at the seam, so that a clock that starts again shows.
DQN = make(
    "DQN",
    {
        "epsilon": Linear(start=1.0, end=0.1),
        "learning_rate": Linear(start=3e-3, end=1e-3),
        "target_period": 7,
        "replay.warmup": 40,
        "replay.batch_size": 8,
        "replay.capacity": 120,
    },
).agent
SHORT = {"learning_rate": Linear(start=3e-3, end=1e-3), "rollout.n_steps": 8, "rollout.n_minibatches": 2}
EPISODES = {
    "learning_rate": Linear(start=3e-3, end=1e-3),
    "replay.capacity": 9,  # full at the seam
    "replay.max_length": 7,
    "replay.last_few": 4,
    "replay.batch_size": 8,
    "replay.n_envs": 4,
    "replay.warmup": 40,
}

CASES = (
    split_case("p4-APO", "APO, split run", make("APO", SHORT).agent, DICE, 192),
    split_case("p4-DQN", "DQN, split run", DQN, DICE, 240),
    split_case("p4-PPO", "PPO, split run", make("PPO", SHORT).agent, DICE, 192),
    split_case("p4-PQN", "PQN, split run", make("PQN", SHORT, epsilon=Linear(start=1.0, end=0.1)).agent, DICE, 192),
    split_case("p4-UDRL", "UDRL, split run", make("UDRL", EPISODES).agent, DICE, 208),
)
