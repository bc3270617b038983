"""Stable-Baselines3's agents as originals."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import gymnasium
import numpy as np
import stable_baselines3
import stable_baselines3.common.policies
import torch
from stable_baselines3.common.buffers import RolloutBuffer
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples

from tests.conformance.kit import STAGES
from tests.conformance.live.capture import TorchOriginal, answers, layers, transitions
from tests.conformance.submaps import Flat

OBS, ACTION, N_ACTIONS = 4, 2, 3


class Spaces(gymnasium.Env):
    """Spaces to build an agent for; it is never stepped."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (OBS,), np.float32)

    def __init__(self, discrete: bool):
        box = gymnasium.spaces.Box(-1.0, 1.0, (ACTION,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(N_ACTIONS) if discrete else box


def built(agent: str, discrete: bool = False, n_envs: int = 1, **settings: Any) -> Any:
    """A Stable-Baselines3 agent with small networks, which logs nothing."""
    from stable_baselines3.common.vec_env import DummyVecEnv

    env = DummyVecEnv([lambda: Spaces(discrete)] * n_envs)
    model = getattr(stable_baselines3, agent)("MlpPolicy", env, seed=0, device="cpu", **settings)
    model.set_logger(Logger(folder=None, output_formats=[]))
    return model


@contextlib.contextmanager
def as_they_are():
    """Observations are not cast to float32 on entry."""
    with mock.patch.object(stable_baselines3.common.policies, "preprocess_obs", lambda obs, *_, **__: obs):
        yield


class Replayed(TorchOriginal):
    """An agent that learns from a replay, which hands out the batches that are recorded."""

    model: Any
    batch_size = 16

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """Transitions, and a draw of each name, of the actions' shape."""
        batch = transitions(rng, self.batch_size, OBS, ACTION)
        return batch, {name: rng.normal(size=(self.batch_size, ACTION)).astype(np.float32) for name in self.draws}

    draws: tuple[str, ...] = ()

    def train(self, batch: Flat) -> None:
        """One of the library's gradient steps on a batch."""
        b = {name: self.tensor(value) for name, value in batch.items()}
        column = {name: b[name][:, None] for name in ("done", "reward")}
        actions = b["action"] if b["action"].ndim == 2 else b["action"][:, None]
        samples = ReplayBufferSamples(b["obs"], actions, b["next_obs"], column["done"], column["reward"])
        self.model.replay_buffer = SimpleNamespace(sample=lambda batch_size, env=None: samples)
        with as_they_are():
            self.model.train(1, self.batch_size)


class TD3(Replayed):
    """TD3."""

    draws = ("target_noise",)
    config: ClassVar = {
        **{"act_dim": ACTION, "max_action": 1.0, "hidden_layers": [32, 32], "discount": 0.98, "tau": 0.01},
        **{"policy_noise": 0.3, "noise_clip": 0.4, "policy_freq": 2, "critic_lr": 1e-3, "actor_lr": 1e-3},
    }

    def __init__(self) -> None:
        super().__init__()
        c = self.config
        self.model = model = built(
            "TD3",
            learning_rate=c["critic_lr"],
            gamma=c["discount"],
            tau=c["tau"],
            target_policy_noise=c["policy_noise"],
            target_noise_clip=c["noise_clip"],
            policy_delay=c["policy_freq"],
            policy_kwargs={"net_arch": c["hidden_layers"]},
        )
        self.params = {}
        for prefix, actor, critic in (
            ("", model.actor, model.critic),
            ("target_", model.actor_target, model.critic_target),
        ):
            self.params |= layers(f"{prefix}actor", actor)
            self.params |= layers(f"{prefix}critic1", critic.qf0) | layers(f"{prefix}critic2", critic.qf1)
        self.optimizers = {"opt_actor": model.actor.optimizer, "opt_critic": model.critic.optimizer}
        self.shake()

    def state(self) -> Flat:
        """With the count of updates."""
        return super().state() | {"counter/total_it": np.int64(self.model._n_updates)}

    def update(self, batch: Flat, draws: Flat) -> None:
        """A gradient step, with the noise of the target's actions."""

        def noise(z: torch.Tensor, into: torch.Tensor, mean: float, std: float) -> torch.Tensor:
            return into.copy_(mean + std * z)

        with answers(torch.Tensor, "normal_", noise, [self.tensor(draws["target_noise"])]):
            self.train(batch)


class SAC(Replayed):
    """SAC with a learned temperature."""

    draws = ("action_noise", "next_action_noise")
    config: ClassVar = {
        **{"act_dim": ACTION, "actor_hidden": [16, 12], "critic_hidden": [20, 16]},
        **{"gamma": 0.98, "tau": 0.01, "lr": 1e-3},
    }

    def __init__(self) -> None:
        super().__init__()
        c = self.config
        self.model = model = built(
            "SAC",
            learning_rate=c["lr"],
            gamma=c["gamma"],
            tau=c["tau"],
            policy_kwargs={"net_arch": {"pi": c["actor_hidden"], "qf": c["critic_hidden"]}},
        )
        self.params = layers("actor", model.actor, ["layer0", "layer1", "mean", "log_std"])
        for prefix, critic in (("", model.critic), ("target_", model.critic_target)):
            self.params |= layers(f"{prefix}critic1", critic.qf0) | layers(f"{prefix}critic2", critic.qf1)
        self.params["log_alpha"] = model.log_ent_coef
        self.optimizers = {
            **{"opt_actor": model.actor.optimizer, "opt_critic": model.critic.optimizer},
            "opt_alpha": model.ent_coef_optimizer,
        }
        self.shake()

    def update(self, batch: Flat, draws: Flat) -> None:
        """A gradient step, with the noise of the actions at the states and at the next ones."""
        numbers = [self.tensor(draws[name]) for name in self.draws]
        normal = torch.distributions.normal
        with answers(normal, "_standard_normal", lambda z, shape, dtype, device: z, numbers):
            self.train(batch)


class DQN(Replayed):
    """DQN; an update is what happens at an environment step, and a gradient step."""

    config: ClassVar = {
        **{"num_actions": N_ACTIONS, "hidden": [16, 12], "gamma": 0.98, "lr": 1e-3, "adam_eps": 1e-8},
        **{"max_grad_norm": 0.2, "target_update_interval": 2},
    }

    def __init__(self) -> None:
        super().__init__()
        c = self.config
        self.model = model = built(
            "DQN",
            discrete=True,
            learning_rate=c["lr"],
            gamma=c["gamma"],
            max_grad_norm=c["max_grad_norm"],
            target_update_interval=c["target_update_interval"],
            policy_kwargs={"net_arch": c["hidden"]},
        )
        self.params = layers("q", model.q_net) | layers("target_q", model.q_net_target)
        self.optimizers = {"opt": model.policy.optimizer}
        self.shake()

    def state(self) -> Flat:
        """With the count of environment steps."""
        return super().state() | {"counter/n_calls": np.int64(self.model._n_calls)}

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """Transitions with errors on both sides of Huber's threshold."""
        batch = transitions(rng, self.batch_size, OBS, ACTION, N_ACTIONS)
        return batch | {"reward": 2 * batch["reward"]}, {}

    def update(self, batch: Flat, draws: Flat) -> None:
        """The step's hook, which may refresh the target, and a gradient step."""
        self.model._on_step()
        self.train(batch)


class PPO(TorchOriginal):
    """PPO; an update is a rollout with its advantages, and all gradient steps on it."""

    config: ClassVar = {
        **{"act_dim": ACTION, "actor_hidden": [16, 12], "critic_hidden": [20, 16], "n_steps": 8, "n_envs": 3},
        **{"batch_size": 8, "n_epochs": 4, "lr": 3e-3, "gamma": 0.98, "gae_lambda": 0.9, "clip_range": 0.02},
        **{"ent_coef": 0.01, "vf_coef": 0.5, "max_grad_norm": 0.5, "adam_eps": 1e-5},
    }

    def __init__(self) -> None:
        super().__init__()
        c = self.config
        names = ("n_steps", "batch_size", "n_epochs", "gamma", "gae_lambda", "clip_range")
        self.model = model = built(
            "PPO",
            n_envs=c["n_envs"],
            learning_rate=c["lr"],
            policy_kwargs={"net_arch": {"pi": c["actor_hidden"], "vf": c["critic_hidden"]}},
            **{name: c[name] for name in (*names, "ent_coef", "vf_coef", "max_grad_norm")},
        )
        policy = model.policy
        self.params = {
            **layers("actor", policy.mlp_extractor.policy_net),
            **layers("actor", policy.action_net, ["mean"]),
            "actor/log_std": policy.log_std,
            **layers("critic", policy.mlp_extractor.value_net),
            **layers("critic", policy.value_net, ["value"]),
        }
        self.optimizers = {"opt": policy.optimizer}
        self.shake()
        policy.optimizer.register_step_post_hook(self.stepped)
        self.steps = 0

    def stepped(self, *_: Any) -> None:
        """Keep the state after a gradient step that records hold."""
        self.steps += 1
        if self.steps in STAGES:
            flat = {name: np.array(value) for name, value in self.state().items()}
            self.reached[STAGES[self.steps].replace("after", "gradstep")] = flat

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """A rollout (time, environments, ...), and the order of its rows in every epoch."""
        c = self.config
        time, envs = c["n_steps"], c["n_envs"]
        batch = {
            "obs": rng.normal(size=(time, envs, OBS)),
            "action": rng.normal(size=(time, envs, ACTION)),
            "reward": rng.normal(size=(time, envs)),
            "episode_start": rng.uniform(size=(time, envs)) < 0.3,
            "last_obs": rng.normal(size=(envs, OBS)),
            "last_done": np.arange(envs) == 0,
        }
        orders = np.stack([rng.permutation(time * envs) for _ in range(c["n_epochs"])])
        return {name: value.astype(np.float32) for name, value in batch.items()}, {"permutation": orders}

    def update(self, batch: Flat, draws: Flat) -> None:
        """Values and log-probabilities of the rollout, the buffer's advantages, and the gradient steps."""
        model, c = self.model, self.config
        space = model.get_env()
        buffer = RolloutBuffer(
            c["n_steps"],
            space.observation_space,
            space.action_space,
            "cpu",
            c["gae_lambda"],
            c["gamma"],
            c["n_envs"],
        )
        for name in ("observations", "actions", "rewards", "returns", "episode_starts", "values", "log_probs"):
            setattr(buffer, name, getattr(buffer, name).astype(np.dtype(str(self.dtype).removeprefix("torch."))))
        buffer.advantages = buffer.advantages.astype(buffer.values.dtype)
        with as_they_are():
            for t in range(c["n_steps"]):
                obs, action = self.tensor(batch["obs"][t]), self.tensor(batch["action"][t])
                with torch.no_grad():
                    value, log_prob, _ = model.policy.evaluate_actions(obs, action)
                buffer.add(obs.numpy(), action.numpy(), batch["reward"][t], batch["episode_start"][t], value, log_prob)
            with torch.no_grad():
                last = model.policy.predict_values(self.tensor(batch["last_obs"]))
            buffer.compute_returns_and_advantage(last, batch["last_done"])
            model.rollout_buffer, self.steps = buffer, 0
            orders = list(draws["permutation"])
            with answers(np.random, "permutation", lambda order, n: order, orders):
                model.train()
