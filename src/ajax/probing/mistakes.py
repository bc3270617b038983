"""Problems, and the mistakes by name: each changes what an estimator means, and says where to look for it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from ajax.core.errors import unknown_name
from ajax.probing.oracle import Estimator, Solution, solve
from ajax.probing.spec import Spec

if TYPE_CHECKING:
    from ajax.probing.box_oracle import Actor, BoxSolution

SAME = 1e-6  # answers closer than this are one answer


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """A Spec and what the probed agent should estimate on it.

    Attributes:
        spec: the environment.
        estimator: the target.
        actor: how actions in a box are chosen; None for discrete actions.
        raw_looks: where observations are normalized, (S,) the state whose normalized observation each state's raw one
            equals.
    """

    spec: Spec
    estimator: Estimator
    actor: Actor | None = None
    raw_looks: tuple[int, ...] | None = None

    def solve(self) -> Solution | BoxSolution:
        """Return the answer in full."""
        if self.actor is None:
            return solve(self.spec, self.estimator)
        from ajax.probing.box_oracle import solve_box

        return solve_box(self.spec, self.estimator, self.actor)


@dataclasses.dataclass(frozen=True)
class Mistake:
    """A way to be wrong.

    Attributes:
        look: where the cause is to be found; completes "look at ...".
        change: makes the problem that the mistaken agent solves; None where it can't concern the problem.
    """

    look: str
    change: Callable[[Problem], Problem | None]


_FINITE = {"backup", "policy_temperature", "shift", "greedy_shift", "forward"}  # read off tables of actions only


def _estimator(look: str, applies: Callable[[Estimator], bool] = lambda e: True, **changes) -> Mistake:
    """A mistake that replaces fields of the estimator; a callable value is given the estimator."""

    def change(problem: Problem) -> Problem | None:
        e = problem.estimator
        if not applies(e) or (problem.actor is not None and _FINITE & set(changes)):
            return None
        values = {name: value(e) if callable(value) else value for name, value in changes.items()}
        return dataclasses.replace(problem, estimator=dataclasses.replace(e, **values))

    return Mistake(look, change)


def _actor(look: str, applies: Callable[[Actor], bool] = lambda a: True, **changes) -> Mistake:
    """A mistake that replaces fields of the actor."""

    def change(problem: Problem) -> Problem | None:
        actor = problem.actor
        if actor is None or not applies(actor):
            return None
        return dataclasses.replace(problem, actor=dataclasses.replace(actor, **changes))

    return Mistake(look, change)


def _unnormalized(problem: Problem) -> Problem | None:
    """The problem of an agent whose target sees raw observations."""
    if problem.raw_looks is None:
        return None
    return dataclasses.replace(problem, estimator=dataclasses.replace(problem.estimator, seen_as=problem.raw_looks))


_TARGET = "how the target is computed"
_DISCOUNT = "where the discount enters the target"
_ENDS = "how terminated, truncated and the next observation reach the target"
_REWARD = "every place that scales or normalizes rewards"
_ENTROPY = "the entropy term"
_INDEX = "how the taken action's value is indexed"
_GREEDY = "how the best action is read"
_SQUASH = "log_prob of squashed actions"
_BOX = "where actions meet the environment's box"


def _entropic(e: Estimator) -> bool:
    return e.temperature != 0


def _discounted(e: Estimator) -> bool:
    return not e.average


MISTAKES: dict[str, Mistake] = {
    "mean instead of max in the bootstrap": _estimator(_TARGET, lambda e: e.backup == "max", backup="mean"),
    "min instead of max in the bootstrap": _estimator(_TARGET, lambda e: e.backup == "max", backup="min"),
    "max instead of the policy's mean in the bootstrap": _estimator(
        _TARGET, lambda e: e.backup == "policy", backup="max"
    ),
    "max instead of the soft value in the bootstrap": _estimator(
        _TARGET, lambda e: e.backup == "soft", backup="max", temperature=0.0
    ),
    "discount squared": _estimator(_DISCOUNT, _discounted, gamma=lambda e: e.gamma**2),
    "1 - discount for the discount": _estimator(_DISCOUNT, _discounted, gamma=lambda e: 1 - e.gamma),
    "no discount": _estimator(_DISCOUNT, _discounted, gamma=1.0),
    "no bootstrap": _estimator(_TARGET, boot=0.0),
    "sum of two critics for their minimum": _actor("how the critics are combined", critics=2.0),
    "n-step bootstrap discounted once": _estimator(_DISCOUNT, lambda e: e.n > 1, raised=False),
    "one step instead of n": _estimator("how the rewards of n steps are gathered", lambda e: e.n > 1, n=1),
    "lambda ignored (0)": _estimator("how lambda reaches the returns", lambda e: e.lam > 0, lam=0.0),
    "lambda ignored (1)": _estimator("how lambda reaches the returns", lambda e: 0 < e.lam < 1, lam=1.0),
    "GAE forwards in time": _estimator(
        "the direction of the scan over time",
        lambda e: e.lam > 0 and e.backup == "policy" and not e.average,
        forward=True,
    ),
    "time limit taken as a termination": _estimator(_ENDS, cut="ended"),
    "bootstrap through terminations": _estimator(_ENDS, cut="never"),
    "bootstrap dropped where the task is reset": _estimator(_ENDS, lambda e: e.cut == "reset", cut="terminated"),
    "bootstrap from the reset observation": _estimator(_ENDS, bootstrap="reset"),
    "bootstrap from the observation acted on": _estimator(_ENDS, bootstrap="current"),
    "next observation is the one acted on": _estimator("what is stored as the next observation", moved=False),
    "normalizer skipped in the target": Mistake("where the next observation is normalized", _unnormalized),
    "reset step learned from": _estimator("what is stored at the step that resets", dummy_rows=True),
    "reward scaled twice": _estimator(_REWARD, reward_scale=lambda e: e.reward_scale**2),
    "reward not scaled": _estimator(_REWARD, reward_scale=1.0),
    "reward with the wrong sign": _estimator(_REWARD, reward_scale=lambda e: -e.reward_scale),
    "reward missing": _estimator(_REWARD, reward_scale=0.0),
    "entropy with the wrong sign in the target": _estimator(_ENTROPY, _entropic, entropy=-1.0),
    "no entropy in the target": _estimator(_ENTROPY, lambda e: _entropic(e) and e.entropy != 0, entropy=0.0),
    "entropy counted in the target": _estimator(_ENTROPY, lambda e: _entropic(e) and e.entropy == 0, entropy=1.0),
    "no entropy in the policy": _estimator(_ENTROPY, lambda e: e.backup == "soft", policy_temperature=0.0),
    "gain not subtracted": _estimator(
        "how the average reward enters the target", lambda e: e.average, subtract_gain=False
    ),
    "actions shifted up by one": _estimator(_INDEX, shift=1),
    "actions shifted down by one": _estimator(_INDEX, shift=-1),
    "greedy action read one index up": _estimator(_GREEDY, greedy_shift=1),
    "greedy action read one index down": _estimator(_GREEDY, greedy_shift=-1),
    "no tanh Jacobian in the target": _actor(_SQUASH, lambda a: a.stochastic, target_jacobian=False),
    "no tanh Jacobian in the policy": _actor(_SQUASH, lambda a: a.stochastic, policy_jacobian=False),
    "no tanh Jacobian": _actor(_SQUASH, lambda a: a.stochastic, target_jacobian=False, policy_jacobian=False),
    "entropy with the wrong sign in the policy": _actor(_ENTROPY, lambda a: a.stochastic, policy_entropy=-1.0),
    "no entropy in the actor's loss": _actor(_ENTROPY, lambda a: a.stochastic, policy_entropy=0.0),
    "target noise not clipped": _actor("the noise of the target policy", lambda a: a.noise > 0, noise_clip=np.inf),
    "no target noise": _actor("the noise of the target policy", lambda a: a.noise > 0, noise=0.0),
    "actions clamped to [-1, 1]": _actor(_BOX, executed="clamped"),
    "actions not mapped onto the box": _actor(_BOX, executed="raw"),
    "actions read in agent units": _actor(_BOX, read="agent"),
}


def answers(
    problem: Problem,
    read: Callable[..., float],
    mistakes: Iterable[str] | None = None,
) -> dict[str, float]:
    """Return `{"right": value, mistake: value, ...}` of one reading.

    Args:
        problem: what is solved.
        read: takes the solution, returns the number: `lambda s: s.q[0, 2]`.
        mistakes: their names; all by default, less those that leave the reading unchanged or have no fixed point.

    Raises:
        UnknownName: a mistake is not in `MISTAKES`.
        RuntimeError: a mistake that was asked for can't concern the problem, or doesn't show in the reading.
    """
    found = {"right": float(read(_solved(problem, "")))}
    for name in MISTAKES if mistakes is None else mistakes:
        if name not in MISTAKES:
            raise unknown_name("mistake", name, MISTAKES)
        try:
            solution = _solved(problem, name)
        except RuntimeError:  # it leads to no fixed point, so there is no reading to compare with
            if mistakes is not None:
                raise
            continue
        value = found["right"] if solution is None else float(read(solution))
        if not abs(value - found["right"]) > SAME:
            if mistakes is not None:
                raise RuntimeError(
                    f"{problem.spec.name}: {name!r} leaves this reading at {value:.4g}; ask another one."
                )
            continue
        found[name] = value
    return found


@functools.lru_cache(maxsize=4096)
def _solved(problem: Problem, mistake: str) -> Any:
    """The solution of a problem under a mistake (none: right); None where it can't concern the problem."""
    changed = MISTAKES[mistake].change(problem) if mistake else problem
    return None if changed is None else changed.solve()
