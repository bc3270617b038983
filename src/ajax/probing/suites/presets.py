"""The agents' probe presets: small and fast, frozen behind `DIGEST`, since every calibration holds for them alone."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ajax.agents.apg import APG
from ajax.agents.apo import APO
from ajax.agents.asac import ASAC
from ajax.agents.avg import AVG
from ajax.agents.crossq import CrossQ
from ajax.agents.dagger import DAgger
from ajax.agents.dqn import DQN
from ajax.agents.iql import IQL
from ajax.agents.ppo import PPO
from ajax.agents.pqn import PQN
from ajax.agents.redq import REDQ
from ajax.agents.rvisac import RVISAC
from ajax.agents.sac import SAC
from ajax.agents.td3 import TD3
from ajax.agents.udrl import UDRL
from ajax.buffers.episodes import Episodes
from ajax.buffers.replay import Replay
from ajax.buffers.rollout import Rollout
from ajax.core.agent import Agent
from ajax.core.config import assign, paths, resolve
from ajax.core.hooks import Extension
from ajax.core.schedules import Linear
from ajax.networks.torsos import Torso
from ajax.probing.spec import Spec
from ajax.probing.subjects import AjaxSubject
from ajax.probing.suites.experts import Listed

SMALL = Torso(widths=(32, 32))
SMOOTH = Torso(widths=(32, 32), activation="tanh")  # no kinks in Q(s, .) for the best action to sit in
DECAY = Linear(start=3e-3, end=1e-5)  # what is read in the end should have settled
REPLAY = Replay(capacity=4_000, batch_size=64, n_envs=4, steps=1, warmup=200)

REFERENCE = 0.5  # RVISAC's share of its values' mean

PRESETS: dict[str, Agent] = {
    "APG": APG(
        gamma=0.7,
        learning_rate=DECAY,
        torso=SMOOTH,
        rollout=Rollout(n_envs=4, n_steps=4, n_epochs=1, n_minibatches=1),
    ),
    "APO": APO(
        learning_rate=3e-3,
        entropy_coef=0.0,
        gae_lambda=0.5,  # an error of the gain moves all values by 1 / (1 - lambda) of it
        gain_rate=0.3,
        value_constraint=0.1,  # at 1 the values' mean swings for long
        torso=SMALL,
        rollout=Rollout(n_envs=4, n_steps=32, n_epochs=4, n_minibatches=4),
    ),
    "ASAC": ASAC(
        tau=0.05,
        reset_cost=0.0,
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        alpha=0.2,
        alpha_learning_rate=None,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "AVG": AVG(gamma=0.7, learning_rate=DECAY, actor_learning_rate=DECAY, alpha=0.2, torso=SMOOTH),
    "CrossQ": CrossQ(
        gamma=0.7,
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        alpha=0.2,
        alpha_learning_rate=None,
        policy_delay=2,
        renorm_warmup=200,
        torso=SMOOTH,
        critic_torso=SMOOTH,
        replay=dataclasses.replace(REPLAY, batch_size=256),  # fewer rows make noisy statistics
    ),
    "DAgger": DAgger(
        expert=Listed(actions=(2.0, -1.0, 0.5, 0.5), discrete=False),
        learning_rate=DECAY,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "DQN": DQN(gamma=0.7, learning_rate=3e-3, epsilon=0.5, target_period=20, torso=SMALL, replay=REPLAY),
    "IQL": IQL(
        gamma=0.7,
        tau=0.05,
        learning_rate=DECAY,
        value_learning_rate=DECAY,
        actor_learning_rate=DECAY,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "PPO": PPO(
        gamma=0.7,
        learning_rate=3e-3,
        torso=SMALL,
        rollout=Rollout(n_envs=4, n_steps=32, n_epochs=4, n_minibatches=4),
    ),
    "PQN": PQN(
        gamma=0.7,
        learning_rate=3e-3,
        epsilon=0.5,
        torso=Torso(widths=(32, 32), layer_norm=True),
        rollout=Rollout(n_envs=4, n_steps=32, n_epochs=4, n_minibatches=4),
    ),
    "REDQ": REDQ(
        gamma=0.7,
        tau=0.05,
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        alpha=0.2,
        alpha_learning_rate=None,
        n_critics=4,
        policy_delay=2,
        torso=SMOOTH,
        replay=dataclasses.replace(REPLAY, updates=2),
    ),
    "RVISAC": RVISAC(
        tau=0.05,
        reference_rate=0.05,
        reference_scale=REFERENCE,
        target_reset_rate=1.0,  # so that resets cost nothing
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        alpha=0.2,
        alpha_learning_rate=None,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "SAC": SAC(
        gamma=0.7,
        tau=0.05,
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        alpha=0.2,
        alpha_learning_rate=None,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "TD3": TD3(
        gamma=0.7,
        tau=0.05,
        learning_rate=DECAY,
        actor_learning_rate=DECAY,
        exploration_noise=0.5,
        torso=SMOOTH,
        replay=REPLAY,
    ),
    "UDRL": UDRL(
        learning_rate=DECAY,
        return_scale=1.0,
        horizon_scale=1.0,
        torso=SMALL,
        # every episode is kept, so that the best of them are no other than the rest
        replay=Episodes(
            capacity=8_192, max_length=4, last_few=64, batch_size=256, warmup=256, n_envs=16, steps=4, updates=8
        ),
    ),
}

DIGEST = "12e65aa8da9d"


def make(
    name: str,
    fields: Mapping[str, Any] | None = None,
    *,
    normalize_observations: bool = False,
    normalize_rewards: bool = False,
    extensions: tuple[Extension, ...] = (),
    dataset: Callable[[Spec], Any] | None = None,
    **overrides: Any,
) -> AjaxSubject:
    """Return the preset of an agent with fields replaced.

    Args:
        name: the agent.
        fields: values by name or dotted path (`"replay.n_envs"`).
        normalize_observations, normalize_rewards, extensions, dataset: see `AjaxSubject`.
        overrides: values by name.

    Raises:
        RuntimeError: an override did not reach the agent.
    """
    values = {**(fields or {}), **overrides}
    agent = assign(PRESETS[name], values)
    for field, value in values.items():
        if paths(agent).get(resolve(agent, field), value) != value:
            raise RuntimeError(f"{name}: {field}={value!r} did not reach the agent, which has {paths(agent)}")
    return AjaxSubject(agent, normalize_observations, normalize_rewards, extensions, dataset)


def digest() -> str:
    """Return the 12 hexadecimal digits that pin every preset; an option that is off (None) leaves no trace in them."""
    values = {name: {k: repr(v) for k, v in paths(agent).items() if v is not None} for name, agent in PRESETS.items()}
    text = json.dumps(values)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
