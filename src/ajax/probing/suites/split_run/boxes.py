"""Split runs with actions in a box: APG, ASAC, AVG, CrossQ, REDQ, RVISAC and SAC with a tuned
temperature, IQL and TD3.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.core.schedules import Cosine, Linear
from ajax.probing import parabola
from ajax.probing.suites.bookkeeping.walk import WALK
from ajax.probing.suites.presets import DECAY, make
from ajax.probing.suites.split_run.facts import split_case

# The seam lies after an odd number of updates, so that a delay that starts again shows.
STEPS, SHORT = 328, {"replay.warmup": 40}

# A delay of three for two updates a round is under way at the seam.
REDQ = make("REDQ", SHORT, alpha_learning_rate=DECAY, policy_delay=3).agent

IQL = make("IQL", SHORT, actor_learning_rate=Cosine(start=3e-3)).agent

# The walk with a reward that has a derivative in the action.
SLOPING = dataclasses.replace(WALK, quadratic=np.broadcast_to(parabola(1.0), WALK.quadratic.shape))
APG = make("APG", {"rollout.n_steps": 8, "learning_rate": Linear(start=3e-3, end=1e-3)}).agent

CASES = (
    split_case("p4-APG", "APG, split run", APG, SLOPING, 192),
    split_case("p4-ASAC", "ASAC, split run", make("ASAC", SHORT, alpha_learning_rate=DECAY).agent, WALK, STEPS),
    split_case("p4-AVG", "AVG, split run", make("AVG").agent, WALK, STEPS),
    split_case("p4-CrossQ", "CrossQ, split run", make("CrossQ", SHORT, alpha_learning_rate=DECAY).agent, WALK, STEPS),
    split_case(
        "p4-DAgger", "DAgger, split run", make("DAgger", SHORT, beta=Linear(start=1.0, end=0.0)).agent, WALK, STEPS
    ),
    split_case("p4-IQL", "IQL, split run", IQL, WALK, STEPS),
    split_case("p4-REDQ", "REDQ, split run", REDQ, WALK, STEPS),
    split_case("p4-RVISAC", "RVISAC, split run", make("RVISAC", SHORT, alpha_learning_rate=DECAY).agent, WALK, STEPS),
    split_case("p4-SAC", "SAC, split run", make("SAC", SHORT, alpha_learning_rate=DECAY).agent, WALK, STEPS),
    split_case("p4-TD3", "TD3, split run", make("TD3", SHORT).agent, WALK, STEPS),
)
