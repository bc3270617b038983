"""A DQN in one file of PyTorch, in CleanRL's manner: `ajax probe path/to/torch_dqn.py:TorchDQN` probes it."""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import nn


class TorchDQN:
    """Q-learning with a network, a replay and a target network (Mnih et al. 2015)."""

    gamma = 0.8

    def __init__(self, env, seed):
        torch.set_num_threads(1)
        torch.manual_seed(seed)
        self.env, self.rng = env, np.random.default_rng(seed)
        features, self.n_actions = env.observation_space.shape[0], int(env.action_space.n)
        self.net = nn.Sequential(nn.Linear(features, 32), nn.ReLU(), nn.Linear(32, self.n_actions))
        self.target = copy.deepcopy(self.net)
        self.optimizer = torch.optim.Adam(self.net.parameters(), 3e-3)
        self.replay = []

    def learn(self, steps):
        obs, _ = self.env.reset()
        for step in range(steps):
            greedy = step > 200 and self.rng.random() < 0.5
            action = int(self.act(obs[None])[0]) if greedy else int(self.rng.integers(self.n_actions))
            after, reward, terminated, truncated, _ = self.env.step(action)
            self.replay.append((obs, action, reward, after, terminated))
            obs = self.env.reset()[0] if terminated or truncated else after
            if step >= 200 and step % 4 == 0:
                self.update()
            if step % 80 == 0:
                self.target.load_state_dict(self.net.state_dict())

    def update(self):
        rows = [self.replay[i] for i in self.rng.integers(len(self.replay), size=64)]
        obs, action, reward, after, terminated = (
            torch.as_tensor(np.array(column)) for column in zip(*rows, strict=True)
        )
        with torch.no_grad():
            goal = reward.float() + self.gamma * ~terminated * self.next_value(after)
        taken = self.net(obs).gather(1, action[:, None])[:, 0]
        loss = nn.functional.mse_loss(taken, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def next_value(self, after):
        return self.target(after).max(1).values

    def q(self, obs):
        with torch.no_grad():
            return self.net(torch.as_tensor(obs, dtype=torch.float32)).numpy()

    def act(self, obs):
        return self.q(obs).argmax(-1)


class MeanTorchDQN(TorchDQN):
    """The same with a mistake: it bootstraps from the mean."""

    def next_value(self, after):
        return self.target(after).mean(1)
