"""What a recurrent agent acts with is its own episode and nothing else: its networks run from a fresh carry over it.

Every exported agent that can have a memory is held to this with every kind; in the fast tier each with one.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from ajax.agents import MODULES, get
from ajax.networks.memory import forget
from ajax.training.chunk import begin
from ajax.training.collect import interact, step_keys
from ajax.training.run import Task
from tests.agents.build import KEY, clock
from tests.training.recurrent import KINDS, assert_remembered, recurrent

STEPS, N_ENVS = 12, 2
AGENTS = [name for name in MODULES if get(name).remembers]
FAST = {name: list(KINDS)[i % len(KINDS)] for i, name in enumerate(AGENTS)}
PAIRS = [
    pytest.param(name, kind, marks=() if FAST[name] == kind else pytest.mark.slow) for name in AGENTS for kind in KINDS
]


def acted(agent: Any, env: Any) -> tuple[Any, Any]:
    """The agent's first state, and what it collects with it (STEPS, N_ENVS, ...)."""
    task = Task(env, N_ENVS)

    @jax.jit
    def collect(agent: Any) -> tuple[Any, Any]:
        run, _ = begin(agent, task, KEY)

        def step(run: Any, keys: Any) -> tuple[Any, Any]:
            run, row, _ = interact(agent, task, run, keys, clock(), True)
            return run, row

        return run.agent, jax.lax.scan(step, run, step_keys(KEY, STEPS, N_ENVS))[1]

    return collect(agent)


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_carry_is_the_episodes_own(name, kind):
    agent, env = recurrent(name, kind)
    state, rows = acted(agent, env)
    assert_remembered(agent, state, rows, rows.next.carry)
    # and the next action is taken with it, unless an episode begins there
    ended = np.maximum(rows.terminated, rows.truncated)
    np.testing.assert_array_equal(rows.now.reset, np.concatenate([np.ones_like(ended[:1]), ended[:-1]]))
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1:], b[:-1]), rows.now.carry, rows.next.carry)
    np.testing.assert_array_equal(rows.next.reset, 0.0)


@pytest.mark.parametrize("name", AGENTS)
def test_it_is_what_the_agent_acts_with(name):
    agent, env = recurrent(name)
    state, rows = acted(agent, env)
    keys = step_keys(KEY, STEPS, N_ENVS).act
    act = jax.jit(lambda x, key: agent.act(state, x, key, clock(), True)[0])
    for t in range(STEPS):
        x = jax.tree.map(lambda x, t=t: x[t], rows.now)
        own = x.replace(reset=None, carry=forget(x.reset, x.carry))
        np.testing.assert_allclose(act(own, keys[t]), rows.action[t], rtol=1e-4, atol=1e-5)
