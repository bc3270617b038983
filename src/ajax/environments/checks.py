"""What can be told from recorded episodes alone, for environments of any kind."""

from __future__ import annotations

import dataclasses

import numpy as np

from ajax.core.spaces import Box, Discrete, Space
from ajax.environments.report import Fault

MERGED_LENGTH = 5  # shorter tasks of one fixed length (a bandit, a two-step chain) are common and sound
MERGED_EPISODES = 6
CHANCE = 0.01  # accepted chance that sound final observations look like first ones


@dataclasses.dataclass(frozen=True)
class Record:
    """Episodes of N copies over T steps, started over by the checker where they ended.

    Attributes:
        first_obs: (M, ...) observations of resets.
        first_state: (M, D) numbers in the states of resets; D = 0 where the state can't be seen.
        obs: (T, N, ...) what each step led to, the final observation at an episode's end.
        state: (T, N, D) numbers in the state that each step led to.
        reward: (T, N).
        terminated, truncated: (T, N) bool.
    """

    first_obs: np.ndarray
    first_state: np.ndarray
    obs: np.ndarray
    state: np.ndarray
    reward: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray

    @property
    def ended(self) -> np.ndarray:
        """(T, N) bool: the last step of an episode."""
        return self.terminated | self.truncated

    def lengths(self) -> np.ndarray:
        """Return the lengths of the episodes that ended."""
        ends = [np.flatnonzero(copy) for copy in self.ended.T]
        return np.concatenate([np.diff(copy, prepend=-1) for copy in ends])


def record_faults(record: Record, space: Space, time_limit: int | None) -> list[Fault]:
    """Return what is wrong with recorded episodes.

    Args:
        record: the episodes.
        space: the declared observation space.
        time_limit: steps after which the environment says it truncates, or None.
    """
    return [
        *_not_finite(record),
        *_outside(record.first_obs, space, "reset"),
        *_outside(record.obs, space, "step"),
        *_merged(record, time_limit),
        *_restarted(record),
    ]


def _not_finite(record: Record) -> list[Fault]:
    faults = []
    for what, where, values in (
        ("the observation", "reset", record.first_obs),
        ("the observation", "step", record.obs),
        ("the reward", "step", record.reward),
    ):
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            at = f" at step {bad[0][0]} of copy {bad[0][1]}" if where == "step" else ""
            sentence = f"{what} is {values[tuple(bad[0])]}{at}."
            faults.append(Fault(sentence, where, "Look for a division by zero, a log of zero or a growing state."))
    return faults


def _outside(obs: np.ndarray, space: Space, where: str) -> list[Fault]:
    low, high = (0, space.n - 1) if isinstance(space, Discrete) else (np.asarray(space.low), np.asarray(space.high))
    margin = 1e-5 * np.maximum(1.0, np.abs(np.where(np.isfinite(obs), obs, 0.0)))
    bad = np.argwhere((obs < low - margin) | (obs > high + margin))
    if not len(bad):
        return []
    index = tuple(bad[0])
    element = tuple(int(i) for i in index[obs.ndim - len(space.shape) :])
    bounds = [float(np.broadcast_to(bound, space.shape)[element]) for bound in (low, high)]
    sentence = f"observation{list(element) if element else ''} is {obs[index]:g}, outside its bounds {bounds}."
    return [Fault(sentence, where, "Widen the observation space, or clip the observation.")]


def _merged(record: Record, time_limit: int | None) -> list[Fault]:
    lengths = record.lengths()
    if len(lengths) == 0:
        return []
    n, length, fixed = len(lengths), int(lengths[0]), bool(np.all(lengths == lengths[0]))
    fix = "Set `truncated`, not `terminated`, at a time limit: the state keeps its value."
    if n > 1 and np.array_equal(record.terminated, record.truncated):
        sentence = f"each of the {n} episodes ended both terminated and truncated: one flag says it twice."
        return [Fault(sentence, "step", fix, likely=fixed)]
    declared = length == time_limit
    if fixed and not record.truncated.any() and (declared or (length >= MERGED_LENGTH and n >= MERGED_EPISODES)):
        sentence = (
            f"each of the {n} episodes ended terminated, after {length} steps"
            f"{', the declared time limit' if declared else ''}: a time limit taken for the task's end."
        )
        return [Fault(sentence, "step", f"Unless the task itself ends there: {fix[0].lower()}{fix[1:]}", likely=True)]
    return []


