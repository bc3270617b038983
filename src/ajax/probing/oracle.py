"""The right answers of a Spec, and the wrong ones, computed in float64 by the same code.

An agent's learning target is an affine map of the values it bootstraps from: on average over its data it moves
Q(s, a) towards `offset[s, a] + sum_s' weight[s, a, s'] V(s')`, and V(s) is read off Q(s, .) by the backup. `Estimator`
says which map that is; `solve` finds its fixed point. A mistake changes what the estimator means, nothing else, so the
answer it leads to needs no code of its own (see `ajax.probing.mistakes`).

Arrays are indexed (state, action); S states, A actions, K outcomes as in `Spec`.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

from ajax.probing.spec import Spec


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Estimator:
    """What an agent's target estimates.

    Attributes:
        gamma: discount per step; ignored under `average`.
        backup: V(s) from Q(s, .): its max, min or mean, its mean under `policy`, or under the softmax of
            Q / `temperature`.
        policy: (S, A) probabilities, for `backup="policy"`; uniform by default.
        behaviour: (S, A) probabilities of the actions in the data: they decide what n-step and lambda returns pass
            through and how often a state meets the time limit; uniform by default.
        temperature: weight of the policy's entropy, in V and (softmax) in the policy.
        entropy: multiplies the entropy in V: 1, 0 for a value without it (PPO's bonus), -1 for a wrong sign.
        policy_temperature: temperature of the softmax if not `temperature`; 0 is greedy.
        n: steps of reward before the bootstrap.
        raised: whether the bootstrap of n steps is discounted by gamma^n, not gamma.
        lam: lambda; 0 bootstraps after `n` steps, above 0 it needs n = 1.
        forward: whether the lambda trace sums past instead of future errors (`backup="policy"` only).
        average: whether values are differential: the gain is subtracted from every reward, nothing discounted.
        subtract_gain: whether it really is.
        reference: where not 0, the gain is this times the mean value of what steps lead to, as relative value iteration
            has it (`average` in a box only); it holds the values' constant.
        cut: the bootstrap is dropped where the task terminated, where the episode ended at all, or never; under
            `"reset"` a termination goes on from the first state of the next episode.
        bootstrap: where the time limit cut an episode, bootstrap from what the step led to (`"next"`), from the
            first observation of the next episode (`"reset"`), or from the one acted on (`"current"`).
        moved: whether the bootstrap reads what a step led to; else every one reads what was acted on.
        seen_as: (S,) the state that the bootstrap takes each state for (an unnormalised observation that looks like
            another state's, say); itself by default.
        dummy_rows: whether the step that a reset takes in some vector environments is learned from as if it were one.
        reward_scale: multiplies every reward.
        boot: multiplies the bootstrap: 0 for none.
        shift: Q's index a holds what belongs to a - shift (modulo A).
        greedy_shift: the greedy action is read that many indices off (modulo A).
    """

    gamma: float = 1.0
    backup: Literal["max", "min", "mean", "policy", "soft"] = "max"
    policy: np.ndarray | None = None
    behaviour: np.ndarray | None = None
    temperature: float = 0.0
    entropy: float = 1.0
    policy_temperature: float | None = None
    n: int = 1
    raised: bool = True
    lam: float = 0.0
    forward: bool = False
    average: bool = False
    subtract_gain: bool = True
    reference: float = 0.0
    cut: Literal["terminated", "ended", "never", "reset"] = "terminated"
    bootstrap: Literal["next", "reset", "current"] = "next"
    moved: bool = True
    seen_as: tuple[int, ...] | None = None
    dummy_rows: bool = False
    reward_scale: float = 1.0
    boot: float = 1.0
    shift: int = 0
    greedy_shift: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Solution:
    """The fixed point of an estimator.

    Attributes:
        q: (S, A) action values; infinite where the iteration diverges, NaN in states that no episode acts in.
        v: (S,) values.
        policy: (S, A) probabilities of the policy that V belongs to.
        greedy: (S,) the action read as best.
        gain: reward per step of `policy`, entropy included; episodes restart as in the Spec.
    """

    q: np.ndarray
    v: np.ndarray
    policy: np.ndarray
    greedy: np.ndarray
    gain: float


@dataclasses.dataclass(frozen=True, eq=False)
class Data:
    """How often what happens, under a policy and the Spec's restarts.

    Attributes:
        visits: (S,) share of steps taken in each state.
        timed_out: (S,) of the steps taken in a state, the share at which the time limit strikes.
        arrivals: (S,) episodes that end in a state, per step.
    """

    visits: np.ndarray
    timed_out: np.ndarray
    arrivals: np.ndarray


def uniform_policy(spec: Spec) -> np.ndarray:
    """Return the (S, A) uniform policy."""
    return np.full((spec.n_states, spec.n_actions), 1.0 / spec.n_actions)


def collect(spec: Spec, policy: np.ndarray) -> Data:
    """Return the long-run data of `policy` (S, A) in `spec`, restarts and staggered clocks included."""
    moves = _transitions(spec)
    onwards = np.einsum("sa,sat->st", policy, moves["onwards"])
    ends = np.einsum("sa,sat->st", policy, moves["ends"])
    if spec.limit is None:
        struck = np.zeros(spec.n_states)
        if _radius(onwards[np.ix_(*2 * [reachable(spec)])]) < 1 - 1e-12:
            visits = np.linalg.solve(np.eye(spec.n_states) - _closed(spec, onwards).T, spec.start)
        else:  # no episode ever ends: the share of steps is the chain's stationary distribution
            system = np.vstack([onwards.T - np.eye(spec.n_states), np.ones(spec.n_states)])
            visits = np.linalg.lstsq(system, np.r_[np.zeros(spec.n_states), 1.0], rcond=None)[0]
            return Data(visits, struck, struck)
    else:
        mass, visits = np.zeros(spec.n_states), np.zeros(spec.n_states)
        for clock in range(spec.limit):
            mass = mass @ onwards + (spec.start / spec.stagger if clock < spec.stagger else 0.0)
            visits += mass
        struck = mass
    arrivals = visits @ ends + struck @ onwards
    timed_out = np.divide(struck, visits, out=np.zeros_like(visits), where=visits > 0)
    return Data(visits / visits.sum(), timed_out, arrivals / visits.sum())


def reachable(spec: Spec) -> np.ndarray:
    """Return (S,) booleans: the states that some episode acts in."""
    seen = spec.start > 0
    onwards = _transitions(spec)["onwards"].sum(1) > 0
    for _ in range(spec.n_states if spec.limit is None else min(spec.limit - 1, spec.n_states)):
        seen = seen | (seen @ onwards)
    return seen


def solve(spec: Spec, estimator: Estimator) -> Solution:
    """Return the fixed point of `estimator` on `spec`, by policy iteration with exact linear solves.

    Raises:
        RuntimeError: the iteration does not settle, or the estimator combines what has no meaning together.
    """
    e = estimator
    if e.lam and e.n != 1:
        raise RuntimeError(f"an estimator takes lambda or n steps, not both; got lam={e.lam}, n={e.n}")
    if e.reference:
        raise RuntimeError(f"a reference is for agents that act in a box; got reference={e.reference} without one")
    table = target(spec, e)
    policy, v = uniform_policy(spec) if e.policy is None else np.asarray(e.policy, float), None
    for _ in range(2000):
        v_new, gain = _evaluate(spec, e, policy, table)
        if e.forward:
            v_new = _forward_values(spec, e, policy)
        if not np.all(np.isfinite(v_new)):
            if e.average and not e.subtract_gain:  # a constant in every reward changes no policy
                found = solve(spec, dataclasses.replace(e, subtract_gain=True))
                return dataclasses.replace(found, q=np.full_like(found.q, np.inf), v=np.full_like(found.v, np.inf))
            return _reading(spec, e, np.full_like(table.offset, np.inf), v_new, policy, gain)
        q = table.offset - gain * table.span * (e.average and e.subtract_gain) + table.weight @ v_new
        if v is not None and np.allclose(v, v_new, rtol=1e-12, atol=1e-12, equal_nan=True):
            return _reading(spec, e, q, v_new, policy, gain)
        policy, v = _improve(e, q, policy), v_new
    raise RuntimeError(f"no fixed point found on {spec.name!r} within 2000 iterations of {e}")


@dataclasses.dataclass(frozen=True, eq=False)
class Target:
    """Q moves towards `offset + weight @ V`.

    Attributes:
        offset: (S, A) discounted rewards before the bootstrap.
        span: (S, A) discounted steps before the bootstrap: what a reward of 1 a step would give.
        weight: (S, A, S) discounted weights of the bootstrap.
    """

    offset: np.ndarray
    span: np.ndarray
    weight: np.ndarray


def target(spec: Spec, e: Estimator) -> Target:
    """Return the affine map that `e` means on `spec`."""
    s = spec.n_states
    moves, alive = _transitions(spec), reachable(spec)
    data = collect(spec, uniform_policy(spec) if e.behaviour is None else np.asarray(e.behaviour, float))
    struck = data.timed_out[:, None, None]
    looks = np.eye(s)[list(range(s) if e.seen_as is None else e.seen_as)]
    at_limit = {"next": looks if e.moved else None, "reset": np.tile(spec.start, (s, 1)), "current": None}[e.bootstrap]
    onwards = moves["onwards"]
    inside = (1 - struck) * onwards
    limit_row = onwards.sum(-1, keepdims=True) * np.eye(s)[:, None] if at_limit is None else onwards @ at_limit
    last = 0.0 if e.cut == "ended" else struck * limit_row
    if e.cut in ("never", "reset"):
        last = last + moves["ends"] @ (looks if e.cut == "never" else np.tile(spec.start, (s, 1)))
    gamma = 1.0 if e.average else e.gamma
    reward = e.reward_scale * np.sum(spec.probability * spec.reward, -1)
    pieces = [reward, np.ones_like(reward)]
    behaviour = uniform_policy(spec) if e.behaviour is None else np.asarray(e.behaviour, float)

    def through(later: np.ndarray) -> np.ndarray:  # the mean over the data's next action of a quantity (S, A, ...)
        return np.einsum("sat,tb,tb...->sa...", inside, behaviour, later)

    boot = gamma * e.boot * (inside @ looks if e.moved else inside.sum(-1, keepdims=True) * looks[:, None])
    if e.lam:
        n = behaviour.size
        chain = np.einsum("sat,tb->satb", inside, behaviour).reshape(n, n)
        sums = np.linalg.inv(np.eye(n) - gamma * e.lam * chain)
        weight = (1 - e.lam) * boot + gamma * e.boot * last
        offset, span = ((sums @ piece.ravel()).reshape(piece.shape) for piece in pieces)
        weight = (sums @ weight.reshape(n, s)).reshape(weight.shape)
    else:
        power = 1.0 if e.raised else gamma ** (1 - e.n)
        offset, span = pieces
        weight = power * boot + gamma * e.boot * last
        for _ in range(e.n - 1):
            offset, span = (piece + gamma * through(later) for piece, later in zip(pieces, (offset, span), strict=True))
            weight = gamma * e.boot * last + gamma * through(weight)
    if e.dummy_rows:
        rows = data.visits + data.arrivals
        share = np.divide(data.arrivals, rows, out=np.zeros(s), where=rows > 0)[:, None]
        offset, span = (1 - share) * offset, (1 - share) * span
        weight = (1 - share)[..., None] * weight + (share * gamma)[..., None] * spec.start
    # no step is ever taken in a state that is not alive: its value stays where the network began, near 0
    return Target(offset, span, weight * alive)


def entropy(policy: np.ndarray) -> np.ndarray:
    """Return the (S,) entropies, in nats, of a (S, A) policy."""
    return -np.sum(policy * np.log(np.where(policy > 0, policy, 1.0)), -1)


def _transitions(spec: Spec) -> dict[str, np.ndarray]:
    """Return (S, A, S) probabilities of moving `onwards` and of moving to a state where the task `ends`."""
    to = np.eye(spec.n_states)[spec.next_state]
    on = spec.probability * ~spec.terminated
    return {
        "onwards": np.einsum("sak,sakt->sat", on, to),
        "ends": np.einsum("sak,sakt->sat", spec.probability - on, to),
    }


def _radius(matrix: np.ndarray) -> float:
    return float(np.abs(np.linalg.eigvals(matrix)).max()) if matrix.size else 0.0


def _closed(spec: Spec, matrix: np.ndarray) -> np.ndarray:
    alive = reachable(spec)
    return matrix * alive[:, None] * alive


def _evaluate(spec: Spec, e: Estimator, policy: np.ndarray, table: Target) -> tuple[np.ndarray, float]:
    """Return V (S,) of `policy` under the target, and the gain; infinite values where the target diverges."""
    alive = reachable(spec)
    read = np.roll(policy, -e.shift, -1) if e.backup == "policy" else policy
    bonus = e.temperature * e.entropy * entropy(policy)
    weight = np.einsum("sa,sat->st", read, table.weight) * alive[:, None]
    offset = (np.sum(read * table.offset, -1) + bonus) * alive
    visits = collect(spec, policy).visits
    rewards = e.reward_scale * np.sum(policy * np.sum(spec.probability * spec.reward, -1), -1)
    gain = float(visits @ (rewards + bonus))
    if e.average and e.subtract_gain:
        offset = offset - gain * np.sum(read * table.span, -1) * alive
    return settle(weight, offset, visits, e.average and e.subtract_gain), gain


def settle(weight: np.ndarray, offset: np.ndarray, visits: np.ndarray, differential: bool) -> np.ndarray:
    """Return the V that repeating `V <- offset + weight @ V` settles at; infinite if it doesn't.

    Differential values (gain subtracted) of a chain without terminations are only defined up to a constant: their mean
    over `visits` is then 0.
    """
    system = np.eye(len(offset)) - weight
    if _radius(weight) < 1 - 1e-9:
        return np.linalg.solve(system, offset)
    v = np.linalg.lstsq(np.vstack([system, visits]), np.r_[offset, 0.0], rcond=None)[0]
    return v if differential and np.allclose(system @ v, offset, atol=1e-8) else np.full_like(offset, np.inf)


def refer(
    weight: np.ndarray, offset: np.ndarray, span: np.ndarray, following: np.ndarray, reference: float
) -> tuple[np.ndarray, float]:
    """Return V and the gain that `V <- V + rate (offset - gain * span + weight @ V - V)` settles at, for a small rate.

    The gain is `reference` times the mean of V over `following` (S,), how often steps lead to each state.

    Raises:
        RuntimeError: it does not settle.
    """
    held = weight - reference * np.outer(span, following)
    if np.linalg.eigvals(held).real.max() >= 1 - 1e-9:
        raise RuntimeError(f"values do not settle under the reference {reference}")
    v = np.linalg.solve(np.eye(len(offset)) - held, offset)
    return v, float(reference * following @ v)


def _forward_values(spec: Spec, e: Estimator, policy: np.ndarray) -> np.ndarray:
    """Return V (S,) at which the trace A_t = delta_t + gamma lambda (1 - end_t) A_(t-1) is zero on average.

    Solved jointly with `carried` (S,), the mean of A_(t-1) when a step is taken in a state: over the state's
    predecessors and, for a first state, over the last steps of episodes. Rows are the kinds of step (state, action,
    outcome, at the time limit or not), N of them.
    """
    data, s = collect(spec, policy), spec.n_states
    kinds = np.multiply.outer(spec.probability * policy[..., None] * data.visits[:, None, None], np.ones(2))
    kinds *= np.stack([1 - data.timed_out, data.timed_out], -1)[:, None, None, :]
    share = kinds.ravel()  # (N,)

    def rows(table: np.ndarray) -> np.ndarray:
        return np.broadcast_to(table, kinds.shape).reshape(len(share))

    here = np.eye(s)[rows(np.arange(s)[:, None, None, None])]
    there = np.eye(s)[rows(spec.next_state[..., None])]
    terminated = rows(spec.terminated[..., None])
    ended = terminated | rows(np.array([False, True]))
    error = e.gamma * ~terminated[:, None] * there - here  # delta is reward + error @ V
    trace = e.gamma * e.lam * ~ended[:, None] * here  # A is delta + trace @ carried
    follows = np.where(ended[:, None], spec.start, there)
    shares = np.divide(share[:, None] * follows, data.visits, out=np.zeros_like(follows), where=data.visits > 0)
    per_state, reward = here * share[:, None], e.reward_scale * rows(spec.reward[..., None])
    system = np.block([[per_state.T @ error, per_state.T @ trace], [shares.T @ error, shares.T @ trace - np.eye(s)]])
    right = -np.r_[per_state.T @ reward, shares.T @ reward]
    return np.linalg.lstsq(system, right, rcond=None)[0][:s]


def _improve(e: Estimator, q: np.ndarray, policy: np.ndarray) -> np.ndarray:
    if e.backup == "policy":
        return policy
    if e.backup == "mean":
        return np.full_like(q, 1.0 / q.shape[1])
    temperature = 0.0
    if e.backup == "soft":
        temperature = e.temperature if e.policy_temperature is None else e.policy_temperature
    if temperature == 0.0:
        return np.eye(q.shape[1])[(-q if e.backup == "min" else q).argmax(-1)]
    weights = np.exp((q - q.max(-1, keepdims=True)) / temperature)
    return weights / weights.sum(-1, keepdims=True)


def _reading(spec: Spec, e: Estimator, q: np.ndarray, v: np.ndarray, policy: np.ndarray, gain: float) -> Solution:
    alive = reachable(spec)
    q = np.roll(np.where(alive[:, None], q, np.nan), e.shift, -1)
    greedy = (np.where(alive[:, None], q, 0.0).argmax(-1) + e.greedy_shift) % spec.n_actions
    return Solution(q, np.where(alive, v, np.nan), policy, greedy, gain)
