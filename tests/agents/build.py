"""Hand-built states and batches for the agents' unit tests: linear networks on one-hot observations are tables."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ajax.core.hooks import Hooks
from ajax.core.records import Batch, Clock, Inputs, Net, Spec
from ajax.core.spaces import Box, Discrete
from ajax.networks.torsos import Torso

LINEAR = Torso(widths=())
SMALL = Torso(widths=(8, 8))
KEY = jax.random.key(3)


def spec(n_states: int, actions: int | Discrete) -> Spec:
    """One-hot observations of `n_states`, and a box of `actions` elements or a discrete space."""
    space = actions if isinstance(actions, Discrete) else Box(-1.0, 1.0, (actions,))
    return Spec(Box(0.0, 1.0, (n_states,)), space)


def clock(update: int = 0, step: float = 0.0, horizon: float = 1000.0) -> Clock:
    """A moment of a run."""
    return Clock(jnp.float32(step), jnp.int32(update), jnp.float32(horizon))


def states(indices: Any, n_states: int) -> Inputs:
    """One-hot observations."""
    return Inputs(jnp.eye(n_states)[jnp.asarray(indices)])


def transitions(
    n_states: int, now: list, action: Any, reward: list, next: list, terminated: Any = None, truncated: Any = None
) -> Batch:
    """A batch of transitions between numbered states; nothing ends unless told."""
    flags = [jnp.zeros(len(reward)) if x is None else jnp.asarray(x, jnp.float32) for x in (terminated, truncated)]
    reward = jnp.asarray(reward, jnp.float32)
    return Batch(states(now, n_states), jnp.asarray(action), reward, *flags, states(next, n_states))


def random_batch(spec: Spec, size: int = 32, seed: int = 0) -> Batch:
    """A batch of noise, a quarter of it terminal, with commands for who follows them and an expert's labels."""
    rng = np.random.default_rng(seed)
    n_states = spec.observation.shape[0]
    action: Any = rng.uniform(-0.9, 0.9, (size, spec.action_size)).astype(np.float32) if not spec.discrete else None
    if spec.discrete:
        action = rng.integers(0, spec.n_actions, size).astype(np.int32)
    now, following = (Inputs(rng.normal(size=(size, n_states)).astype(np.float32)) for _ in range(2))
    command = np.stack([8.0 * rng.normal(size=size), rng.integers(1, 9, size)], -1).astype(np.float32)
    now, following = (inputs.replace(command=command) for inputs in (now, following))
    terminated = (np.arange(size) % 4 == 0).astype(np.float32)
    reward = rng.normal(size=size).astype(np.float32)
    return Batch(now, action, reward, terminated, np.zeros_like(terminated), following, {"label": action[::-1]})


def replayed(agent: Any, spec: Spec) -> Batch:
    """A batch of noise as the replay gives it: windows where the agent asks for them."""
    if agent.window == 1:
        return random_batch(spec)
    return jax.tree.map(lambda *x: jnp.stack(x), *(random_batch(spec, seed=i) for i in range(agent.window)))


class Spy(Hooks):
    """No extensions, but it keeps the target that they would be handed."""

    target: jax.Array

    def on_target(self, target: jax.Array, state: Any, batch: Batch) -> jax.Array:
        """Keep the target."""
        self.target = jax.lax.stop_gradient(target)
        return self.target


@jax.jit
def step(agent: Any, state: Any, b: Batch, clock: Clock, key: jax.Array) -> tuple[Any, dict, jax.Array]:
    """One update: the next state, the metrics, and the target that the critics were regressed on."""
    spy = Spy(agent, (), (), clock, key)
    state, metrics = agent.update(state, b, key, clock, spy)
    return state, metrics, spy.target


def target(agent: Any, state: Any, b: Batch, key: jax.Array = KEY) -> np.ndarray:
    """The target of an update."""
    return np.asarray(step(agent, state, b, clock(), key)[2])


def first(agent: Any, spec: Spec, seed: int = 0) -> Any:
    """The agent's first state."""
    return jax.jit(lambda agent, key: agent.init(spec, key))(agent, jax.random.key(seed))


def with_table(net: Net, kernel: Any, bias: float = 0.0) -> Net:
    """A linear network with these weights (n_inputs, n_outputs), or (n_critics, n_inputs, 1) for an ensemble."""
    (name,) = net.params
    layer = net.params[name]["Dense_0"]
    kernel = jnp.asarray(kernel, jnp.float32).reshape(layer["kernel"].shape)
    return net.at({name: {"Dense_0": {"kernel": kernel, "bias": jnp.full_like(layer["bias"], bias)}}})


def table(net: Net) -> np.ndarray:
    """The weights of a linear network."""
    (layers,) = net.params.values()
    return np.asarray(layers["Dense_0"]["kernel"])


def gradient(net: Net) -> Any:
    """The gradient of a network's first step, as Adam's first moment shows it: (1 - 0.9) times it."""
    return jax.tree.map(lambda m: np.asarray(m) / 0.1, optax.tree.get(net.opt, "mu"))


def steps_taken(net: Net) -> int:
    """Optimizer steps that a network has made."""
    return int(optax.tree.get(net.opt, "count"))


def equal(a: Any, b: Any) -> bool:
    """Whether two trees hold the same numbers."""
    return all(np.array_equal(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
