"""What extensions ask of an agent's networks, whatever the agent: its policy, its critic, and networks of their own."""

from __future__ import annotations

from typing import Any

import jax

from ajax.core.errors import CapabilityError
from ajax.core.learn import pick
from ajax.core.records import Batch, Inputs, Net
from ajax.networks.heads import ActorCritic, QValues, QValuesEnsemble, Value
from ajax.networks.torsos import HIDDEN


def refuse_memory(agent: Any, extension: Any) -> None:
    """Refuse an agent whose networks remember, where rows come without their past.

    Raises:
        CapabilityError: they do.
    """
    if agent.torso.memory is not None:
        raise CapabilityError(
            f"{type(extension).__name__} shows the networks of {type(agent).__name__} rows without their past, and they"
            " have a memory. Leave one of the two out."
        )


def discount_of(agent: Any) -> Any:
    """An agent's discount per step.

    Raises:
        CapabilityError: it has none; its values are of average rewards.
    """
    if "gamma" not in vars(agent):
        raise CapabilityError(
            f"{type(agent).__name__} has no discount: its values are not of discounted returns, which this extension"
            " asks for. Leave it out."
        )
    return vars(agent)["gamma"]


def actor_of(agent: Any, state: Any) -> Net:
    """The network that holds an agent's policy."""
    return getattr(state, agent.actor)


def critic_of(agent: Any, state: Any) -> Net:
    """The network that holds an agent's values.

    Raises:
        CapabilityError: it has none.
    """
    if not agent.critic:
        raise CapabilityError(
            f"{type(agent).__name__} has no critic: it learns no values, which this extension asks for. Leave it out."
        )
    return getattr(state, agent.critic)


def with_actor(agent: Any, state: Any, params: Any) -> Any:
    """The state with other parameters of the policy, in its target copy too; the optimizer's state stays."""
    actor = actor_of(agent, state)
    nets = {name: net for name, net in vars(state).items() if isinstance(net, Net) and net.module == actor.module}
    return state.replace(**{name: net.at(params) for name, net in nets.items()})


def policy_of(net: Net, x: Inputs) -> Any:
    """What a policy's network says of observations: a distribution, or actions where it is deterministic.

    A network that holds policy and values (PPO's) returns both, the policy first.
    """
    out = net(x)
    return out[0] if isinstance(out, tuple) else out


def mode_of(pi: Any) -> jax.Array:
    """The most likely action of a distribution; an action is itself."""
    return pi if isinstance(pi, jax.Array) else pi.mode()


def estimates(critic: Net, b: Batch) -> jax.Array:
    """What an agent's critics say of a batch: Q_i(s, a), or V(s); (n_critics, batch)."""
    if isinstance(critic.module, ActorCritic):
        return critic(b.now)[1][None]
    if isinstance(critic.module, Value):
        return critic(b.now)[None]
    if isinstance(critic.module, QValues):
        return pick(critic(b.now), b.action)[None]
    return critic(b.now, b.action)


def hidden_units(critic: Net, b: Batch) -> list[jax.Array]:
    """Activations of a critic's hidden layers, first to last: each (rows, units), or (n_critics, rows, units)."""
    by_state = isinstance(critic.module, ActorCritic | Value | QValues | QValuesEnsemble)
    inputs = (b.now,) if by_state else (b.now, b.action)
    variables = {"params": critic.params, "batch_stats": critic.statistics}
    kept = critic.module.apply(variables, *inputs, mutable=[HIDDEN])[1]
    found = jax.tree_util.tree_flatten_with_path(kept)[0]
    return [layer for path, layer in found if not any(getattr(key, "key", None) == "policy" for key in path)]
