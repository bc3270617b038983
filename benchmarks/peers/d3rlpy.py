"""Trains one seed of an offline agent of d3rlpy: what `benchmarks.learning` measures beside ours.

Reads the job as JSON from standard input and prints the result as the last line of standard output. Runs in the other
library's environment, on one thread of PyTorch.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from typing import Any


def train(job: dict[str, Any]) -> tuple[list[float], float]:
    """Train one seed; returns the mean return of every evaluation and of the last, longer one."""
    import d3rlpy
    import gymnasium
    import numpy as np
    from d3rlpy.models.encoders import VectorEncoderFactory

    d3rlpy.seed(job["seed"])
    env = gymnasium.make(job["env"])
    env.reset(seed=10_000 + job["seed"])
    scale = env.action_space.high
    with np.load(job["data"]) as data:
        rows = {name: data[name].astype(np.float32) for name in data}
    dataset = d3rlpy.dataset.MDPDataset(
        rows["obs"], rows["action"] / scale, rows["reward"], rows["terminated"], rows["truncated"]
    )
    settings = dict(job["settings"])
    encoder = VectorEncoderFactory(hidden_units=settings.pop("hidden_units"))
    encoders = dict.fromkeys(settings.pop("encoders"), encoder)
    agent = getattr(d3rlpy.algos, f"{job['agent']}Config")(**settings, **encoders).create(device="cpu")

    def evaluate(episodes: int) -> float:
        returns = []
        for _ in range(episodes):
            obs, total, ended = env.reset()[0], 0.0, False
            while not ended:
                action = np.clip(agent.predict(obs[None].astype(np.float32))[0], -1, 1) * scale
                obs, reward, terminated, truncated, _ = env.step(action)
                total, ended = total + float(reward), terminated or truncated
            returns.append(total)
        return float(np.mean(returns))

    returns = []
    epochs = agent.fitter(
        dataset,
        n_steps=job["steps"],
        n_steps_per_epoch=job["at"][0],
        show_progress=False,
        logger_adapter=d3rlpy.logging.NoopAdapterFactory(),
    )
    for _ in epochs:
        returns.append(evaluate(job["episodes"]))
    return returns, evaluate(job["final_episodes"])


def main() -> None:
    """Train the seed of the job."""
    returns, final = train(json.load(sys.stdin))
    found = {name: importlib.metadata.version(name) for name in ("d3rlpy", "torch", "gymnasium")}
    print(json.dumps({"returns": returns, "final": final, "seconds": round(time.process_time(), 1), "versions": found}))


if __name__ == "__main__":
    main()
