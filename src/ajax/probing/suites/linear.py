"""Cases of agents that learn through the environment: the best action at each step, on a linear system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ajax.probing import Case, Query
from ajax.probing.linear_env import LinearEnv
from ajax.probing.query import LEAST
from ajax.probing.subjects import AjaxSubject
from ajax.probing.suites.boxes import BOX
from ajax.probing.suites.readings import UNCALIBRATED, Calibrated

GAMMA = 0.7
SYSTEM = LinearEnv(start=-1.4, drift=2.0, effort=2.0, n_steps=2, terminates=True, action_space=BOX)
"""Two steps. The best actions lie inside the box, the second where the first leads."""


def linear_case(
    id: str,
    title: str,
    subject: AjaxSubject,
    env: LinearEnv,
    follow: Sequence[float],
    wrong: Mapping[str, Sequence[float]],
    calibrated: Calibrated = UNCALIBRATED,
) -> Case:
    """Return a case that reads the action at each step of the best episode.

    Args:
        id, title, subject, env: who is probed on what.
        follow: what the rest of an episode weighs at each step; see `LinearEnv.best`.
        wrong: the same under each named mistake.
        calibrated: see `Calibrated`.
    """
    places, gains = [float(env.start)], env.best(follow)
    for gain in gains[:-1]:
        places.append((env.drift + gain) * places[-1])
    obs = np.stack([np.asarray(env.obs(x, t)) for t, x in enumerate(places)])

    def query(t: int) -> Query:
        right = gains[t] * places[t]
        low, high = (float(np.ravel(bound)[0]) for bound in (env.action_space.low, env.action_space.high))
        found = {mistake: env.best(weights)[t] * places[t] for mistake, weights in wrong.items()}
        found["actions read in agent units"] = 2 * (right - low) / (high - low) - 1
        found["costs for rewards"] = low if right > (low + high) / 2 else high  # downhill from where learning starts
        shown = {mistake: answer for mistake, answer in found.items() if abs(answer - right) > 2 * LEAST}
        return Query(f"action at step {t}", right, shown)

    def read(budget: int, seeds: Sequence[int]) -> np.ndarray:
        return subject.train(env, budget, seeds).act(obs)[..., 0]

    return Case(id, tuple(map(query, range(env.n_steps))), read, title=title, **calibrated._asdict())
