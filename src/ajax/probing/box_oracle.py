"""Answers for actions in a box: squashed Gaussian policies by quadrature, deterministic ones by search. float64.

The agent's action x lies in [-1, 1] per dimension; the environment executes it mapped onto its box. A Spec's reward
is a sum over dimensions and its transitions read the first one only, so that each dimension has its own best action.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import numpy as np

from ajax.probing.oracle import Estimator, Target, collect, reachable, refer, settle, target
from ajax.probing.spec import Spec

_Z = np.linspace(-8.0, 8.0, 1601)
_W = np.exp(-0.5 * _Z**2) / np.exp(-0.5 * _Z**2).sum()
_X = np.linspace(-1.0, 1.0, 20001)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Actor:
    """How an agent acts in a box.

    Attributes:
        stochastic: a Gaussian squashed by tanh (SAC), its entropy weighted by `Estimator.temperature`; otherwise the
            best action (TD3).
        target_entropy: nats, in agent units, that the temperature is tuned to; None keeps the estimator's.
        log_std: bounds of the Gaussian's log standard deviation.
        policy_entropy: multiplies the entropy that the actor maximizes.
        policy_jacobian: whether the actor's log-probability has tanh's Jacobian.
        target_jacobian: whether the target's has.
        critics: multiplies the critics' values in the target, and not the entropy: 2 for the sum of two.
        noise: standard deviation, in agent units, of the noise on the target's actions.
        noise_clip: its bound.
        executed: what the environment receives: the action on its box, that clamped to [-1, 1], or the agent's own.
        read: the units that the deterministic action is read in: the environment's box, or the agent's.
    """

    stochastic: bool = True
    target_entropy: float | None = None
    log_std: tuple[float, float] = (-20.0, 2.0)
    policy_entropy: float = 1.0
    policy_jacobian: bool = True
    target_jacobian: bool = True
    critics: float = 1.0
    noise: float = 0.0
    noise_clip: float = np.inf
    executed: Literal["box", "clamped", "raw"] = "box"
    read: Literal["box", "agent"] = "box"


@dataclasses.dataclass(frozen=True, eq=False)
class BoxSolution:
    """The fixed point on a Spec with a box.

    Attributes:
        spec, actor: what was solved.
        table: the estimator's target over regions.
        v: (S,) values, infinite where the iteration diverges, NaN where no episode acts.
        action: (S, D) the deterministic action, as read.
        mean, std: (S, D) of the Gaussian before tanh; std is 0 without one.
        entropy: (S,) nats, in agent units.
        temperature: weight of the entropy.
        gain: reward per step, entropy included; episodes restart as in the Spec. With a reference, what that holds.
    """

    spec: Spec
    actor: Actor
    table: Target
    v: np.ndarray
    action: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    entropy: np.ndarray
    temperature: float
    gain: float

    def q(self, state: int, action: float | list[float] | np.ndarray) -> float:
        """Return Q(state, action), the action in the environment's units."""
        x = _from_box(self.spec, np.atleast_1d(np.asarray(action, float)))
        return float(sum(_gains(self, state, d).at(x[d : d + 1])[0] for d in range(len(x))))


@dataclasses.dataclass(frozen=True)
class Gains:
    """One dimension's part of Q(s, .), as a function of the agent's action; equal if it is the same function.

    Attributes:
        curve: coefficients of 1, a, a^2, where a is what the environment executes.
        regions: what each region of a adds.
        edges: bounds of the regions.
        low, high: the box.
        executed: see `Actor`.
    """

    curve: tuple[float, ...]
    regions: tuple[float, ...]
    edges: tuple[float, ...]
    low: float
    high: float
    executed: str

    def a(self, x: np.ndarray) -> np.ndarray:
        """Return what the environment executes of the agent's actions."""
        if self.executed == "raw":
            return x
        a = self.low + (x + 1) / 2 * (self.high - self.low)
        return np.clip(a, -1.0, 1.0) if self.executed == "clamped" else a

    def at(self, x: np.ndarray) -> np.ndarray:
        """Return the part at the agent's actions."""
        a = self.a(x)
        values = self.curve[0] + self.curve[1] * a + self.curve[2] * a**2
        if self.regions:
            values = values + np.asarray(self.regions)[np.searchsorted(np.asarray(self.edges), a, side="right")]
        return values


