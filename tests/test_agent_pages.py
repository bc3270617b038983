"""Pages that repeat what the code says are held to it: agents' fields and metrics, and the options of `train`."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from ajax.agents import MODULES, get
from ajax.core.serialize import describe
from ajax.environments.registry import make
from ajax.training.chunk import begin, chunk
from ajax.training.driver import train
from ajax.training.run import Task
from tests.agents.contract import taught

DOCS = Path(__file__).parents[1] / "docs"


def page(name: str) -> str:
    return (DOCS / "agents" / f"{name.lower()}.md").read_text()


def table(text: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its header."""
    section = re.split(rf"^## {heading}\n", text, flags=re.MULTILINE)[1].split("\n## ")[0]
    rows = [line.strip("|").split(" | ") for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.parametrize("name", MODULES)
def test_an_agents_fields_are_on_its_page(name):
    documented = [
        (field.strip("`"), default.strip("`"), meaning) for field, default, meaning in table(page(name), "Fields")
    ]
    assert documented == describe(get(name)())


@pytest.mark.parametrize("name", MODULES)
def test_an_agents_metrics_are_on_its_page(name):
    agent = get(name)(**taught(name, get(name).acts[0]))
    env = make("CartPole-v1" if "discrete" in agent.acts else "Pendulum-v1")
    n_envs = agent.rollout.n_envs if agent.loop == "on_policy" else agent.replay.n_envs
    task, zero = Task(env, n_envs, extensions=agent.brings()), jnp.int32(0)
    run, _ = jax.eval_shape(begin, agent, task, jax.random.key(0))
    report = jax.eval_shape(functools.partial(chunk, learn=True), agent, task, run, zero, zero, jnp.float32(1))[1]
    assert sorted(row[0].strip("`") for row in table(page(name), "Metrics")) == sorted(report.metrics)


@pytest.mark.parametrize("name", MODULES)
def test_an_agents_page_shows_a_learning_curve(name):
    shown = re.findall(r"^## Learning curve\n\n!\[.+\]\((.+)\)$", page(name), re.MULTILINE)
    assert len(shown) == 1 and (DOCS / "agents" / shown[0]).is_file()


def test_every_agent_is_in_the_list_of_agents():
    listed = re.findall(r"^\| \[(\w+)\]", (DOCS / "agents" / "index.md").read_text(), re.MULTILINE)
    assert listed == list(MODULES)


def test_every_option_of_train_is_on_its_page_with_its_default():
    documented = dict(re.findall(r"^\| `(\w+)` \| `?(.*?)`? \|", (DOCS / "training.md").read_text(), re.MULTILINE))
    for name, parameter in inspect.signature(train).parameters.items():
        required = parameter.default is inspect.Parameter.empty
        default = "required" if required else repr(parameter.default).replace("'", '"')
        assert documented.get(name, "no row") == default, name
