"""Stable-Baselines3 and SBX have the same interface: their common script. Neither trains several seeds at once."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks import child, work


def _network(package: str, widths: tuple[int, ...], activation: str) -> dict[str, Any]:
    if package == "sbx":
        from flax import linen as nn

        return {"net_arch": list(widths), "activation_fn": getattr(nn, activation)}
    from torch import nn

    return {"net_arch": list(widths), "activation_fn": {"tanh": nn.Tanh, "relu": nn.ReLU}[activation]}


def ppo(package: str):
    """PPO on the common work."""
    from stable_baselines3.common.env_util import make_vec_env

    w = work.PPO
    agent = importlib.import_module(package).PPO
    return agent(
        "MlpPolicy",
        make_vec_env(w.env, n_envs=w.n_envs),
        n_steps=w.n_steps,
        batch_size=w.batch_size,
        n_epochs=w.n_epochs,
        learning_rate=w.learning_rate,
        max_grad_norm=w.max_grad_norm,
        ent_coef=w.entropy_coef,
        policy_kwargs=_network(package, w.widths, "tanh"),
        device="cpu",
    )


def off_policy(package: str, name: str):
    """DQN, SAC, TD3 or CrossQ on the common work."""
    w = getattr(work, name)
    agent = getattr(importlib.import_module(package), name)
    return agent(
        "MlpPolicy",
        w.env,
        batch_size=w.batch_size,
        buffer_size=w.capacity,
        learning_starts=w.warmup,
        learning_rate=w.learning_rate,
        train_freq=1,
        gradient_steps=1,
        policy_kwargs=_network(package, w.widths, "relu"),
        device="cpu",
        **({"target_update_interval": w.refresh} if name == "DQN" else {}),
    )


def _steady(package: str, name: str, seeds: int) -> dict[str, Any]:
    w = getattr(work, name)
    # slow, so that an eighth of the others' work is enough; warm-up starts over with each `learn`, and costs little
    steps = w.rollout * 8 if name == "PPO" else w.warmup + w.updates // 8
    amount = steps if name == "PPO" else steps - w.warmup
    agent = ppo(package) if name == "PPO" else off_policy(package, name)
    return child.first_and_rates(lambda: agent.learn(steps), amount)


def _newcomer(package: str, seeds: int) -> dict[str, Any]:
    from stable_baselines3.common.evaluation import evaluate_policy

    agent = ppo(package)
    agent.learn(work.NEWCOMER_STEPS)
    mean, _ = evaluate_policy(agent, agent.get_env(), n_eval_episodes=work.EVALUATION_EPISODES)
    return {"return": float(mean)}


def measurements(package: str) -> dict[str, child.Measurement]:
    """Every measurement of one of the two packages."""
    return {
        "import": lambda seeds: {"seconds": child.seconds(lambda: importlib.import_module(package))},
        "newcomer": lambda seeds: _newcomer(package, seeds),
        **{
            name.lower(): lambda seeds, name=name: _steady(package, name, seeds)
            for name in ("PPO", "DQN", "SAC", "TD3", "CrossQ")
        },
    }
