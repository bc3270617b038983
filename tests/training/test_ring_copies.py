"""A replay must be written in place: a copy of it in every tick costs more than the update."""

import functools
import re

import jax
import jax.numpy as jnp
import pytest

import ajax
from ajax.training import chunk
from ajax.training.programs import numbers
from ajax.training.run import Task

ROWS = 7_919  # a length that no other array has


@pytest.mark.parametrize("n_step", [1, 3])
def test_no_tick_copies_the_replay(n_step):
    agent = ajax.DQN(n_step=n_step, torso=ajax.Torso(widths=(8,)), replay=ajax.Replay(capacity=ROWS, batch_size=8))
    agent, task = numbers(agent), numbers(Task(ajax.make("CartPole-v1"), 1))
    run = jax.eval_shape(chunk.begin, agent, task, jax.random.key(0))[0]
    learn = jax.jit(functools.partial(chunk.chunk, learn=True), donate_argnums=2)
    lowered = learn.lower(agent, task, run, jnp.int32(0), jnp.int32(1), jnp.float32(1))
    program = lowered.compile({"xla_backend_optimization_level": 2}).as_text()
    assert f"[{ROWS}" in program
    assert not re.findall(rf"= \S*\[{ROWS}\S* copy\(", program)
