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


def dqn(n_step: int) -> ajax.DQN:
    return ajax.DQN(n_step=n_step, torso=ajax.Torso(widths=(8,)), replay=ajax.Replay(capacity=ROWS, batch_size=8))


def udrl() -> ajax.UDRL:
    replay = ajax.Episodes(capacity=9, last_few=3, max_length=ROWS, batch_size=8, n_envs=3, updates=2)
    return ajax.UDRL(torso=ajax.Torso(widths=(8,)), replay=replay)


@pytest.mark.parametrize("agent", [dqn(1), dqn(3), udrl()], ids=["one step", "three steps", "episodes"])
def test_no_tick_copies_the_replay(agent):
    agent, task = numbers(agent), numbers(Task(ajax.make("CartPole-v1"), agent.replay.n_envs))
    run = jax.eval_shape(chunk.begin, agent, task, jax.random.key(0))[0]
    learn = jax.jit(functools.partial(chunk.chunk, learn=True), donate_argnums=2)
    lowered = learn.lower(agent, task, run, jnp.int32(0), jnp.int32(1), jnp.float32(1))
    program = lowered.compile({"xla_backend_optimization_level": 2}).as_text()
    assert re.search(rf"\[(?:\d+,)*{ROWS}[,\]]", program)
    assert not re.findall(rf"= \S*\[(?:\d+,)*{ROWS}\S* copy\(", program)
