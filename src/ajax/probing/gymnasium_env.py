"""A Spec as a Gymnasium environment, in NumPy: for agents of other libraries. Import it through `Spec.gymnasium`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from ajax.core.spaces import Box
from ajax.probing.spec import ENDLESS, Spec, cumulative


class GymnasiumEnv(gymnasium.Env):
    """The Gymnasium environment of a Spec; equal draws make the episodes of the JAX one.

    Attributes:
        spec_: the Spec (Gymnasium keeps `spec` for itself).
        executed: the last `Spec.record` actions of this episode, oldest first, as the environment received them.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own declaration)

    def __init__(self, spec: Spec, uniform: Callable[[], float] | None = None):
        self.spec_ = spec
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, spec.obs.shape[1:], np.float32)
        if spec.box is None:
            self.action_space: gymnasium.Space = gymnasium.spaces.Discrete(spec.n_actions)
        else:
            low, high = (np.full(spec.box.shape, b, np.float32) for b in (spec.box.low, spec.box.high))
            self.action_space = gymnasium.spaces.Box(low, high, dtype=np.float32)
        self._uniform = uniform or (lambda: self.np_random.random(dtype=np.float32))
        self._start, self._cumulative = cumulative(spec.start), cumulative(spec.probability)
        self._limit = ENDLESS if spec.limit is None else spec.limit
        self._state, self._clock = 0, 0
        self.executed: list[Any] = []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Start an episode; returns `(observation, {})`. `options` are ignored."""
        super().reset(seed=seed)
        self._state = int(np.sum(self._start <= np.float32(self._uniform())))
        self._clock = int(np.float32(self._uniform()) * np.float32(self.spec_.stagger))
        self.executed = []
        return self.spec_.obs[self._state].copy(), {}

    def step(self, action: Any):
        """Take `action`; returns `(observation, reward, terminated, truncated, {})`."""
        spec = self.spec_
        if spec.record:
            self.executed = [*self.executed, np.array(action)][-spec.record :]
        row, bonus = (self._state, action), 0.0
        if isinstance(spec.box, Box):
            action = np.asarray(action, np.float32)
            row = (self._state, int(np.sum(np.asarray(spec.edges, np.float32) <= action[0])))
            powers = np.stack([np.ones_like(action), action, action**2], -1)
            bonus = float(np.sum(np.float32(spec.quadratic[self._state]) * powers))
        outcome = (*row, int(np.sum(self._cumulative[row] <= np.float32(self._uniform()))))
        self._state = int(spec.next_state[outcome])
        self._clock += 1
        reward = float(np.float32(spec.reward[outcome])) + bonus
        return spec.obs[self._state].copy(), reward, bool(spec.terminated[outcome]), self._clock >= self._limit, {}