def solve_box(spec: Spec, estimator: Estimator, actor: Actor) -> BoxSolution:
    """Return the fixed point of `estimator` with `actor` on `spec`.

    Raises:
        RuntimeError: no fixed point is found, or no temperature gives the target entropy.
    """
    goal = actor.target_entropy
    if goal is None:
        return _solve(spec, estimator, actor, estimator.temperature)
    from scipy.optimize import brentq

    def excess(log_temperature: float) -> float:
        found = _solve(spec, estimator, actor, float(np.exp(log_temperature)))
        visits = collect(spec, _regions(found)).visits
        return float(visits @ found.entropy) - goal

    low, high = -9.0, 4.0
    if not excess(low) < 0 < excess(high):
        raise RuntimeError(f"{spec.name}: no temperature gives an entropy of {goal} nats")
    return _solve(spec, estimator, actor, float(np.exp(brentq(excess, low, high, xtol=1e-6))))


def _solve(spec: Spec, e: Estimator, actor: Actor, temperature: float) -> BoxSolution:
    spec = dataclasses.replace(spec, quadratic=e.reward_scale * spec.quadratic)
    s, alive = spec.n_states, reachable(spec)
    zeros, table, differential = np.zeros((s, len(_bounds(spec)[0]))), target(spec, e), e.average and e.subtract_gain
    # the reference is a mean of the values that targets read, dropped from them or not
    read = dataclasses.replace(e, cut="never" if e.cut == "never" else "reset", boot=1.0)
    leads_to = target(spec, read).weight if e.reference else None
    mean_reward = e.reward_scale * np.sum(spec.probability * spec.reward, -1)
    now = BoxSolution(spec, actor, table, np.zeros(s), zeros, zeros, zeros, np.zeros(s), temperature, 0.0)
    for _ in range(200):
        mean, std, action = _improve(now, alive)
        now = dataclasses.replace(now, mean=mean, std=std, action=action)
        regions = _regions(now, noisy=True)
        curves = np.array([_expected_quadratic(now, i) for i in range(s)])
        bonus = temperature * e.entropy * _entropies(now, actor.target_jacobian)
        visits = collect(spec, regions).visits
        weight = actor.critics * np.einsum("sr,srt->st", regions, table.weight) * alive[:, None]
        if leads_to is not None:
            offset = (actor.critics * (curves + np.sum(regions * table.offset, -1)) + bonus) * alive
            following = visits @ np.einsum("sr,srt->st", regions, leads_to)
            span = np.sum(regions * table.span, -1) * alive * e.subtract_gain
            v, gain = refer(weight, offset, span, following, e.reference)
        else:
            gain = float(visits @ (curves + bonus + np.sum(regions * mean_reward, -1)))
            paid = table.offset - gain * table.span * differential
            offset = (actor.critics * (curves + np.sum(regions * paid, -1)) + bonus) * alive
            v = settle(weight, offset, visits, differential)
        shifted = dataclasses.replace(table, offset=table.offset - gain * table.span * differential)
        done = not np.all(np.isfinite(v)) or np.abs(v - now.v).max() < 1e-7
        now = dataclasses.replace(now, v=v, table=shifted, gain=gain)
        if done:
            entropies = _entropies(now, actor.policy_jacobian)
            return dataclasses.replace(now, v=np.where(alive, v, np.nan), entropy=entropies)
    raise RuntimeError(f"no fixed point found on {spec.name!r} within 200 iterations of {e}, {actor}")


def _bounds(spec: Spec) -> tuple[np.ndarray, np.ndarray]:
    if spec.box is None:
        raise RuntimeError(f"{spec.name!r} has discrete actions: solve it without an actor")
    return np.full(spec.box.shape, spec.box.low, float), np.full(spec.box.shape, spec.box.high, float)


def _to_box(spec: Spec, x: np.ndarray, d: int) -> np.ndarray:
    low, high = _bounds(spec)
    return low[d] + (x + 1) / 2 * (high[d] - low[d])


def _from_box(spec: Spec, a: np.ndarray) -> np.ndarray:
    low, high = _bounds(spec)
    return 2 * (a - low) / (high - low) - 1


def _gains(now: BoxSolution, state: int, d: int, values: bool = True) -> Gains:
    """Return dimension d's part of Q(state, .), or without `values` of the reward's quadratic."""
    low, high = _bounds(now.spec)
    regions = np.zeros(0)
    if d == 0 and values:
        regions = now.table.offset[state] + now.table.weight[state] @ np.nan_to_num(now.v)
    curve = tuple(map(float, now.spec.quadratic[state, d]))
    edges = tuple(map(float, now.spec.edges))
    return Gains(curve, tuple(map(float, regions)), edges, float(low[d]), float(high[d]), now.actor.executed)


