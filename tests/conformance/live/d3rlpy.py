"""d3rlpy's TD3+BC and IQL as originals."""

from __future__ import annotations

from typing import Any, ClassVar

import d3rlpy
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import torch
from d3rlpy.models.encoders import VectorEncoderFactory
from d3rlpy.torch_utility import TorchMiniBatch

from ajax.core.config import config
from ajax.core.distributions import Normal
from ajax.core.hooks import Extension, View
from ajax.core.records import Inputs
from ajax.core.returns import td_target
from ajax.networks.torsos import MLP, Torso
from tests.conformance.live.capture import TorchOriginal, answers, layers, transitions
from tests.conformance.submaps import Flat

OBS, ACTION = 4, 2


class D3rlpy(TorchOriginal):
    """An agent of d3rlpy.

    Attributes:
        impl: what d3rlpy updates.
        step: updates made.
    """

    batch_size = 16
    impl: Any
    step = 0

    def build(self, settings: Any, prefixes: tuple[tuple[str, str], ...]) -> None:
        """Make the agent, and name the parameters of its critics."""
        d3rlpy.seed(0)
        algorithm = settings.create(device="cpu")
        algorithm.create_impl((OBS,), ACTION)
        self.impl, self.params = algorithm.impl, {}
        for prefix, name in prefixes:
            for i, critic in enumerate(getattr(self.impl.modules, name), 1):
                self.params |= layers(f"{prefix}critic{i}", critic)

    def learn(self, batch: Flat) -> None:
        """An update as d3rlpy's loop makes it."""
        b = {name: self.tensor(value) for name, value in batch.items()}
        reward, done = b["reward"][:, None], b["done"][:, None]
        samples = TorchMiniBatch(
            observations=b["obs"],
            actions=b["action"],
            rewards=reward,
            next_observations=b["next_obs"],
            next_actions=b["action"],
            returns_to_go=reward,
            terminals=done,
            intervals=torch.ones_like(done),
            device="cpu",
        )
        self.impl.inner_update(samples, self.step)
        self.step += 1


CRITICS = (("", "q_funcs"), ("target_", "targ_q_funcs"))


class TD3BC(D3rlpy):
    """TD3+BC."""

    config: ClassVar = {
        **{"act_dim": ACTION, "max_action": 1.0, "hidden_layers": [32, 32], "discount": 0.98, "tau": 0.01},
        **{"policy_noise": 0.3, "noise_clip": 0.4, "policy_freq": 2, "critic_lr": 1e-3, "actor_lr": 1e-3},
        "alpha": 2.0,
    }

    def __init__(self) -> None:
        super().__init__()
        c, encoder = self.config, VectorEncoderFactory(hidden_units=self.config["hidden_layers"])
        settings = d3rlpy.algos.TD3PlusBCConfig(
            actor_learning_rate=c["actor_lr"],
            critic_learning_rate=c["critic_lr"],
            actor_encoder_factory=encoder,
            critic_encoder_factory=encoder,
            gamma=c["discount"],
            tau=c["tau"],
            target_smoothing_sigma=c["policy_noise"],
            target_smoothing_clip=c["noise_clip"],
            update_actor_interval=c["policy_freq"],
            alpha=c["alpha"],
        )
        self.build(settings, CRITICS)
        modules = self.impl.modules
        self.params |= layers("actor", modules.policy) | layers("target_actor", modules.targ_policy)
        self.optimizers = {"opt_actor": modules.actor_optim.optim, "opt_critic": modules.critic_optim.optim}
        self.shake()

    def state(self) -> Flat:
        """With the count of updates: d3rlpy's actor learns where it is even, before it goes up."""
        return super().state() | {"counter/total_it": np.int64(self.step - 1)}

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """Transitions, and the noise of the target's actions."""
        draws = {"target_noise": rng.normal(size=(self.batch_size, ACTION)).astype(np.float32)}
        return transitions(rng, self.batch_size, OBS, ACTION), draws

    def update(self, batch: Flat, draws: Flat) -> None:
        """An update, with that noise."""
        with answers(torch, "randn", lambda z, shape, device: z, [self.tensor(draws["target_noise"])]):
            self.learn(batch)


class IQL(D3rlpy):
    """IQL; critics and value have one optimizer, recorded as one of each."""

    config: ClassVar = {
        # an expectile that float32 holds exactly: d3rlpy weighs errors in float32 whatever it computes in
        **{"act_dim": ACTION, "hidden": [16, 12], "discount": 0.98, "tau": 0.01, "expectile": 0.75},
        **{"critic_lr": 1e-3, "value_lr": 1e-3, "actor_lr": 1e-3, "temperature": 2.0, "weight_cap": 1.1},
        "max_steps": 1,
    }

    def __init__(self) -> None:
        super().__init__()
        c, encoder = self.config, VectorEncoderFactory(hidden_units=self.config["hidden"])
        settings = d3rlpy.algos.IQLConfig(
            actor_learning_rate=c["actor_lr"],
            critic_learning_rate=c["critic_lr"],
            actor_encoder_factory=encoder,
            critic_encoder_factory=encoder,
            value_encoder_factory=encoder,
            gamma=c["discount"],
            tau=c["tau"],
            expectile=c["expectile"],
            weight_temp=c["temperature"],
            max_weight=c["weight_cap"],
        )
        self.build(settings, CRITICS)
        modules, names = self.impl.modules, ["dense0", "dense1", "dense2"]
        self.params = {name.replace("layer", "dense"): tensor for name, tensor in self.params.items()}
        self.params |= layers("value", modules.value_func, names)
        self.params |= layers("actor", modules.policy, ["dense0", "dense1", "mean"])
        self.params["actor/log_std"] = modules.policy._logstd
        both = modules.critic_optim.optim
        self.optimizers = {"opt_actor": modules.actor_optim.optim, "opt_critic": both, "opt_value": both}
        self.shake()

    def state(self) -> Flat:
        """The moments of critics and value under their own names."""
        flat = {name: value.reshape(-1) if "log_std" in name else value for name, value in super().state().items()}
        others = {"opt_critic": "/value/", "opt_value": "/critic"}
        return {
            n: v for n, v in flat.items() if not any(n.startswith(opt) and part in n for opt, part in others.items())
        }

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """Transitions: nothing is drawn."""
        return transitions(rng, self.batch_size, OBS, ACTION), {}

    def update(self, batch: Flat, draws: Flat) -> None:
        """An update."""
        self.learn(batch)


@config
class EarlyValue(Extension):
    """d3rlpy's critics and value step at once, so that the critics' target reads the value as it was.

    In the authors' code, and in Ajax, the value steps first and the target reads it as it is then.
    """

    def on_target(self, target: jax.Array, view: View) -> jax.Array:
        """r + gamma V(s') of the value before its step."""
        b = view.batch
        return td_target(b.reward, view.agent.gamma * (1.0 - b.terminated), view.state.value(b.next))


class SigmoidDeviation(nn.Module):
    """A policy whose log deviation is a sigmoid between the bounds that the authors', and Ajax, clip it to."""

    size: int
    torso: Torso

    @nn.compact
    def __call__(self, x: Inputs) -> Normal:
        """pi(.|s)."""
        loc = jnp.tanh(MLP(self.torso, self.size)(x.obs))
        raw = self.param("log_std", nn.initializers.zeros, (self.size,))
        return Normal(loc, jnp.broadcast_to(-5.0 + 7.0 * nn.sigmoid(raw), loc.shape))
