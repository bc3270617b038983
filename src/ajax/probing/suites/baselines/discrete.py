"""Other libraries' agents with discrete actions: DQN and PPO."""

from __future__ import annotations

from collections.abc import Iterator

from ajax.probing import Case, Estimator, Problem
from ajax.probing.baselines import Decay
from ajax.probing.suites.baselines.boxes import box_ppo
from ajax.probing.suites.baselines.calibrated import calibrated
from ajax.probing.suites.baselines.settings import make
from ajax.probing.suites.episode_ends import discrete as ends
from ajax.probing.suites.readings import q_case, v_case
from ajax.probing.suites.value_chains import discrete as chains

ANNEALED = Decay(3e-3, 0.0)
ONE, THREE = Estimator(gamma=chains.GAMMA), Estimator(gamma=chains.GAMMA, n=3)
BONUS = Estimator(gamma=chains.GAMMA, backup="soft", temperature=chains.TEMPERATURE, entropy=0.0)

CHAIN, FOUR, LOOP = Problem(chains.CHAIN, ONE), Problem(chains.FOUR, THREE), Problem(ends.LOOP, ONE)
ENDS, THREE_LOOP, SOFT = Problem(ends.ENDS, ONE), Problem(ends.LOOP, THREE), Problem(chains.CHAIN, BONUS)
GAE = {spec.name: Problem(spec, ends.PPO_VALUES) for spec in (chains.SPLIT, ends.ENDS, ends.LOOP, ends.ENDLESS)}


def dqn(library: str, cls: type | None = None) -> Iterator[Case]:
    """Chains, n-step targets, and how episodes end; with three-step targets too."""
    plain, three = make(library, "DQN", cls), make(library, "DQN", cls, n_steps=3)
    for id, title, subject, problem, read, more in (
        ("p0a", "two-step chain", plain, CHAIN, chains.Q_CHAIN, (chains.BEST,)),
        ("p0c", "three-step targets", three, FOUR, ((0, 1), (1, 1), (2, 1), (3, 1)), ()),
        ("p6", "three ends", plain, ENDS, ((0, 1), (1, 1), (2, 1)), ()),
        ("p6b", "loop of five, out of step", plain, LOOP, ((0, 1),), ()),
        ("p6d", "loop of five, three-step targets", three, THREE_LOOP, ((0, 1),), ()),
    ):
        title, found = f"{subject.name}, {title}", calibrated(f"{id}-{library}:DQN")
        yield q_case(f"{id}-{subject.name}", title, subject, problem, read, found, more)


def ppo(library: str, cls: type | None = None) -> Iterator[Case]:
    """Chains, the entropy bonus, GAE over a split, how episodes and rollouts end, and actions in a box."""
    plain = make(library, "PPO", cls)
    slow = make(library, "PPO", cls, learning_rate=1e-3)
    raw = make(library, "PPO", cls, normalize_advantage=False, learning_rate=ANNEALED)
    bonus = make(library, "PPO", cls, normalize_advantage=False, learning_rate=ANNEALED, ent_coef=chains.TEMPERATURE)
    short = make(library, "PPO", cls, n_envs=64, n_steps=2)
    for id, title, subject, problem, read, more in (
        ("p0a", "two-step chain", slow, CHAIN, (0, 1), (chains.BEST,)),
        ("p1", "entropy bonus", bonus, SOFT, (0, 1), ()),
        ("p7", "split", raw, GAE[chains.SPLIT.name], (1, 2), ()),
        ("p6", "three ends", plain, GAE[ends.ENDS.name], (0, 1, 2), ()),
        ("p6b", "loop of five, out of step", plain, GAE[ends.LOOP.name], (0,), ()),
        ("p6c", "ends of rollouts", short, GAE[ends.ENDLESS.name], (0,), ()),
    ):
        title, found = f"{subject.name}, {title}", calibrated(f"{id}-{library}:PPO")
        yield v_case(f"{id}-{subject.name}", title, subject, problem, read, found, more)
    yield box_ppo(library, cls)
