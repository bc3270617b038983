"""No extension works on nothing: a phase that reads a part of the batch raises without it.

It must not return its input, or 0, in its place: a loss term that is quietly 0 trains an agent that its name does not
say. So each phase is given a whole batch, and then the batch without one part: it raises, or gives what it gave.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ajax.agents import get
from ajax.core.errors import CapabilityError
from ajax.core.hooks import TRANSITION, View, check_extensions
from ajax.core.records import Batch, Inputs, Spec
from ajax.extensions import MODULES
from ajax.extensions.networks import actor_of, critic_of
from ajax.training.chunk import loop_of
from tests.agents.build import KEY, clock
from tests.agents.contract import SUBJECTS, Witness, tiny
from tests.extensions.builders import BUILD

N = 6
PHASES = ("sample", "reward", "on_target", "critic_loss", "actor_loss")

READS_NOTHING: dict[str, str] = {}
"""`NAME.phase`: why it does without any part of the batch."""

PAIRS = [
    (name, phase) for name in MODULES for phase in PHASES if phase in BUILD[name](Witness("continuous"))[-1].phases()
]


def home(name: str) -> tuple[Any, Witness]:
    """An agent and a task that an extension may train with: the first that does not refuse it.

    Those with a Q first, and among them those with the several critics of SAC and TD3, as CriticDiversity needs.
    """

    def last(subject: tuple[str, str]) -> tuple[bool, bool, str]:
        agent = get(subject[0])
        return not hasattr(agent, "q"), not hasattr(agent, "target_q"), subject[1]

    for agent_name, kind in sorted(SUBJECTS, key=last):
        agent, env = tiny(agent_name), Witness(kind)
        try:
            check_extensions(agent, BUILD[name](env), loop_of(agent, False).FOLDS)
        except CapabilityError:
            continue
        return agent, env
    raise LookupError(f"no agent takes {name}")


def whole(name: str, phase: str) -> tuple[Any, View]:
    """The extension, bound, and what a phase of it would see."""
    agent, env = home(name)
    spec = Spec(env.observation_space, env.action_space)
    stack = tuple(extension.bind(spec) for extension in BUILD[name](env))
    own = tuple(extension.init(agent, spec, KEY) for extension in stack)
    state = agent.init(spec, KEY)
    rng = np.random.default_rng(0)
    now, after = (Inputs(jnp.asarray(rng.normal(size=(N, 4)), jnp.float32)) for _ in range(2))
    action: Any = jnp.asarray(rng.uniform(-0.9, 0.9, (N, 1)), jnp.float32)
    if spec.discrete:
        action = jnp.arange(N) % spec.n_actions
    ends = jnp.zeros(N).at[0].set(1.0)
    b = Batch(now, action, jnp.asarray(rng.normal(size=N), jnp.float32), ends, jnp.zeros(N), after)
    nets = {"critic_loss": critic_of, "actor_loss": actor_of}
    view = View(
        agent, state, b, clock(), KEY, own[-1], spec=spec, stack=tuple(zip(stack, own, strict=True)),
        net=nets[phase](agent, state) if phase in nets else None,
        target=jnp.ones(N) if phase == "critic_loss" else None,
    )  # fmt: skip
    if "record" in stack[-1].phases():
        each = stack[-1].init_each(agent, spec, N)
        extras, _ = stack[-1].record(view.replace(each=each, elapsed=jnp.zeros(N)))
        view = view.replace(batch=b.replace(extras=extras))
    return stack[-1], view


LOW = jnp.full(N, -100.0)
"""Targets below every value, so that a bound from below shows."""


def outcome(extension: Any, phase: str, view: View) -> list[np.ndarray]:
    """What the phase returns; where it is given something, low targets, rewards of 1 or the batch."""
    given = {"on_target": (LOW,), "reward": (jnp.ones(N),), "sample": (view.batch,)}.get(phase, ())
    return [np.asarray(x) for x in jax.tree.leaves(getattr(extension, phase)(*given, view))]


def same(a: list[np.ndarray], b: list[np.ndarray]) -> bool:
    return len(a) == len(b) and all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(("name", "phase"), PAIRS)
def test_a_phase_raises_without_what_it_reads(name, phase):
    extension, view = whole(name, phase)
    right, raised = outcome(extension, phase, view), []
    for part in TRANSITION:
        missing = view.replace(batch=dataclasses.replace(view.batch, **{part: {} if part == "extras" else None}))
        try:
            found = outcome(extension, phase, missing)
        except Exception:
            raised.append(part)
            continue
        assert phase == "sample" or same(found, right), f"without {part} it returns something else"
    assert raised or f"{name}.{phase}" in READS_NOTHING, "it reads nothing of the batch"


@pytest.mark.parametrize(("name", "phase"), PAIRS)
def test_a_phase_does_something(name, phase):
    extension, view = whole(name, phase)
    idle = {"on_target": LOW, "reward": jnp.ones(N), "sample": view.batch}.get(phase, jnp.float32(0.0))
    assert not same(outcome(extension, phase, view), [np.asarray(x) for x in jax.tree.leaves(idle)])


def test_there_are_subjects_of_every_phase():
    assert {phase for _, phase in PAIRS} == set(PHASES)