def _samples(now: BoxSolution, state: int, d: int, noisy: bool = True) -> np.ndarray:
    """Return agent actions at the quadrature's nodes; their weights are `_W`."""
    mean, std = now.mean[state, d], now.std[state, d]
    if now.actor.stochastic:
        return np.tanh(mean + std * _Z)
    noise = np.clip(now.actor.noise * _Z, -now.actor.noise_clip, now.actor.noise_clip) if noisy else 0.0
    return np.clip(mean + noise, -1.0, 1.0) + 0.0 * _Z


def _expected_quadratic(now: BoxSolution, state: int) -> float:
    dims = range(now.mean.shape[1])
    return sum(float(_W @ _gains(now, state, d, values=False).at(_samples(now, state, d))) for d in dims)


def _regions(now: BoxSolution, noisy: bool = False) -> np.ndarray:
    """Return (S, A) probabilities of each region under the policy."""
    table = np.zeros((now.spec.n_states, now.spec.n_actions))
    for state in range(now.spec.n_states):
        a = _gains(now, state, 0, values=False).a(_samples(now, state, 0, noisy))
        np.add.at(table[state], np.searchsorted(np.asarray(now.spec.edges), a, side="right"), _W)
    return table


def _log_jacobian(u: np.ndarray) -> np.ndarray:
    return 2 * (np.log(2.0) - u - np.logaddexp(0.0, -2 * u))


def _entropy_of(mean, std, jacobian: bool, every: int = 1):
    """Return the entropy of tanh(N(mean, std)) by every so many nodes; without the Jacobian, the Gaussian's own."""
    gaussian = 0.5 * np.log(2 * np.pi * np.e) + np.log(std)
    log_jacobian = _log_jacobian(mean[..., None] + std[..., None] * _Z[::every])
    return gaussian + every * log_jacobian @ _W[::every] * jacobian


def _entropies(now: BoxSolution, jacobian: bool) -> np.ndarray:
    if not now.actor.stochastic:
        return np.zeros(len(now.v))
    return _entropy_of(now.mean, now.std, jacobian).sum(-1)


def _improve(now: BoxSolution, alive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the best means and standard deviations given V, and the action as read."""
    mean, std = now.mean.copy(), np.full_like(now.std, 1.0 if now.actor.stochastic else 0.0)
    for state in np.flatnonzero(alive):
        for d in range(mean.shape[1]):
            gains = _gains(now, int(state), d)
            if now.actor.stochastic:
                weight = now.temperature * now.actor.policy_entropy
                best = _best_gaussian(gains, weight, now.actor.log_std, now.actor.policy_jacobian)
                mean[state, d], std[state, d] = best
            else:
                mean[state, d], std[state, d] = _best_action(gains), 0.0
    x = np.tanh(mean) if now.actor.stochastic else mean
    action = (
        x if now.actor.read == "agent" else np.stack([_to_box(now.spec, x[:, d], d) for d in range(x.shape[1])], -1)
    )
    return mean, std, action


@functools.lru_cache(maxsize=4096)
def _best_action(gains: Gains) -> float:
    _, slope, bend = gains.curve
    x = _X
    if bend < 0:
        vertex = -slope / (2 * bend)
        exact = vertex if gains.executed == "raw" else 2 * (vertex - gains.low) / (gains.high - gains.low) - 1
        x = np.r_[np.clip(exact, -1, 1), _X]
    return float(x[gains.at(x).argmax()])


@functools.lru_cache(maxsize=4096)  # most mistakes leave most states' problems as they are
def _best_gaussian(
    gains: Gains, weight: float, log_std: tuple[float, float], policy_jacobian: bool
) -> tuple[float, float]:
    """Return the mean and standard deviation that maximize E[gains] + weight * entropy."""
    from scipy.optimize import minimize

    def loss(mean: np.ndarray, log_std: np.ndarray, every: int = 1) -> np.ndarray:
        std = np.exp(log_std)
        x = np.tanh(mean[..., None] + std[..., None] * _Z[::every])
        values = every * gains.at(x) @ _W[::every]
        return -values - weight * _entropy_of(mean, std, policy_jacobian, every)

    means, log_stds = np.meshgrid(np.linspace(-3, 3, 13), np.linspace(*log_std, 15), indexing="ij")
    coarse = np.unravel_index(loss(means, log_stds, every=16).argmin(), means.shape)  # only where to start
    found = minimize(
        lambda p: float(loss(p[0], p[1])),
        [means[coarse], log_stds[coarse]],
        bounds=[(-9.0, 9.0), log_std],
        method="L-BFGS-B",
        options={"ftol": 1e-14, "gtol": 1e-9},
    )
    return float(found.x[0]), float(np.exp(found.x[1]))
