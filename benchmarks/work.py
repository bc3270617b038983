"""The work that every library is given. Standard library only: each library's environment imports this."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OnPolicy:
    """Sizes of an agent that learns from rollouts.

    Attributes:
        env: environment name.
        n_envs: environments stepped in parallel.
        n_steps: steps of each in a rollout.
        n_epochs: passes over a rollout.
        n_minibatches: gradient updates in a pass.
        widths: hidden layers of every network.
        learning_rate: the optimizer's.
        max_grad_norm: clipping.
        entropy_coef: weight of PPO's entropy bonus.
    """

    env: str = "CartPole-v1"
    n_envs: int = 8
    n_steps: int = 128
    n_epochs: int = 4
    n_minibatches: int = 4
    widths: tuple[int, ...] = (64, 64)
    learning_rate: float = 1e-3
    max_grad_norm: float = 0.5
    entropy_coef: float = 0.01

    @property
    def rollout(self) -> int:
        """Environment steps in a rollout."""
        return self.n_envs * self.n_steps

    @property
    def batch_size(self) -> int:
        """Transitions in a minibatch."""
        return self.rollout // self.n_minibatches

    def steps(self, seeds: int) -> int:
        """Environment steps of each seed in one timed repeat, whole rollouts: about a second's work for up to 8 seeds.

        More seeds take as many each, so that what a seed costs to begin weighs the same.
        """
        return self.rollout * (200 // min(seeds, 8))


@dataclass(frozen=True)
class OffPolicy:
    """A replay agent's sizes: one environment.

    Attributes:
        env: environment name.
        batch_size: transitions in an update.
        widths: hidden layers of every network, relu.
        updates: updates of one seed in one timed repeat; several seeds share them.
        capacity: replay size.
        warmup: environment steps before the first update.
        learning_rate: Adam's.
        refresh: DQN's updates between two copies of the target network.
        per_step: updates in an environment step.
    """

    env: str
    batch_size: int
    widths: tuple[int, ...]
    updates: int
    capacity: int = 10_000
    warmup: int = 256
    learning_rate: float = 3e-4
    refresh: int = 500
    per_step: int = 1

    def steps(self, seeds: int) -> int:
        """Environment steps of each seed in one timed repeat."""
        return self.warmup + max(100, self.updates // seeds) // self.per_step

    def done(self, seeds: int) -> int:
        """Updates of all seeds in one timed repeat."""
        return seeds * (self.steps(seeds) - self.warmup) * self.per_step


PPO = OnPolicy()
PQN = OnPolicy(n_envs=32, n_steps=64, n_minibatches=16, widths=(128, 128), learning_rate=1e-4, max_grad_norm=10.0)
DQN = OffPolicy("CartPole-v1", 64, (128, 128), updates=5_000)
SAC = OffPolicy("Pendulum-v1", 256, (256, 256), updates=400)
TD3 = OffPolicy("Pendulum-v1", 256, (256, 256), updates=400)
REDQ = OffPolicy("Pendulum-v1", 256, (256, 256), updates=200, per_step=20)
CrossQ = OffPolicy("Pendulum-v1", 256, (256, 256), updates=400, learning_rate=1e-3)

NEWCOMER_STEPS = 100 * PPO.rollout
"""Steps of a first agent: "100k", in whole rollouts, so that no library trains more or less."""

EVALUATION_EPISODES = 16
"""Episodes of the newcomer's one evaluation, at the end."""
