"""Ajax: reinforcement-learning agents in JAX, and a testing system that names an agent's mistake.

    import ajax

    result = ajax.PPO(gamma=0.98).train("CartPole-v1", steps=200_000, seeds=8)

Names are loaded when they are first used: `import ajax` alone loads neither JAX nor an agent.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from ajax.agents.apg import APG as APG
    from ajax.agents.apo import APO as APO
    from ajax.agents.asac import ASAC as ASAC
    from ajax.agents.avg import AVG as AVG
    from ajax.agents.crossq import CrossQ as CrossQ
    from ajax.agents.dagger import DAgger as DAgger
    from ajax.agents.dqn import DQN as DQN
    from ajax.agents.iql import IQL as IQL
    from ajax.agents.ppo import PPO as PPO
    from ajax.agents.pqn import PQN as PQN
    from ajax.agents.redq import REDQ as REDQ
    from ajax.agents.rvisac import RVISAC as RVISAC
    from ajax.agents.sac import SAC as SAC
    from ajax.agents.td3 import TD3 as TD3
    from ajax.agents.udrl import UDRL as UDRL
    from ajax.buffers.dataset import Dataset as Dataset
    from ajax.buffers.episodes import Episodes as Episodes
    from ajax.buffers.replay import Replay as Replay
    from ajax.buffers.rollout import Rollout as Rollout
    from ajax.core.config import config as config
    from ajax.core.config import setting as setting
    from ajax.core.expert import Expert as Expert
    from ajax.core.expert import Stateless as Stateless
    from ajax.core.hooks import Extension as Extension
    from ajax.core.schedules import Cosine as Cosine
    from ajax.core.schedules import Linear as Linear
    from ajax.core.spaces import Box as Box
    from ajax.core.spaces import Discrete as Discrete
    from ajax.environments.base import Env as Env
    from ajax.environments.base import Step as Step
    from ajax.environments.checker import check_env as check_env
    from ajax.environments.registry import make as make
    from ajax.networks.cnn import CNN as CNN
    from ajax.networks.memory import GRU as GRU
    from ajax.networks.memory import LSTM as LSTM
    from ajax.networks.memory import Mamba as Mamba
    from ajax.networks.memory import Transformer as Transformer
    from ajax.networks.torsos import Torso as Torso
    from ajax.training.demonstrate import demonstrate as demonstrate
    from ajax.training.driver import evaluate as evaluate
    from ajax.training.driver import load as load
    from ajax.training.driver import resume as resume
    from ajax.training.minari import from_minari as from_minari
    from ajax.training.result import Result as Result

_HOMES = {
    "APG": "ajax.agents.apg",
    "APO": "ajax.agents.apo",
    "ASAC": "ajax.agents.asac",
    "AVG": "ajax.agents.avg",
    "CrossQ": "ajax.agents.crossq",
    "DAgger": "ajax.agents.dagger",
    "DQN": "ajax.agents.dqn",
    "IQL": "ajax.agents.iql",
    "PPO": "ajax.agents.ppo",
    "PQN": "ajax.agents.pqn",
    "REDQ": "ajax.agents.redq",
    "RVISAC": "ajax.agents.rvisac",
    "SAC": "ajax.agents.sac",
    "TD3": "ajax.agents.td3",
    "UDRL": "ajax.agents.udrl",
    "Episodes": "ajax.buffers.episodes",
    "Replay": "ajax.buffers.replay",
    "Rollout": "ajax.buffers.rollout",
    "Cosine": "ajax.core.schedules",
    "Linear": "ajax.core.schedules",
    "Expert": "ajax.core.expert",
    "Stateless": "ajax.core.expert",
    "Extension": "ajax.core.hooks",
    "config": "ajax.core.config",
    "setting": "ajax.core.config",
    "demonstrate": "ajax.training.demonstrate",
    "CNN": "ajax.networks.cnn",
    "GRU": "ajax.networks.memory",
    "LSTM": "ajax.networks.memory",
    "Mamba": "ajax.networks.memory",
    "Transformer": "ajax.networks.memory",
    "Torso": "ajax.networks.torsos",
    "Box": "ajax.core.spaces",
    "Discrete": "ajax.core.spaces",
    "Env": "ajax.environments.base",
    "Step": "ajax.environments.base",
    "check_env": "ajax.environments.checker",
    "make": "ajax.environments.registry",
    "Dataset": "ajax.buffers.dataset",
    "Result": "ajax.training.result",
    "evaluate": "ajax.training.driver",
    "from_minari": "ajax.training.minari",
    "load": "ajax.training.driver",
    "resume": "ajax.training.driver",
}
"""Public name: the module it lives in."""

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'ajax' has no attribute {name!r}. It has {', '.join(__all__)}.")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
