"""Terms that keep an agent near its data: conservative values (CQL, Cal-QL) and TD3+BC's pull to the data's actions."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from ajax.core.config import config, setting
from ajax.core.distributions import TanhNormal
from ajax.core.errors import CapabilityError
from ajax.core.hooks import Extension, View
from ajax.core.keys import stream
from ajax.core.learn import pick
from ajax.core.records import Inputs, Net
from ajax.extensions.networks import mode_of, policy_of


@config
class CQL(Extension):
    """Adds alpha * E[log sum_a exp Q(s, a) - Q(s, a_data)] to every critic's loss.

    Kumar et al. 2020, arXiv:2006.04779, eq. 4: CQL(H). Discrete actions: the exact sum. In a box it is an integral,
    estimated by importance sampling as in the paper's appendix F: `samples` actions each from the uniform distribution,
    from pi(.|s) and from pi(.|s'); an agent whose policy is no squashed Gaussian (TD3, IQL) has the uniform ones alone.
    """

    alpha: float = setting(default=5.0, low=0, help="weight of the term")
    samples: int = setting(default=10, low=1, help="actions from each distribution")

    @property
    def needs(self) -> frozenset[str]:
        """A critic of actions."""
        return frozenset({"q"})

    def critic_loss(self, view: View) -> jax.Array:
        """The term, summed over critics."""
        assert view.net is not None and view.spec is not None
        b = view.batch
        if view.spec.discrete:
            q = view.net(b.now)  # (..., batch, n_actions)
            data = pick(q, jnp.broadcast_to(b.action, q.shape[:-1]))
            gap = jax.nn.logsumexp(q, -1) - data
        else:
            gap = self._integral(view, view.net) - view.net(b.now, b.action)  # (n_critics, batch)
        return self.alpha * gap.mean(-1).sum()

    def _integral(self, view: View, critic: Net) -> jax.Array:
        """log of the integral over actions of exp Q: (n_critics, batch)."""
        assert view.spec is not None
        b, n = view.batch, self.samples
        size = view.spec.action_size
        shape = (n, *b.action.shape)
        uniform = jax.random.uniform(stream(view.key, "uniform"), shape, minval=-1.0, maxval=1.0)
        values = [values_at(critic, b.now, uniform) + size * math.log(2.0)]  # the density is 2^-size
        for name, x in (("now", b.now), ("next", b.next)):
            pi = view.agent.pi(view.state, x)
            if isinstance(pi, TanhNormal):
                keys = jax.random.split(stream(view.key, name), n)
                action, log_prob = jax.lax.stop_gradient(jax.vmap(pi.sample_and_log_prob)(keys))
                q = self.bounded(values_at(critic, b.now, action), view)
                values.append(q - log_prob[:, None])
        weighted = jnp.concatenate(values)  # (samples, n_critics, batch)
        return jax.nn.logsumexp(weighted, 0) - math.log(weighted.shape[0])

    def bounded(self, q: jax.Array, view: View) -> jax.Array:
        """The values of the policy's actions (samples, n_critics, batch): as they are."""
        return q


@config
class CalQL(CQL):
    """CQL that does not push the values of the policy's actions below those of the data's own policy.

    Nakamoto et al. 2023, "Cal-QL: calibrated offline RL pre-training", arXiv:2303.05479, section 5: Q(s, a) of the
    policy's actions becomes max(Q(s, a), V_mu(s)). The reference V_mu is phi*, which `MCPretrain` or `BellmanPretrain`
    provides, at the data's action; the authors' code takes the return that followed it.
    """

    @property
    def needs(self) -> frozenset[str]:
        """A reference, and a critic of actions."""
        return frozenset({"phi*", "q"})

    def critic_loss(self, view: View) -> jax.Array:
        """The term, in a box."""
        assert view.spec is not None
        if view.spec.discrete:
            raise CapabilityError("CalQL bounds the values of a policy's sampled actions; these actions are discrete.")
        return CQL.critic_loss(self, view)

    def bounded(self, q: jax.Array, view: View) -> jax.Array:
        """At least the reference."""
        reference = view.ask("phi*")(view.batch.now, view.batch.action)  # (batch,)
        return jnp.maximum(q, jax.lax.stop_gradient(reference)[None, None])


@config
class TD3BC(Extension):
    """Adds mean |Q(s, pi(s))| / alpha * E|pi(s) - a_data|^2 to the actor's loss.

    Fujimoto & Gu 2021, arXiv:2106.06860, eq. 5 has alpha / mean |Q| on Q instead; the two differ by that common factor,
    which Adam's steps do not see. `TD3(bc_alpha=...)` is the paper's own form.
    """

    alpha: float = setting(default=2.5, positive=True, help="weight of Q relative to the data's actions")

    @property
    def needs(self) -> frozenset[str]:
        """A policy and a critic."""
        return frozenset({"q", "pi"})

    def actor_loss(self, view: View) -> jax.Array:
        """The term."""
        assert view.net is not None and view.spec is not None
        if view.spec.discrete:
            raise CapabilityError("TD3BC measures the distance of actions in a box; these actions are discrete.")
        b = view.batch
        action = mode_of(policy_of(view.net, b.now))
        scale = jnp.abs(view.agent.q(view.state, b.now, action)[0]).mean() / self.alpha
        return jax.lax.stop_gradient(scale) * jnp.square(action - b.action).mean()


def values_at(critic: Net, x: Inputs, actions: jax.Array) -> jax.Array:
    """Q_i(s, a) for several actions of each state: (samples, batch, size) gives (samples, n_critics, batch)."""
    return jax.vmap(lambda action: critic(x, action))(actions)
