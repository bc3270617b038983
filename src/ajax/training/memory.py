"""Memory in a run: what every network remembers as the episodes go on, and the sequences that they learn from.

All of it is empty where the agent's torso has no memory: `Run.carry` is then `{}`, `Inputs` hold the observation alone,
and the compiled program is the same as if this file were not there.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ajax.core.errors import CapabilityError, ConfigError
from ajax.core.hooks import Extension
from ajax.core.records import Batch, Inputs, Net
from ajax.networks.encoder import Encoder
from ajax.networks.memory import Memory
from ajax.networks.torsos import Torso
from ajax.training.run import Run

Carry = dict[str, Any]
"""By a network's name (that of its encoder): what it remembers of every environment's episode (n_envs, ...)."""


def memory_of(agent: Any) -> Memory | None:
    """The memory of an agent's networks, or None."""
    return agent.torso.memory


def encoders(agent: Any, state: Any) -> dict[str, Any]:
    """The parameters of every trained network's encoder, by name; none without a memory.

    A target network has no carry of its own: it starts a sequence from its online network's.
    """
    if memory_of(agent) is None:
        return {}
    found: dict[str, Any] = {}
    for net in jax.tree.leaves(state, is_leaf=lambda x: isinstance(x, Net)):
        if isinstance(net, Net) and net.opt != ():
            mine = dict(_encoders(net.params))
            assert not set(found) & set(mine), f"two networks call their encoder {set(found) & set(mine)}"
            found |= mine
    return found


def _encoders(params: Any):
    for name, inner in params.items():
        if name.endswith("_encoder"):
            yield name, inner
        elif isinstance(inner, dict):
            yield from _encoders(inner)


def remember(agent: Any, state: Any, x: Inputs) -> Carry:
    """What every network remembers after the rows of `x`."""
    return {
        name: Encoder(agent.torso, name=name).apply({"params": params}, x, method="remember")[1]
        for name, params in encoders(agent, state).items()
    }


def nothing(agent: Any, state: Any, n: int) -> Carry:
    """What every network remembers before `n` first observations."""
    memory = memory_of(agent)
    return {} if memory is None else {name: memory.empty(n) for name in encoders(agent, state)}


def fresh(obs: jax.Array, carry: Carry) -> Inputs:
    """First observations of episodes, before which `nothing` was remembered."""
    return Inputs(obs, reset=jnp.ones(len(obs)), carry=carry) if carry else Inputs(obs)


def recall(run: Run, x: Inputs) -> Inputs:
    """The run's present inputs with what is remembered of each episode; the first observation of one drops it."""
    if not run.carry:
        return x
    return x.replace(reset=(run.episode_length == 0).astype("float32"), carry=run.carry)


def noted(row: Batch, x: Inputs, carry: Carry) -> Batch:
    """A row (n_envs, ...) with what was remembered when it was acted on (`x`), and after it (`carry`)."""
    if x.reset is None:
        return row
    now = row.now.replace(reset=x.reset, carry=x.carry)
    return row.replace(now=now, next=row.next.replace(reset=0.0 * x.reset, carry=carry))


def stored(row: Batch) -> Batch:
    """What the replay keeps of a row: not what was remembered after it, which the next row has."""
    return row.replace(next=row.next.replace(reset=None, carry=None))


def window(agent: Any) -> int:
    """Consecutive rows in one sample of the replay."""
    memory = memory_of(agent)
    return agent.window if memory is None else memory.burn_in + memory.length


def n_samples(agent: Any) -> int:
    """Samples in one batch of the replay: transitions, or sequences that hold as many."""
    memory = memory_of(agent)
    return agent.replay.batch_size // (1 if memory is None else memory.length)


def cut(agent: Any, b: Batch) -> tuple[Batch, int]:
    """What the minibatches of a rollout (time, n_envs, ...) are dealt from, and how many of them there are.

    Rows (transitions, ...), or with a memory sequences (length, sequences, ...).
    """
    memory, size = memory_of(agent), agent.rollout.size
    if memory is None:
        return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), b), size

    def pieces(x: jax.Array) -> jax.Array:
        apart = x.reshape(-1, memory.length, *x.shape[1:])  # (pieces, length, n_envs, ...)
        return apart.swapaxes(0, 1).reshape(memory.length, -1, *x.shape[2:])

    return jax.tree.map(pieces, b), size // memory.length


