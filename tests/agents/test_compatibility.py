"""Every extension and every option of the networks with every agent, as the run is built.

It builds; or it is refused by a `CapabilityError` for what the algorithm lacks; or it is a gap, pinned in `GAPS` with
the work that would close it. What is found is written to `docs/compatibility.md`:

    AJAX_WRITE_COMPATIBILITY=1 pytest -n 0 tests/agents/test_compatibility.py

A page that says anything else fails. Nothing is compiled: the programs are traced.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from flax import struct

from ajax.agents import get
from ajax.core.config import members, paths
from ajax.core.errors import AjaxError, CapabilityError
from ajax.core.keys import seed_key
from ajax.core.spaces import Box
from ajax.environments.base import Step
from ajax.extensions import MODULES as EXTENSIONS
from ajax.networks.cnn import CNN
from ajax.networks.memory import GRU, LSTM, Mamba, Transformer
from ajax.networks.torsos import Torso
from ajax.training.chunk import begin, chunk
from ajax.training.driver import make_task
from ajax.training.evaluate import evaluate
from ajax.training.normalise import Normalize
from ajax.training.plan import Plan
from ajax.training.pretrain import pretrain
from tests.agents.contract import SUBJECTS, Witness, taught, tiny
from tests.extensions.builders import BUILD

PAGE = Path(__file__).parents[2] / "docs" / "compatibility.md"
WRITE = "AJAX_WRITE_COMPATIBILITY" in os.environ

GAPS: dict[tuple[str, str], str] = {}
"""(option, agent): the work that would close the gap. Such a pair fails in another way than by a refusal."""


def build(agent: Any, env: Any, extensions: tuple = ()) -> None:
    """Trace all that a run compiles: its start, what it pretrains, a chunk of learning and an evaluation."""
    plan = Plan(
        agents=(agent,), seeds=(0,), labels=("",), env_id=None, env_name="", steps=10_000, horizon=10_000,
        evaluations=1, episodes=2, limit=5, normalize=Normalize(), episode_length=None, action_repeat=1,
        on_nan="stop", extensions=extensions,
    )  # fmt: skip
    task = make_task(plan, env)
    run, _ = jax.eval_shape(begin, agent, task, seed_key(0))
    if task.folds("pretrain"):
        run = jax.eval_shape(pretrain, agent, task, run)
    zero = jnp.int32(0)
    jax.eval_shape(functools.partial(chunk, learn=True), agent, task, run, zero, zero, jnp.float32(1))
    jax.eval_shape(functools.partial(evaluate, episodes=2), agent, task, run, zero, zero)


def with_extension(option: str, name: str, kind: str) -> None:
    """Build an agent with an extension."""
    env = Witness(kind)
    build(tiny(name, **taught(name, kind)), env, BUILD[option](env))


def with_network(name: str, kind: str, part: str, value: Any, env: Any = Witness) -> None:
    """Build an agent whose every torso has a part."""
    torsos = [path for path in paths(tiny(name)) if path.endswith(f"torso.{part}")]
    build(tiny(name, **taught(name, kind), **dict.fromkeys(torsos, value)), env(kind))


@struct.dataclass
class Pictures(Witness):
    """The witness seen as an image of bytes."""

    @property
    def observation_space(self) -> Box:
        """6 by 6 pixels of one channel."""
        return Box(0, 255, (6, 6, 1), "uint8")

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Start an episode."""
        return super().reset(key)[0], jnp.zeros((6, 6, 1), jnp.uint8)

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, Step]:
        """Count one step."""
        state, step = super().step(key, state, action)
        return state, step.replace(obs=jnp.zeros((6, 6, 1), jnp.uint8))


MEMORIES = (GRU(size=4, length=4), LSTM(size=4, length=4), Transformer(size=4, length=4), Mamba(size=4, length=4))

OPTIONS: dict[str, Callable[[str, str], None]] = {
    **{name: functools.partial(with_extension, name) for name in sorted(EXTENSIONS)},
    "Torso(cnn=CNN())": functools.partial(with_network, part="cnn", value=CNN(), env=Pictures),
    **{
        f"Torso(memory={type(memory).__name__}())": functools.partial(with_network, part="memory", value=memory)
        for memory in MEMORIES
    },
}
"""What is tried: by name, a function of an agent's name and its kind of action."""


def test_every_memory_is_here():
    annotation = next(f.type for f in dataclasses.fields(Torso) if f.name == "memory")
    assert {type(memory) for memory in MEMORIES} == set(members(annotation)) - {type(None)}


@functools.cache
def outcome(option: str, name: str, kind: str) -> str:
    """ "" where it builds, else why not; an error that is no refusal is raised."""
    try:
        OPTIONS[option](name, kind)
    except CapabilityError as error:
        return reason(str(error))
    return ""


def reason(message: str) -> str:
    """A refusal in few words."""
    for pattern, words in ((r"needs ([\w*, ]+?), which", "needs {}"), (r"works in ([\w, ]+?), which", "folds no {}")):
        found = re.search(pattern, message)
        if found:
            return words.format(f"`{found[1]}`")
    for lack in ("has no memory", "has no discount", "has no critic"):
        if lack in message:
            return lack
    if "discrete" in message:
        return "acts in a box only"
    return message.split(". ")[0].rstrip(".")


@pytest.mark.parametrize(("option", "name"), GAPS)
def test_a_gap_is_open(option, name):
    with pytest.raises(Exception) as raised:
        OPTIONS[option](name, get(name).acts[-1])
    assert not isinstance(raised.value, AjaxError), "the gap is closed: take it out of GAPS"


def row(option: str) -> str:
    """What the page says of an option."""
    groups: dict[str, dict[str, list[str]]] = {}  # why not: agent: kinds of action
    for name, kind in SUBJECTS:
        gap = GAPS.get((option, name))
        why = f"not yet ({gap})" if gap else outcome(option, name, kind)
        groups.setdefault(why, {}).setdefault(name, []).append(kind)
    works = listed(groups.pop("", {})) or "none"
    return f"| `{option}` | {works} | {'; '.join(f'{why}: {listed(who)}' for why, who in sorted(groups.items()))} |"


def listed(who: dict[str, list[str]]) -> str:
    """Agents, with the kind of action where it is not all that they take."""
    words = {"continuous": "box", "discrete": "discrete"}
    return ", ".join(
        name if len(kinds) == len(get(name).acts) else f"{name} ({words[kinds[0]]})" for name, kinds in who.items()
    )


def page(rows: Iterable[str]) -> str:
    """The page, of a row for each option."""
    table = "\n".join(rows)
    return f"""# Compatibility

What can be trained together: every extension, and every option of the networks, with every agent, as
`tests/agents/test_compatibility.py` found when it built the runs. What can't is refused before anything is compiled, by
an error that names what is missing.

| What | Works with | Refused, and why |
| --- | --- | --- |
{table}
"""


@pytest.mark.parametrize("option", OPTIONS)
def test_every_agent_builds_or_refuses_it_as_the_page_says(option):
    if not WRITE:
        assert row(option) in PAGE.read_text().splitlines(), "the page is stale: see above how to write it anew"


def test_the_page_has_a_row_for_every_option_and_nothing_else():
    if WRITE:
        PAGE.write_text(page(map(row, OPTIONS)))
    text = PAGE.read_text()
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert [line.split("`")[1] for line in rows] == list(OPTIONS)
    assert text == page(rows)
