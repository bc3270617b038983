"""Trains one seed of an agent of Stable-Baselines3 or SBX: what `benchmarks.learning` measures beside ours.

Reads the job as JSON from standard input and prints the result as the last line of standard output. Runs in the other
library's environment, on one thread of PyTorch.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import sys
import time
from typing import Any


def settings_of(settings: dict[str, Any], package: str, action_size: int) -> dict[str, Any]:
    """Arguments of the library's class from the job's JSON values."""
    made = {name: _schedule(value) if isinstance(value, str) else value for name, value in settings.items()}
    if "activation_fn" in made.get("policy_kwargs", {}):
        home = importlib.import_module("flax.linen" if package == "sbx" else "torch.nn")
        name = made["policy_kwargs"]["activation_fn"]
        function = getattr(home, name if package == "sbx" else {"relu": "ReLU", "tanh": "Tanh"}[name])
        made["policy_kwargs"] = made["policy_kwargs"] | {"activation_fn": function}
    if "action_noise" in made:
        import numpy as np
        from stable_baselines3.common.noise import NormalActionNoise

        made["action_noise"] = NormalActionNoise(np.zeros(action_size), np.full(action_size, made["action_noise"]))
    return made


def _schedule(text: str) -> Any:
    start = float(text.removeprefix("linear:"))
    return lambda left: start * left


def train(job: dict[str, Any], seed: int) -> tuple[list[float], float]:
    """Train one seed; returns the mean return of every evaluation and of the last, longer one."""
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    class Evaluations(BaseCallback):
        """Evaluates the greedy policy at every point."""

        def __init__(self):
            super().__init__()
            self.returns: list[float] = []

        def _on_step(self) -> bool:
            while len(self.returns) < len(job["at"]) and self.num_timesteps >= job["at"][len(self.returns)]:
                self.returns.append(evaluate(job["episodes"]))
            return True

    env, apart = make_vec_env(job["env"], job["n_envs"], seed=seed), make_vec_env(job["env"], 1, seed=10_000 + seed)
    size = env.action_space.shape[0] if env.action_space.shape else 0
    agent = getattr(importlib.import_module(job["package"]), job["agent"])
    model = agent("MlpPolicy", env, seed=seed, device="cpu", **settings_of(job["settings"], job["package"], size))

    def evaluate(episodes: int) -> float:
        return float(evaluate_policy(model, apart, n_eval_episodes=episodes)[0])

    evaluations = Evaluations()
    model.learn(job["steps"], callback=evaluations)
    return evaluations.returns, evaluate(job["final_episodes"])


def main() -> None:
    """Train the seed of the job."""
    job = json.load(sys.stdin)
    returns, final = train(job, job["seed"])
    name = {"stable_baselines3": "stable_baselines3", "sbx": "sbx-rl"}[job["package"]]
    found = {name: importlib.metadata.version(name) for name in (name, "torch", "gymnasium")}
    result = {"returns": returns, "final": final, "seconds": round(time.process_time(), 1), "versions": found}
    print(json.dumps(result))


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
    main()
