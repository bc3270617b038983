"""A probe's environment: small, episodic, finite, and given as tables, so that its answers can be computed.

    chain = Spec.of(
        "two-step chain",
        lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
        n_states=3,
        n_actions=3,
    )
    chain.env()        # the JAX environment (`ajax.environments.Env`); its tables are traced leaves
    chain.gymnasium()  # the same environment as a `gymnasium.Env`

Continuous actions keep the tables: the action's first coordinate is sorted into regions by `edges`, each region
plays the part of a discrete action in the transitions, and a quadratic of the action is added to the reward.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ajax.core.errors import EnvironmentFault
from ajax.core.spaces import Box, Discrete

if TYPE_CHECKING:
    from ajax.probing.gymnasium_env import GymnasiumEnv
    from ajax.probing.table_env import TableEnv

FEATURES = 8  # observations are padded with zeros to a multiple of this, so that probes share networks' shapes
ENDLESS = 2**31 - 1  # the time limit, in steps, of a Spec that has none

Outcome = tuple[float, int, float, bool]
"""Probability, next state, reward, terminated."""


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Spec:
    """A finite episodic environment. Build one with `Spec.of`.

    S states, A actions (or regions of a box), K outcomes of each, F observation features, D action dimensions.

    Attributes:
        name: how reports call it.
        probability: (S, A, K) of each outcome; sums to 1 over outcomes.
        next_state: (S, A, K) integers.
        reward: (S, A, K); a box adds `quadratic`.
        terminated: (S, A, K) booleans: the episode ends there and the next state has no value.
        obs: (S, F) float32, F a multiple of `FEATURES`.
        start: (S,) probabilities of an episode's first state.
        limit: steps after which an episode is truncated, or None.
        stagger: an episode's clock starts at a uniform draw from range(stagger), so that parallel copies fall out
            of step; 1 starts every episode at 0.
        box: the action space, shape (D,), or None for `Discrete(A)`. Actions are used as they come, inside the box
            or not, so that a wrong mapping shows.
        edges: A - 1 increasing bounds of regions of the action's first coordinate, in the box's units.
        quadratic: (S, D, 3) coefficients of 1, a, a^2, summed over dimensions and added to the reward.
        record: how many executed actions an episode keeps (the last ones); 0 keeps none.
    """

    name: str
    probability: np.ndarray
    next_state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    obs: np.ndarray
    start: np.ndarray
    limit: int | None = None
    stagger: int = 1
    box: Box | None = None
    edges: tuple[float, ...] = ()
    quadratic: np.ndarray
    record: int = 0

    @classmethod
    def of(
        cls,
        name: str,
        transition: Callable[[int, int], tuple[int, float, bool] | Sequence[Outcome]],
        *,
        n_states: int,
        n_actions: int | None = None,
        obs: Any = None,
        start: int | Sequence[float] = 0,
        limit: int | None = None,
        stagger: int = 1,
        box: Box | None = None,
        edges: Sequence[float] = (),
        quadratic: Callable[[int], Any] | None = None,
        record: int = 0,
    ) -> Spec:
        """Build a Spec from its transition function.

        Args:
            name: how reports call it.
            transition: given (state, action), or (state, region) under a box, returns `(next state, reward,
                terminated)` or a list of `(probability, next state, reward, terminated)`.
            n_states: states are 0 .. n_states - 1, those an episode ends in included.
            n_actions: number of discrete actions; not given with a box.
            obs: (n_states, at most any) vectors, one a state; one-hot by default.
            start: the first state of every episode, or one probability a state.
            limit, stagger, box, edges, record: see the class.
            quadratic: given a state, returns (3,) or (D, 3) coefficients of 1, a, a^2 (see `parabola`).

        Raises:
            EnvironmentFault: naming the entry that can't be part of an environment.
        """
        if (n_actions is None) == (box is None):
            raise EnvironmentFault(f"Spec {name!r}: give either n_actions or box; got {n_actions=}, {box=}.")
        if box is not None and (len(box.shape) != 1 or not box.bounded):
            raise EnvironmentFault(f"Spec {name!r}: box must be bounded, of shape (D,); got {box}.")
        n_actions = len(edges) + 1 if n_actions is None else n_actions
        listed = [[_outcomes(transition(s, a)) for a in range(n_actions)] for s in range(n_states)]
        width = max(len(outcomes) for row in listed for outcomes in row)
        padded = np.array([[[*o, *[(0.0, 0, 0.0, False)] * (width - len(o))] for o in row] for row in listed], float)
        dims = box.shape[0] if box else 1
        curves = np.zeros((n_states, dims, 3))
        if quadratic is not None:
            curves += [np.broadcast_to(np.asarray(quadratic(s), float), (dims, 3)) for s in range(n_states)]
        first = np.eye(n_states)[start] if isinstance(start, int) else np.asarray(start, float)
        seen = np.eye(n_states) if obs is None else np.asarray(obs, float).reshape(n_states, -1)
        spec = cls(
            name=name,
            probability=padded[..., 0],
            next_state=padded[..., 1].astype(int),
            reward=padded[..., 2],
            terminated=padded[..., 3].astype(bool),
            obs=np.pad(seen, ((0, 0), (0, -seen.shape[1] % FEATURES))).astype(np.float32),
            start=first,
            limit=limit,
            stagger=stagger,
            box=box,
            edges=tuple(float(edge) for edge in edges),
            quadratic=curves,
            record=record,
        )
        spec._check()
        return spec

    def _check(self) -> None:
        def refuse(what: str) -> None:
            raise EnvironmentFault(f"Spec {self.name!r}: {what}.")

        sums = self.probability.sum(-1)
        if np.any(self.probability < 0) or not np.allclose(sums, 1.0, atol=1e-9):
            s, a = np.argwhere((np.abs(sums - 1) > 1e-9) | np.any(self.probability < 0, axis=-1))[0]
            refuse(
                f"the outcomes of state {s}, action {a} have probabilities {self.probability[s, a].tolist()};"
                " they must be at least 0 and sum to 1"
            )
        if self.next_state.min() < 0 or self.next_state.max() >= self.n_states:
            refuse(
                f"next states must lie in 0 .. {self.n_states - 1}; got {self.next_state.max()}"
                if self.next_state.min() >= 0
                else f"a next state is {self.next_state.min()}; states start at 0"
            )
        if self.start.shape != (self.n_states,) or not np.isclose(self.start.sum(), 1.0) or self.start.min() < 0:
            refuse(f"start must give one probability a state, summing to 1; got {self.start.tolist()}")
        if self.limit is not None and self.limit < 1:
            refuse(f"limit={self.limit} must be at least 1 step, or None")
        if not 1 <= self.stagger <= (self.limit or 1):
            refuse(f"stagger={self.stagger} must lie in 1 .. limit={self.limit}")
        if list(self.edges) != sorted(set(self.edges)):
            refuse(f"edges must increase; got {self.edges}")

    @property
    def n_states(self) -> int:
        """S."""
        return self.probability.shape[0]

    @property
    def n_actions(self) -> int:
        """A: discrete actions, or regions of the box."""
        return self.probability.shape[1]

    @property
    def action_space(self) -> Box | Discrete:
        """The space that actions are given in."""
        return self.box if self.box is not None else Discrete(self.n_actions)

    @property
    def observation_space(self) -> Box:
        """Vectors of F features; unbounded, so that Specs of one shape share compiled programs."""
        return Box(shape=(self.obs.shape[1],))

    def env(self) -> TableEnv:
        """Return the JAX environment."""
        from ajax.probing.table_env import TableEnv

        return TableEnv.of(self)

    def gymnasium(self, uniform: Callable[[], float] | None = None) -> GymnasiumEnv:
        """Return the same environment as a `gymnasium.Env`.

        Args:
            uniform: source of its uniform draws in [0, 1), instead of the seeded generator of its own.
        """
        from ajax.probing.gymnasium_env import GymnasiumEnv

        return GymnasiumEnv(self, uniform)


def _outcomes(result: Any) -> list[Outcome]:
    if len(result) == 3 and np.ndim(result[0]) == 0:
        return [(1.0, *result)]
    return list(result)


def parabola(target: float, height: float = 0.0, steepness: float = 1.0) -> tuple[float, float, float]:
    """Return the coefficients of `height - steepness (a - target)^2` for `Spec.of(quadratic=...)`."""
    return height - steepness * target**2, 2 * steepness * target, -steepness


def cumulative(probability: np.ndarray) -> np.ndarray:
    """Return float32 cumulative probabilities over the last axis; those that complete it are exactly 1.

    A uniform draw u in [0, 1) selects the index `sum(cumulative <= u)`. Both environments select by these very
    numbers, so that equal draws make equal episodes.
    """
    total = np.cumsum(probability, axis=-1)
    return np.where(total > 1 - 1e-9, 1.0, total).astype(np.float32)
