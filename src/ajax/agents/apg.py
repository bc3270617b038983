"""APG: analytic policy gradients, the derivative of the rewards of a short horizon through the environment itself.

Freeman et al. 2021, "Brax: A Differentiable Physics Engine for Large Scale Rigid Body Simulation", arXiv:2106.13281.
Defaults are the authors' (google/brax 0.14, training/agents/apg): Adam at 1e-4, a horizon of 32 steps, four hidden
layers of 32 with layer normalization, rewards that are not discounted.

Differs from the authors' code:
- The objective is the same, and so is its gradient, but the derivative is taken in two parts: through the environment
  in every action, then of the actions in the parameters (`ajax.training.slopes` says why that is exact).
- The derivative is averaged over 64 environments, and its global norm is clipped at 1, as in Xu et al. 2022,
  arXiv:2204.07137 (SHAC: short horizons with a value function behind them). The code has one environment, and clips
  each number at 1.
- Adam's moments decay at the usual 0.9 and 0.999; in the code at 0.7 and 0.95. The step size is constant; there it
  shrinks by 0.3 % with every update.
- The policy's deviation is the exponential of its second output; the code has a tenth of a softplus.
- Layers are normalized before their nonlinearity, and start orthogonal with the gain of a rectifier; in the code after
  it, and with a gain of 0.01.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import struct

from ajax.buffers.rollout import Rollout
from ajax.core.agent import Agent
from ajax.core.config import config, setting
from ajax.core.hooks import Hooks
from ajax.core.keys import stream
from ajax.core.learn import Metrics, adam, descend, make
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.returns import discounted
from ajax.core.schedules import Scheduled, value_at
from ajax.networks.heads import SquashedPolicy
from ajax.networks.torsos import Torso


class State(struct.PyTreeNode):
    """The network of an APG.

    Attributes:
        actor: pi(a|s; theta).
    """

    actor: Net


@config
class APG(Agent):
    """Analytic policy gradients; see the module for the paper and the deviations."""

    loop = "on_policy"
    acts = ("continuous",)
    folds = frozenset({"actor_loss", "post_update"})
    critic = ""
    through_env = True

    gamma: float = setting(default=1.0, within=(0, 1), help="discount per environment step, within the horizon")
    learning_rate: Scheduled = setting(default=1e-4, positive=True, help="Adam's step size")
    max_grad_norm: float | None = setting(
        default=1.0, positive=True, help="limit of the gradient's global norm; None: no limit"
    )
    stochastic: bool = setting(default=True, help="explore by samples of the policy; False: by its mode")
    torso: Torso = setting(
        default=Torso(widths=(32, 32, 32, 32), activation="elu", initializer="orthogonal", layer_norm=True),
        help="policy's network",
    )
    rollout: Rollout = setting(
        default=Rollout(n_envs=64, n_steps=32, n_epochs=1, n_minibatches=1),
        help="collection and updates; n_steps is the horizon",
    )

    def init(self, spec: Spec, key: jax.Array) -> State:
        """Make the policy."""
        module = SquashedPolicy(spec.action_size, self.torso)
        return State(make(module, adam(max_grad_norm=self.max_grad_norm), stream(key, "actor"), spec.inputs))

    def act(self, state: State, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """A sample of pi(.|s) with the noise that made it while exploring, the mode otherwise."""
        pi = state.actor(x)
        if not explore:
            return pi.mode(), {}
        noise = jax.random.normal(key, pi.loc.shape) if self.stochastic else jnp.zeros_like(pi.loc)
        return pi.from_noise(noise)[0], {"noise": noise}

    def objective(self, rollout: Batch) -> jax.Array:
        """The rewards of a rollout, each discounted to the horizon's start or its episode's, summed."""
        return discounted(rollout.reward, rollout.terminated, rollout.truncated, self.gamma).sum()

    def update(self, state: State, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[State, Metrics]:
        """One step up the objective, whose derivative in each row's action is the row's `slope`."""

        def loss(actor: Net):
            action, _ = actor(b.now).from_noise(b.extras["noise"])
            climb = (b.extras["slope"] * action).sum(-1).mean()  # means nothing, but has the objective's gradient
            return hooks.actor_loss(actor, state, b) - climb, {
                "reward": b.reward.mean(),
                "slope": jnp.sqrt(jnp.square(b.extras["slope"]).mean()),
                "log_std": actor(b.now).log_std.mean(),
            }

        tx = adam(value_at(self.learning_rate, clock), max_grad_norm=self.max_grad_norm)
        actor, metrics = descend(state.actor, tx, loss)
        return State(actor), metrics

    def pi(self, state: State, x: Inputs):
        """The distribution pi(.|s), in agent units."""
        return state.actor(x)
