"""Every exported extension, in a stack that trains; each agent and loop with all that it folds."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from ajax import CrossQ, Dataset
from ajax.core.errors import UnknownName
from ajax.core.expert import Stateless
from ajax.core.hooks import Extension
from ajax.extensions import MODULES, get, load
from tests.training.test_offline import dataset
from tests.training.tiny import CONTINUOUS, DISCRETE, REPLAY, TINY_DQN, TINY_PPO, TINY_SAC, TINY_TD3, TORSO, train

GUIDE, CHOICE = Stateless(lambda obs: obs[1:] / 2), Stateless(lambda obs: obs[1] > 0)
SHORT = {"updates": 4, "batch_size": 4}


def make(name: str, **fields) -> Extension:
    return get(name)(**fields)


def measurements() -> list[Extension]:
    return [make(name) for name in ("TDErrors", "GradientNorms", "Features", "QBias", "ExplainedVariance")]


def choices() -> Dataset:
    return dataset(action=np.arange(64) % 2)


STACKS = {
    "SAC": lambda: (
        make("BehaviorCloning", expert=GUIDE, steps=6, **SHORT),
        make("BellmanPretrain", expert=GUIDE, steps=6, **SHORT),
        make("CalQL", samples=2),
        make("Imitation", expert=GUIDE, q_filter=True),
        make("JumpStart", expert=GUIDE, steps=2.0),
        make("ResidualPolicy", expert=GUIDE, scale=0.5),
        make("OrnsteinUhlenbeck"),
        make("CriticDiversity"),
        make("RND"),
        make("ExpertReturn", expert=GUIDE),
        *measurements(),
    ),
    "CrossQ": lambda: (make("CriticDiversity"), make("CQL", samples=2), *measurements()),
    "TD3": lambda: (make("IBRL", expert=GUIDE), make("PriorData", data=dataset())),
    "PPO": lambda: (
        make("BehaviorCloning", expert=CHOICE, steps=6, **SHORT),
        make("Imitation", expert=CHOICE),
        make("GAIL", data=choices()),
        make("RND"),
        *measurements(),
    ),
    "DQN": lambda: (make("PriorData", data=choices()), make("CQL"), make("RND"), *measurements()),
    "TD3 offline": lambda: (make("MCPretrain", **SHORT), make("TD3BC"), make("CQL", samples=2), *measurements()),
}
RUNS = {
    "SAC": (TINY_SAC, CONTINUOUS, {"normalize_observations": True}),
    "CrossQ": (CrossQ(torso=TORSO, critic_torso=TORSO, replay=REPLAY), CONTINUOUS, {}),
    "TD3": (TINY_TD3, CONTINUOUS, {}),
    "PPO": (TINY_PPO, DISCRETE, {"normalize_observations": True, "normalize_rewards": True}),
    "DQN": (TINY_DQN, DISCRETE, {}),
    "TD3 offline": (TINY_TD3, CONTINUOUS, {"dataset": dataset()}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_stack_trains_with_finite_metrics(name):
    agent, env, options = RUNS[name]
    result = train(agent, env, 16, extensions=STACKS[name](), **options)
    found = {k: v for k, v in result.metrics.items() if k.startswith("evaluation/")}
    assert not result.stopped and all(np.isfinite(v).all() for v in found.values())
    if name != "TD3":
        assert {"evaluation/td_error", "evaluation/q_bias", "evaluation/dormant_units"} <= set(found)


def test_every_exported_extension_is_in_a_stack_and_exported_where_it_is():
    used = {type(extension).__name__ for stack in STACKS.values() for extension in stack()}
    assert used == set(MODULES)
    for name, module in MODULES.items():
        assert get(name.lower()).__module__ == f"ajax.extensions.{module}" and get(name).__doc__


def test_every_exported_extension_is_on_the_page_with_its_paper():
    page = (Path(__file__).parents[2] / "docs" / "extensions.md").read_text()
    assert set(re.findall(r"^\| `([A-Z]\w+)` \|", page, re.MULTILINE)) == set(MODULES)


def test_an_unknown_name_lists_those_that_exist():
    import ajax.extensions

    assert ajax.extensions.CQL is get("CQL")
    with pytest.raises(AttributeError, match=r"has no attribute 'CQ'\. Extensions: .*CQL"):
        _ = ajax.extensions.CQ
    with pytest.raises(UnknownName, match="Did you mean 'CalQL'"):
        get("Cal-QL")


def test_names_that_others_define_are_left_to_them():
    load("SomebodysExtension")
