"""Stable-Baselines3's DQN and SAC, each with one mistake: what a report must name. `ajax probe FILE.py:MeanDQN`."""

from __future__ import annotations

import torch
from stable_baselines3 import DQN, SAC
from stable_baselines3.common.distributions import DiagGaussianDistribution, SquashedDiagGaussianDistribution


class MeanDQN(DQN):
    """It bootstraps from the mean over actions."""

    def train(self, gradient_steps, batch_size=100):
        for _ in range(gradient_steps):
            batch = self.replay_buffer.sample(batch_size)
            with torch.no_grad():
                after = self.q_net_target(batch.next_observations).mean(1, keepdim=True)
                discounts = self.gamma if batch.discounts is None else batch.discounts
                target = batch.rewards + discounts * (1 - batch.dones) * after
            taken = self.q_net(batch.observations).gather(1, batch.actions)
            loss = torch.nn.functional.smooth_l1_loss(taken, target)
            self.policy.optimizer.zero_grad()
            loss.backward()
            self.policy.optimizer.step()


class TimeLimitDQN(DQN):
    """It takes time limits for terminations."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, replay_buffer_kwargs={"handle_timeout_termination": False}, **kwargs)


class _Unsquashed(SquashedDiagGaussianDistribution):
    def log_prob(self, actions, gaussian_actions=None):
        return DiagGaussianDistribution.log_prob(self, gaussian_actions)


class NoJacobianSAC(SAC):
    """Its log-probabilities are those of the Gaussian before tanh."""

    def _setup_model(self):
        super()._setup_model()
        self.actor.action_dist = _Unsquashed(self.actor.action_dist.action_dim)