def take(agent: Any, b: Batch, index: jax.Array) -> Batch:
    """The minibatch of these transitions, or sequences, of what `cut` made."""
    if memory_of(agent) is None:
        return jax.tree.map(lambda x: x[index], b)
    return unrolled(agent, jax.tree.map(lambda x: x[:, index], b))


def unrolled(agent: Any, b: Batch) -> Batch:
    """Sequences (burn_in + length, sequences, ...) as a batch of the rows after the burn-in, each with its past.

    The rows are (length * sequences, ...), what an agent without a memory is given. Every network follows the stream
    from its carry at the sequence's start; a row's `next` follows the row itself, and so is in its episode also where
    that was cut.
    """
    memory = memory_of(agent)
    if memory is None:
        return b

    def rows(tree: Any) -> Any:
        return jax.tree.map(lambda x: x[memory.burn_in :].reshape(-1, *x.shape[2:]), tree)

    stream = Inputs(b.now.obs, reset=b.now.reset)
    carry = jax.tree.map(lambda x: x[0], b.now.carry)
    now = rows(b.now.replace(carry=None)).replace(carry=carry, before=jax.tree.map(lambda x: x[:-1], stream))
    following = rows(b.next.replace(reset=None, carry=None)).replace(carry=carry, before=stream)
    return rows(b.replace(now=(), next=())).replace(now=now, next=following)


def check(agent: Any, is_offline: bool, extensions: tuple[Extension, ...]) -> None:
    """Refuse a memory that does not fit how the agent collects and learns.

    Raises:
        ConfigError: sequences and the rollout, the batch or the buffer do not fit.
        CapabilityError: what the agent learns from has no sequences.
    """
    memory, name = memory_of(agent), type(agent).__name__
    if not agent.remembers and any(memories(agent)):
        raise CapabilityError(
            f"{name} has no memory: leave it out of its torsos. APG, ASAC, DQN, IQL, PPO, REDQ, SAC and TD3 can"
            " have one."
        )
    if memory is None:
        return
    kind = f"torso.memory={type(memory).__name__}(length={memory.length}, burn_in={memory.burn_in})"
    if is_offline:
        raise CapabilityError(f"{name}({kind}): a dataset is learned from without a memory. Leave memory out.")
    foreign = [type(extension).__name__ for extension in extensions if "sample" in extension.phases()]
    if foreign:
        raise CapabilityError(
            f"{name}({kind}): {foreign[0]} adds rows to each batch, which remember nothing. Leave one out."
        )
    if agent.loop == "on_policy":
        _check_rollout(agent.rollout, memory, f"{name}({kind}")
        return
    if agent.window > 1:
        raise CapabilityError(f"{name}({kind}): targets of several steps and a memory don't go together. Set n_step=1.")
    replay = agent.replay
    if replay.batch_size % memory.length:
        raise ConfigError(
            f"{name}({kind}, replay.batch_size={replay.batch_size}): a batch is made of whole sequences. Give a"
            f" multiple of {memory.length} as batch_size, or change length."
        )
    kept = replay.capacity // replay.n_envs
    if kept < window(agent):
        raise ConfigError(
            f"{name}({kind}, replay.capacity={replay.capacity}): each of the {replay.n_envs} environments keeps {kept}"
            f" transitions, fewer than one sequence with its burn-in, {window(agent)}. Raise capacity."
        )


def memories(agent: Any) -> list[Memory | None]:
    """The memories of an agent's torsos."""
    return [torso.memory for torso in vars(agent).values() if isinstance(torso, Torso)]


def _check_rollout(rollout: Any, memory: Memory, start: str) -> None:
    if memory.burn_in:
        raise ConfigError(
            f"{start}): burn_in is for replay; in a rollout a memory goes on from where it stood. Set it to 0."
        )
    if rollout.n_steps % memory.length:
        raise ConfigError(
            f"{start}, rollout.n_steps={rollout.n_steps}): rollouts are cut into sequences of length {memory.length},"
            " which must divide n_steps. Change one of them."
        )
    n_sequences = rollout.size // memory.length
    if n_sequences % rollout.n_minibatches:
        raise ConfigError(
            f"{start}, rollout.n_minibatches={rollout.n_minibatches}): minibatches are made of whole sequences, and a"
            f" rollout of {rollout.n_envs} environments has {n_sequences}. Give a divisor of {n_sequences} as"
            " n_minibatches."
        )
