"""What an agent is: its configuration and three verbs. Every agent's file has the same order: State, config, verbs."""

from __future__ import annotations

import dataclasses
import types
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal

import jax

from ajax.core.errors import ConfigError, SpaceError
from ajax.core.hooks import Extension, Hooks
from ajax.core.learn import Metrics
from ajax.core.records import Batch, Clock, Inputs, Spec
from ajax.core.spaces import Box, Discrete


class Agent:
    """Base of every agent: a `config` with the methods below. Instances are immutable and hold no run's state.

    Class attributes:
        loop: how the agent meets its experience: `"off_policy"` (it has a `replay` field, a `Replay`), `"on_policy"`
            (it has a `rollout` field) or `"episodic"` (it has a `replay` field, an `Episodes`, and follows commands).
        acts: the kinds of action it takes.
        folds: the phases of extensions that its update folds.
        remembers: whether its networks may have a memory.
        through_env: whether it learns from the environment's own derivative, on-policy: it then has an `objective`,
            and its rows have the derivative of that in their action, `slope`.
        actor, critic: names of the fields of its state that hold its policy's and its values' networks; "" for none.
    """

    loop: ClassVar[Literal["off_policy", "on_policy", "episodic"]]
    acts: ClassVar[tuple[Literal["discrete", "continuous"], ...]]
    remembers: ClassVar[bool] = True
    through_env: ClassVar[bool] = False
    folds: ClassVar[frozenset[str]] = frozenset({"on_target", "critic_loss", "actor_loss", "post_update"})
    actor: ClassVar[str] = "actor"
    critic: ClassVar[str] = "critic"

    def init(self, spec: Spec, key: jax.Array) -> Any:
        """Return the agent's first state: a struct of arrays."""
        raise NotImplementedError

    def act(self, state: Any, x: Inputs, key: jax.Array, clock: Clock, explore: bool) -> tuple[jax.Array, dict]:
        """Return actions (batch, ...) in agent units, and extras to keep with the transition."""
        raise NotImplementedError

    def update(self, state: Any, b: Batch, key: jax.Array, clock: Clock, hooks: Hooks) -> tuple[Any, Metrics]:
        """One step of the algorithm on a batch; returns the next state and scalar metrics."""
        raise NotImplementedError

    def prepare(self, state: Any, rollout: Batch) -> Batch:
        """On-policy: add to a rollout (time, n_envs, ...) what is computed once, before the first update on it."""
        return rollout

    def objective(self, rollout: Batch) -> jax.Array:
        """Through the environment: what is differentiated in the actions of a rollout (time, n_envs, ...), a scalar."""
        raise NotImplementedError

    def brings(self) -> tuple[Extension, ...]:
        """Extensions of the agent's own, for what it does where environments are stepped. They follow the run's."""
        return ()

    @property
    def window(self) -> int:
        """Consecutive transitions that one sample of the replay holds."""
        return 1

    def check_spaces(self, spec: Spec) -> None:
        """Refuse spaces that the agent can't act in.

        Raises:
            SpaceError: naming the agent, the space given, and agents that would do.
        """
        name, action = type(self).__name__, spec.action
        if isinstance(action, Discrete) and "discrete" not in self.acts:
            raise SpaceError(
                f"{name} needs continuous actions (a Box), and this environment's are {action}."
                " Agents for discrete actions: APO, DAgger, DQN, PPO, PQN, SAC, UDRL."
            )
        if isinstance(action, Box) and "continuous" not in self.acts:
            raise SpaceError(
                f"{name} needs discrete actions, and this environment's are a Box of shape {action.shape}."
                " Agents for continuous actions: APG, APO, ASAC, AVG, CrossQ, DAgger, IQL, PPO, REDQ, RVISAC, SAC, TD3,"
                " UDRL."
            )

    def sweep(self, **values: Sequence[float]) -> Sweep:
        """Every combination of several values of number fields, given by name: `PPO().sweep(gamma=[0.9, 0.99])`.

        Raises:
            ConfigError: a field is given one value, not a list.
        """
        single = [name for name, field in values.items() if not isinstance(field, Sequence)]
        if single:
            raise ConfigError(f"sweep({single[0]}={values[single[0]]!r}): give a list of values.")
        return Sweep(self, {name: tuple(field) for name, field in values.items()})

    @property
    def train(self) -> Callable[..., Any]:
        """`ajax.training.driver.train` with this agent: `PPO().train("CartPole-v1", steps=200_000, seeds=8)`."""
        from ajax.training.driver import train

        return types.MethodType(train, self)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """An agent and, by field, the values to train it with: every combination, by one compiled program.

    Attributes:
        agent: the configuration that the values are put into.
        values: field, by name or dotted path: its values.
    """

    agent: Agent
    values: dict[str, tuple[float, ...]]

    @property
    def train(self) -> Callable[..., Any]:
        """`ajax.training.driver.train` with every combination, times the seeds."""
        from ajax.training.driver import train

        return types.MethodType(train, self)
