"""Returns and advantages of one known trajectory, right and mistaken: written as sums over paths, in float64.

These are the answers for functions that estimate from data without learning (GAE, lambda and n-step returns), where
most mistakes leave the fixed point of training alone and show in the numbers only.
"""

from __future__ import annotations

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class Trajectory:
    """T consecutive steps; episodes may end inside.

    Attributes:
        rewards: (T,).
        values: (T,) of the observations acted on.
        next_values: (T,) of the observations that the steps led to, final ones included.
        terminated, truncated: (T,) booleans.
    """

    rewards: np.ndarray
    values: np.ndarray
    next_values: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    def __post_init__(self):
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, np.array(getattr(self, field.name), float))

    @property
    def ended(self) -> np.ndarray:
        """(T,) 1 where an episode ended, for whichever reason."""
        return np.maximum(self.terminated, self.truncated)


def gae(t: Trajectory, gamma: float, lam: float) -> dict[str, np.ndarray]:
    """Return `{"right": (T,) advantages, mistake: (T,), ...}` of generalized advantage estimation.

    Source: Schulman et al. 2016, arXiv:1506.02438, equation 16; cut at every episode's end.
    """
    goes_on, open_ = 1 - t.terminated, 1 - t.ended

    def total(goes_on=goes_on, open_=open_, gamma=gamma, lam=lam, next_values=t.next_values) -> np.ndarray:
        delta = t.rewards + gamma * goes_on * next_values - t.values
        return _discounted_sums(delta, gamma * lam * open_)

    def forwards() -> np.ndarray:
        sums = t.rewards + gamma * goes_on * t.next_values - t.values
        for row in range(1, len(sums)):
            sums[row] += gamma * lam * open_[row] * sums[row - 1]
        return sums

    early, late = _moved(t, -1), _moved(t, 1)
    return _visible(
        {
            "right": total(),
            "episode ends read one step early": total(1 - early.terminated, 1 - early.ended),
            "episode ends read one step late": total(1 - late.terminated, 1 - late.ended),
            "episode ends ignored": total(np.ones_like(goes_on), np.ones_like(open_)),
            "trace not cut at episode ends": total(open_=np.ones_like(open_)),
            "termination taken as a time limit": total(goes_on=np.ones_like(goes_on)),
            "time limit taken as a termination": total(goes_on=open_),
            "bootstrap from the observation acted on": total(next_values=t.values),
            "GAE forwards in time": forwards(),
            "discount squared": total(gamma=gamma**2),
            "no discount": total(gamma=1.0),
            "lambda ignored (0)": total(lam=0.0),
            "lambda ignored (1)": total(lam=1.0),
        }
    )


def lambda_returns(t: Trajectory, gamma: float, lam: float) -> dict[str, np.ndarray]:
    """Return `{"right": (T,) lambda returns, mistake: (T,), ...}`.

    Source: Sutton & Barto 2018, equation 12.18; Gallici et al. 2024, arXiv:2407.04811, for action values, whose
    `next_values` are maxima over actions.
    """

    def total(terminated=t.terminated, ended=t.ended, gamma=gamma, lam=lam, next_values=t.next_values) -> np.ndarray:
        inside = 1 - ended
        inside[-1] = 0.0  # nothing follows the last row: it bootstraps in full
        steps = t.rewards + gamma * (1 - terminated) * (1 - lam * inside) * next_values
        return _discounted_sums(steps, gamma * lam * inside)

    seeded = right = total()
    if len(right) > 1 and not t.ended[-2]:
        head = Trajectory(*(getattr(t, f.name)[:-1] for f in dataclasses.fields(t)))
        head.next_values[-1] = t.next_values[-1]
        seeded = np.r_[lambda_returns(head, gamma, lam)["right"], right[-1]]
    return _visible(
        {
            "right": right,
            "last bootstrap used for two rows": seeded,
            "episode ends ignored": total(terminated=np.zeros_like(right), ended=np.zeros_like(right)),
            "trace not cut at episode ends": total(ended=np.zeros_like(right)),
            "termination taken as a time limit": total(terminated=np.zeros_like(right)),
            "time limit taken as a termination": total(terminated=t.ended),
            "bootstrap from the observation acted on": total(next_values=t.values),
            "discount squared": total(gamma=gamma**2),
            "no discount": total(gamma=1.0),
            "lambda ignored (0)": total(lam=0.0),
            "lambda ignored (1)": total(lam=1.0),
        }
    )


def n_step_returns(t: Trajectory, gamma: float, n: int) -> dict[str, np.ndarray]:
    """Return `{"right": (T,) returns, mistake: (T,), ...}` over n steps, fewer where an episode or the data ends.

    Source: Sutton & Barto 2018, equation 7.1.
    """

    def total(gamma=gamma, n=n, terminated=t.terminated, ended=t.ended, raised=True) -> np.ndarray:
        found = np.zeros(len(t.rewards))
        for first in range(len(found)):
            last = first
            while last + 1 < min(first + n, len(found)) and not ended[last]:
                last += 1
            powers = gamma ** np.arange(last - first + 1)
            boot = gamma ** (last - first + 1 if raised else 1) * (1 - terminated[last]) * t.next_values[last]
            found[first] = powers @ t.rewards[first : last + 1] + boot
        return found

    never = np.zeros(len(t.rewards))
    return _visible(
        {
            "right": total(),
            "n-step bootstrap discounted once": total(raised=False),
            "one step instead of n": total(n=1),
            "episode ends ignored": total(terminated=never, ended=never),
            "termination taken as a time limit": total(terminated=never),
            "time limit taken as a termination": total(terminated=t.ended),
            "discount squared": total(gamma=gamma**2),
            "no discount": total(gamma=1.0),
        }
    )


def _discounted_sums(terms: np.ndarray, decay: np.ndarray) -> np.ndarray:
    """Return (T,) sums over rows u >= t of terms[u] times decay[t] ... decay[u - 1]."""
    rows = range(len(terms))
    return np.array([sum(np.prod(decay[t:u]) * terms[u] for u in rows[t:]) for t in rows])


def _moved(t: Trajectory, by: int) -> Trajectory:
    """Return the trajectory with its flags moved `by` rows later (earlier if negative), rows beyond the edge False."""

    def move(flags: np.ndarray) -> np.ndarray:
        return np.r_[np.zeros(by), flags[:-by]] if by > 0 else np.r_[flags[-by:], np.zeros(-by)]

    return dataclasses.replace(t, terminated=move(t.terminated), truncated=move(t.truncated))


def _visible(found: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: x for name, x in found.items() if name == "right" or not np.allclose(x, found["right"], atol=1e-6)}