def _restarted(record: Record) -> list[Fault]:
    ended = record.ended
    looks = [_fresh(first, after, ended) for first, after in _views(record)]
    if not looks or not all(looks):
        return []
    sentence = (
        f"what `step` returns at the {ended.sum()} ends of episodes looks like the start of the next: "
        "the final observation is missing."
    )
    fix = "Return what the action led to; the training loop resets."
    return [Fault(sentence, "step", fix, likely=True)]


def _views(record: Record) -> list[tuple[np.ndarray, np.ndarray]]:
    """Observations and states as rows of numbers, leaving out those whose numbers don't tell a start from the rest."""
    pairs = [(record.first_obs, record.obs), (record.first_state, record.state)]
    flat = [(a.reshape(len(a), -1), b.reshape(*record.ended.shape, -1)) for a, b in pairs]
    return [(first, after) for first, after in flat if (~_inside(first, after[~record.ended]).all(0)).any()]


def _inside(first: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """(..., D) bool: which numbers lie in the range of the first ones, widened since the first are a sample."""
    low, high = first.min(0), first.max(0)
    margin = 0.1 * (high - low)
    return (rows >= low - margin) & (rows <= high + margin)


def _fresh(first: np.ndarray, after: np.ndarray, ended: np.ndarray) -> bool:
    """Whether most rows at episodes' ends lie in the range of first rows, as those in between hardly do."""
    inside = _inside(first, after)
    telling = ~inside[~ended].all(0)
    inside = np.asarray(inside[..., telling].all(-1))
    share = (inside[~ended].sum() + 1) / ((~ended).sum() + 2)
    fresh = inside[ended].sum()
    return bool(fresh > 2 / 3 * ended.sum() and share < 0.2 and share**fresh < CHANCE)


def action_faults(space: Space, outcomes: dict[str, np.ndarray]) -> list[Fault]:
    """Return what is wrong with the use of an action box.

    Args:
        space: the declared action space.
        outcomes: (n, D) numbers that a step from each of n states led to, by the action taken: "low" and "high" are
            the box's edges, "middle" its centre, "low cut" and "high cut" the edges cut to [-1, 1].
    """
    if not isinstance(space, Box):
        return []
    n = len(outcomes["low"])

    def same(*actions: str) -> bool:
        return all(np.array_equal(outcomes[actions[0]], outcomes[a], equal_nan=True) for a in actions[1:])

    if same("low", "middle", "high"):
        sentence = f"the lowest, middle and highest action lead to the same from each of {n} states."
        return [Fault(sentence, "action_space", "Use the action, in the units of the declared box.", likely=True)]
    wide = [
        edge for edge, bound in (("low", space.low), ("high", space.high)) if np.any(np.abs(np.asarray(bound)) > 1.0)
    ]
    if wide and all(same(edge, f"{edge} cut") for edge in wide):
        sentence = (
            f"the edges of the action box [{np.min(space.low):g}, {np.max(space.high):g}] lead to the same as when "
            f"cut to [-1, 1], from each of {n} states: a part of the box is ignored."
        )
        return [Fault(sentence, "action_space", "Declare the box that is used, or use the whole box.")]
    return []


def edge_actions(space: Box) -> dict[str, np.ndarray]:
    """Return the actions that `action_faults` asks for, by name."""
    low, high = (np.broadcast_to(np.asarray(b, np.float32), space.shape) for b in (space.low, space.high))
    middle = (low + high) / 2
    cut = {"low cut": np.clip(low, -1.0, 1.0), "high cut": np.clip(high, -1.0, 1.0)}
    return {"low": low, "middle": middle, "high": high, **cut}
