"""The rows of `python -m benchmarks.learning`: an agent on a task, and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import ajax
from ajax import Linear, Replay, Rollout, Torso

ZOO = "RL Zoo's benchmark.md"


@dataclass(frozen=True)
class Peer:
    """Another library's agent, given the same numbers.

    Attributes:
        agent: name of its class.
        settings: arguments of the class, as JSON values: "linear:X" stands for X times the share of the run that is
            left, and the network is `{"net_arch": widths, "activation_fn": "relu"}`; d3rlpy's `encoders` are the
            arguments that are given a network of `hidden_units`.
        package: where the class is from.
        n_envs: environments stepped in parallel.
        seeds: trained one after another, so fewer than ours.
    """

    agent: str
    settings: dict[str, Any]
    package: str = "stable_baselines3"
    n_envs: int = 1
    seeds: int = 2

    @property
    def library(self) -> str:
        """What tables call it."""
        return {"stable_baselines3": "SB3", "sbx": "SBX", "d3rlpy": "d3rlpy"}[self.package]


@dataclass(frozen=True)
class Published:
    """A return that others report, and where.

    Attributes:
        value: mean return.
        source: who reports it.
        steps: environment steps it was trained for.
    """

    value: float
    source: str
    steps: int | None = None


@dataclass(frozen=True)
class Row:
    """An agent on a task.

    Attributes:
        agent: configuration.
        env: the environment's name.
        steps: environment steps of each seed; updates, of one that learns offline.
        options: of `train`.
        peer: what is measured beside it.
        published: what is quoted beside it.
        teacher: whose replay it learns from offline, or whom DAgger imitates: a configuration, trained on the same task
            for `teacher_steps`.
        teacher_steps: environment steps of the teacher; offline, they are the dataset's transitions.
        label: what the agent is called, where its class does not say it.
        seeds: trained by one program.
    """

    agent: Any
    env: str
    steps: int
    options: dict[str, Any] = field(default_factory=dict)
    peer: Peer | None = None
    published: Published | None = None
    teacher: Any = None
    teacher_steps: int = 10_000
    label: str = ""
    seeds: int = 8

    @property
    def name(self) -> str:
        """What tables, `--only` and the results call it."""
        return f"{self.label or type(self.agent).__name__} {self.env.rpartition(':')[2]}"


SMALL = Torso(widths=(64, 64))
"""Hidden layers of the replay agents on Pendulum: the usual 256 would take sixteen times as long."""


def _small(**settings: Any) -> dict[str, Any]:
    network = {"net_arch": [64, 64], "activation_fn": "relu"}
    common = {"learning_rate": 1e-3, "batch_size": 256, "learning_starts": 1000, "train_freq": 1, "gradient_steps": 1}
    return {"policy_kwargs": network, "buffer_size": 20_000, **common, **settings}


def _offline(*more: str, **settings: Any) -> dict[str, Any]:
    common = {"actor_learning_rate": 1e-3, "critic_learning_rate": 1e-3, "batch_size": 256, "hidden_units": [64, 64]}
    encoders = [f"{name}_encoder_factory" for name in ("actor", "critic", *more)]
    return {**common, "gamma": 0.99, "tau": 0.005, "encoders": encoders, **settings}


def _replay(**changes: Any) -> Replay:
    return Replay(**({"capacity": 20_000, "warmup": 1_000} | changes))


RATES: dict[str, Any] = {"learning_rate": 1e-3, "actor_learning_rate": 1e-3, "alpha_learning_rate": 1e-3}
OFFLINE: dict[str, Any] = {"learning_rate": 1e-3, "actor_learning_rate": 1e-3, "torso": SMALL}
SAC = ajax.SAC(torso=SMALL, replay=_replay(), **RATES)

ROWS = (
    Row(
        ajax.PPO(
            gamma=0.98,
            gae_lambda=0.8,
            clip=Linear(start=0.2, end=0.0),
            learning_rate=Linear(start=1e-3, end=0.0),
            value_coef=1.0,
            rollout=Rollout(n_envs=8, n_steps=32, n_epochs=20, n_minibatches=1),
        ),
        "CartPole-v1",
        100_000,
        peer=Peer(
            "PPO",
            {
                **{"gamma": 0.98, "gae_lambda": 0.8, "clip_range": "linear:0.2", "learning_rate": "linear:1e-3"},
                **{"n_steps": 32, "batch_size": 256, "n_epochs": 20},
            },
            n_envs=8,
        ),
        published=Published(500.0, ZOO, 100_000),
    ),
    Row(
        ajax.PPO(
            gae_lambda=0.94, value_coef=1.0, rollout=Rollout(n_envs=16, n_steps=256, n_epochs=4, n_minibatches=64)
        ),
        "Acrobot-v1",
        200_000,
        peer=Peer("PPO", {"gae_lambda": 0.94, "n_steps": 256, "batch_size": 64, "n_epochs": 4}, n_envs=16),
        published=Published(-73.5, ZOO, 1_000_000),
    ),
    Row(
        ajax.PPO(
            gamma=0.9,
            learning_rate=1e-3,
            value_coef=1.0,
            rollout=Rollout(n_envs=4, n_steps=1024, n_epochs=10, n_minibatches=64),
        ),
        "Pendulum-v1",
        100_000,
        peer=Peer("PPO", {"gamma": 0.9, "learning_rate": 1e-3, "n_steps": 1024, "n_epochs": 10}, n_envs=4),
        published=Published(-172.2, ZOO, 100_000),
    ),
    Row(
        ajax.PPO(
            learning_rate=1e-3,
            rollout=Rollout(n_envs=16, n_steps=64, n_epochs=4, n_minibatches=16),
        ),
        "brax:inverted_pendulum",
        50_000,
    ),
    Row(
        ajax.DQN(
            learning_rate=2.3e-3,
            adam_eps=1e-8,
            max_grad_norm=10.0,
            epsilon=Linear(start=1.0, end=0.04, fraction=0.16),
            target_period=128,
            replay=Replay(capacity=50_000, batch_size=64, steps=256, updates=128),
        ),
        "CartPole-v1",
        50_000,
        peer=Peer(
            "DQN",
            {
                **{"learning_rate": 2.3e-3, "batch_size": 64, "buffer_size": 100_000, "learning_starts": 1000},
                **{"train_freq": 256, "gradient_steps": 128, "target_update_interval": 10},
                **{"exploration_fraction": 0.16, "exploration_final_eps": 0.04},
                "policy_kwargs": {"net_arch": [256, 256], "activation_fn": "relu"},
            },
        ),
        published=Published(500.0, ZOO, 50_000),
    ),
    Row(
        ajax.PQN(
            td_lambda=0.95,
            learning_rate=Linear(start=1e-4, end=0.0),
            epsilon=Linear(start=1.0, end=0.2, fraction=0.1),
            torso=Torso(widths=(128, 128), layer_norm=True),
            rollout=Rollout(n_envs=32, n_steps=64, n_epochs=4, n_minibatches=16),
        ),
        "CartPole-v1",
        500_000,
    ),
    Row(
        ajax.PQN(
            td_lambda=0.95,
            learning_rate=Linear(start=1e-4, end=0.0),
            epsilon=Linear(start=1.0, end=0.2, fraction=0.2),
            torso=Torso(widths=(256, 256), layer_norm=True),
            rollout=Rollout(n_envs=32, n_steps=64, n_epochs=4, n_minibatches=16),
        ),
        "CartPole-v1",
        500_000,
        options={"normalize_rewards": True, "reward_normalization_gamma": 0.99},
        label="PQN(scaled)",
    ),
    Row(
        ajax.PQN(
            td_lambda=0.65,
            learning_rate=Linear(start=5e-4, end=0.0),
            epsilon=Linear(start=1.0, end=0.05, fraction=0.1),
            torso=Torso(widths=(128,), cnn=ajax.CNN(), layer_norm=True),
            rollout=Rollout(n_envs=128, n_steps=32, n_epochs=2, n_minibatches=32),
        ),
        "Breakout-MinAtar",
        500_000,
    ),
    Row(
        ajax.APO(rollout=Rollout(n_envs=4, n_steps=1024, n_epochs=10, n_minibatches=64), learning_rate=1e-3),
        "Pendulum-v1",
        100_000,
    ),
    Row(
        SAC,
        "Pendulum-v1",
        10_000,
        peer=Peer("SAC", _small()),
        published=Published(-157.0, ZOO, 20_000),
    ),
    Row(
        ajax.TD3(learning_rate=1e-3, actor_learning_rate=1e-3, torso=SMALL, replay=_replay()),
        "Pendulum-v1",
        10_000,
        peer=Peer("TD3", _small(action_noise=0.1)),
        published=Published(-151.9, ZOO, 20_000),
    ),
    Row(
        ajax.REDQ(
            learning_rate=1e-3,
            actor_learning_rate=1e-3,
            alpha_learning_rate=1e-3,
            policy_delay=5,
            torso=SMALL,
            replay=_replay(batch_size=64, updates=5),
        ),
        "Pendulum-v1",
        4_000,
    ),
    Row(
        ajax.CrossQ(torso=SMALL, critic_torso=Torso(widths=(128, 128)), replay=_replay(batch_size=128)),
        "Pendulum-v1",
        8_000,
        peer=Peer(
            "CrossQ",
            _small(batch_size=128, policy_kwargs={"net_arch": {"pi": [64, 64], "qf": [128, 128]}}),
            package="sbx",
        ),
    ),
    Row(ajax.ASAC(torso=SMALL, replay=_replay(), **RATES), "Pendulum-v1", 10_000),
    Row(ajax.RVISAC(torso=SMALL, replay=_replay(), **RATES), "Pendulum-v1", 10_000),
    Row(ajax.APG(learning_rate=1e-3), "Pendulum-v1", 500_000),
    Row(ajax.APG(learning_rate=1e-3), "brax:inverted_double_pendulum", 200_000),
    Row(ajax.UDRL(replay=ajax.Episodes(capacity=200, last_few=10)), "CartPole-v1", 1_000_000),
    Row(
        ajax.AVG(gamma=0.95, learning_rate=1e-3, actor_learning_rate=5e-4),
        "Pendulum-v1",
        100_000,
        options={"normalize_observations": True},
    ),
    Row(
        ajax.IQL(**OFFLINE, value_learning_rate=1e-3),
        "Pendulum-v1",
        10_000,
        peer=Peer("IQL", _offline("value", expectile=0.7, weight_temp=3.0, max_weight=100.0), package="d3rlpy"),
        teacher=SAC,
    ),
    Row(
        ajax.IQL(**OFFLINE, value_learning_rate=1e-3, beta=0.1),
        "Pendulum-v1",
        10_000,
        peer=Peer("IQL", _offline("value", expectile=0.7, weight_temp=0.1, max_weight=100.0), package="d3rlpy"),
        teacher=SAC,
        label="IQL(beta=0.1)",
    ),
    Row(
        ajax.TD3(**OFFLINE, bc_alpha=2.5),
        "Pendulum-v1",
        10_000,
        peer=Peer("TD3PlusBC", _offline(alpha=2.5), package="d3rlpy"),
        teacher=SAC,
        label="TD3+BC",
    ),
    Row(
        ajax.DAgger(learning_rate=1e-3, torso=SMALL, replay=_replay()),
        "Pendulum-v1",
        4_000,
        teacher=SAC,
    ),
)
"""Every row, in the order of the page. Settings are the RL Zoo's where it has the task, but small networks."""
