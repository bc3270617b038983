"""Q-learning in plain NumPy: an example of a class that `ajax probe path/to/file.py:QLearner` can probe."""

from __future__ import annotations

import numpy as np


class QLearner:
    """Tabular Q-learning with a decaying step size and uniform actions (Sutton & Barto 2018, section 6.5)."""

    gamma = 0.8

    def __init__(self, env, seed):
        self.env, self.rng = env, np.random.default_rng(seed)
        self.table: dict[bytes, np.ndarray] = {}
        self.counts: dict[bytes, np.ndarray] = {}

    def row(self, obs):
        return self.table.setdefault(obs.tobytes(), np.zeros(self.env.action_space.n))

    def next_value(self, obs):
        return self.row(obs).max()

    def learn(self, steps):
        obs, _ = self.env.reset()
        for _ in range(steps):
            action = int(self.rng.integers(self.env.action_space.n))
            after, reward, terminated, truncated, _ = self.env.step(action)
            goal = reward + self.gamma * (not terminated) * self.next_value(after)
            counts = self.counts.setdefault(obs.tobytes(), np.zeros(self.env.action_space.n))
            counts[action] += 1
            self.row(obs)[action] += (goal - self.row(obs)[action]) / counts[action] ** 0.6
            obs = self.env.reset()[0] if terminated or truncated else after

    def q(self, obs):
        return np.stack([self.row(o) for o in obs.astype(np.float32)])

    def act(self, obs):
        return self.q(obs).argmax(-1)


class MeanLearner(QLearner):
    """The same with a mistake: it bootstraps from the mean."""

    def next_value(self, obs):
        return self.row(obs).mean()
