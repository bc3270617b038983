"""SBX's CrossQ as an original. Its functions run operation by operation, so that each draw can be answered."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
import sbx
import torch
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from tensorflow_probability.substrates.jax.internal import samplers

from tests.conformance.live.capture import Original, answers, transitions
from tests.conformance.live.sb3 import ACTION, OBS, Spaces
from tests.conformance.submaps import Flat


class CrossQ(Original):
    """CrossQ, over the end of the renormalization's warm-up."""

    batch_size, warmup = 16, 3
    config: ClassVar = {
        **{"act_dim": ACTION, "actor_hidden": [16, 12], "critic_hidden": [20, 16], "renorm_warmup_steps": 5},
        # a discount that float32 holds exactly: SBX keeps it in float32 whatever it computes in
        **{"gamma": 1 - 2.0**-6, "lr": 1e-3, "alpha_lr": 1e-3, "adam_b1": 0.5, "policy_delay": 3},
    }

    def __init__(self) -> None:
        super().__init__()
        c, self.x64 = self.config, False
        self.model = sbx.CrossQ(
            "MlpPolicy",
            Spaces(discrete=False),
            seed=0,
            gamma=c["gamma"],
            learning_rate=c["lr"],
            policy_delay=c["policy_delay"],
            policy_kwargs={
                "net_arch": {"pi": c["actor_hidden"], "qf": c["critic_hidden"]},
                "renorm_warmup_steps": c["renorm_warmup_steps"],
            },
        )
        self.model.set_logger(Logger(folder=None, output_formats=[]))
        rng = np.random.default_rng(1)
        self.each(lambda x: x + rng.normal(scale=0.05, size=x.shape).astype(np.float32), ("params",))

    def each(self, change: Any, of: tuple[str, ...]) -> None:
        """Change every array of these parts of the networks' states."""
        model = self.model
        for owner, name in ((model.policy, "qf_state"), (model.policy, "actor_state"), (model, "ent_coef_state")):
            state = getattr(owner, name)
            changed = {part: jax.tree.map(change, getattr(state, part)) for part in of if hasattr(state, part)}
            setattr(owner, name, state.replace(**changed))

    def in_float64(self) -> None:
        """Parameters, moments and statistics."""
        self.x64 = True

        def widen(x: Any) -> Any:
            return np.asarray(x, np.float64) if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating) else x

        self.each(widen, ("params", "opt_state", "batch_stats"))

    def state(self) -> Flat:
        """Parameters, moments, statistics and the count of updates."""
        policy = self.model.policy
        critic, actor, alpha = policy.qf_state, policy.actor_state, self.model.ent_coef_state
        flat: Flat = {"counter/n_updates": np.int64(self.model._n_updates)}
        for opt, state in (("opt_critic", critic), ("opt_actor", actor), ("opt_alpha", alpha)):
            flat[f"{opt}/step"] = np.asarray(optax.tree.get(state.opt_state, "count"))
            trees = {"": state.params}
            trees |= {f"{opt}/{m}/": optax.tree.get(state.opt_state, name) for m, name in (("m", "mu"), ("v", "nu"))}
            for prefix, tree in trees.items():
                flat |= {f"{prefix}{name}": value for name, value in self.named(opt, tree).items()}
        return flat | self.named("opt_critic", critic.batch_stats) | self.named("opt_actor", actor.batch_stats)

    def named(self, opt: str, tree: Any) -> Flat:
        """Arrays of a network by the record's names."""
        if opt == "opt_alpha":
            return {"log_alpha": np.asarray(tree["log_ent_coef"])}
        if opt == "opt_actor":
            return _layers("actor", tree, ("dense0", "dense1", "mean", "log_std"))
        critics, names = tree["VmapCritic_0"], ("dense0", "dense1", "dense2")
        return {
            name: value
            for i in range(2)
            for name, value in _layers(f"critic{i}", jax.tree.map(lambda x, i=i: x[i], critics), names).items()
        }

    def inputs(self, rng: np.random.Generator) -> tuple[Flat, Flat]:
        """Transitions, and the noise of both actions, of which the second is drawn only where the actor learns."""
        shape = (self.batch_size, ACTION)
        draws = {name: rng.normal(size=shape).astype(np.float32) for name in ("next_action_noise", "action_noise")}
        if (self.model._n_updates + 1) % self.config["policy_delay"]:
            del draws["action_noise"]
        return transitions(rng, self.batch_size, OBS, ACTION), draws

    def update(self, batch: Flat, draws: Flat) -> None:
        """A critic's step, and the actor's and the temperature's where they are due."""
        kind = np.float64 if self.x64 else np.float32
        b = {name: torch.as_tensor(value.astype(kind)) for name, value in batch.items()}
        column = {name: b[name][:, None] for name in ("done", "reward")}
        samples = ReplayBufferSamples(b["obs"], b["action"], b["next_obs"], column["done"], column["reward"])
        self.model.replay_buffer = SimpleNamespace(sample=lambda size, env=None: samples)

        def normal(z: Any, shape: Any, **_: Any) -> jax.Array:
            assert tuple(shape) == z.T.shape, "a diagonal Gaussian of this library is drawn dimension by dimension"
            return jnp.asarray(z, kind).T

        drawn = answers(samplers, "normal", normal, list(draws.values()))
        with jax.enable_x64(self.x64), jax.disable_jit(), jax.numpy_rank_promotion("allow"), drawn:
            self.model.train(1, self.batch_size)


def _layers(net: str, tree: Any, dense: tuple[str, ...]) -> Flat:
    """Arrays of one network; its modules are called `Dense_0` and `BatchRenorm_0` in their order."""
    flat: Flat = {}
    for module, arrays in tree.items():
        kind, _, index = module.partition("_")
        name = dense[int(index)] if kind == "Dense" else f"norm{index}"
        kept = {part: value for part, value in arrays.items() if part not in ("r_max", "d_max")}
        flat |= {f"{net}/{name}/{part}": np.asarray(value) for part, value in kept.items()}
    return flat
