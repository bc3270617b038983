"""Configurations as JSON and as text: the round trip of every agent, and every kind of text that a field reads."""

from __future__ import annotations

import json

import numpy as np
import pytest

from ajax.agents import MODULES, get
from ajax.agents.dqn import DQN
from ajax.agents.ppo import PPO
from ajax.agents.sac import SAC
from ajax.agents.td3 import TD3
from ajax.core.config import assign, paths
from ajax.core.errors import ConfigError, UnknownName
from ajax.core.schedules import Cosine, Linear
from ajax.core.serialize import describe, from_dict, parse, to_dict, whole_number
from ajax.networks.cnn import CNN
from ajax.networks.memory import GRU, Transformer
from ajax.networks.torsos import Torso

DEEP = CNN(channels=(8, 4), kernels=(3, 2), strides=(1, 1))

MODIFIED = [
    DQN(gamma=np.float32(0.5), n_step=np.int64(3), max_grad_norm=10.0, double=True, epsilon=0.05),
    PPO(learning_rate=Linear(start=3e-4, end=0.0), torso=Torso(widths=(), activation="elu", layer_norm=True)),
    SAC(alpha_learning_rate=None, target_entropy=-1.5),
    TD3(bc_alpha=2.5, learning_rate=1),
    DQN(torso=Torso(cnn=DEEP, memory=GRU(length=8, burn_in=2))),
]


@pytest.mark.parametrize("agent", [*(get(name)() for name in MODULES), *MODIFIED], ids=lambda a: type(a).__name__)
def test_an_agent_survives_json(agent):
    text = json.dumps(to_dict(agent))
    assert from_dict(json.loads(text)) == agent


def test_the_dictionary_names_classes():
    data = to_dict(DQN())
    assert data["config"] == "DQN" and data["replay"]["config"] == "Replay" and data["epsilon"]["config"] == "Linear"
    assert data["torso"]["widths"] == [256, 256]


def test_reading_validates_again():
    data = to_dict(DQN())
    with pytest.raises(UnknownName, match="unknown configuration 'DQM'"):
        from_dict(data | {"config": "DQM"})
    with pytest.raises(ConfigError, match="DQN has no field 'gama'"):
        from_dict(data | {"gama": 0.9})
    with pytest.raises(ConfigError, match="gamma must be within"):
        from_dict(data | {"gamma": 9.0})


@pytest.mark.parametrize(
    ("agent", "name", "text", "value"),
    [
        (DQN(), "gamma", "0.9", 0.9),
        (DQN(), "gamma", "1", 1.0),
        (DQN(), "learning_rate", "3e-4", 3e-4),
        (DQN(), "target_period", "2_000", 2000),
        (DQN(), "replay.capacity", "200k", 200_000),
        (DQN(), "capacity", "1.5M", 1_500_000),
        (DQN(), "double", "TRUE", True),
        (DQN(), "double", "false", False),
        (DQN(), "max_grad_norm", "none", None),
        (DQN(), "max_grad_norm", "0.5", 0.5),
        (DQN(), "activation", "tanh", "tanh"),
        (DQN(), "widths", "64,32", (64, 32)),
        (DQN(), "widths", "64", (64,)),
        (DQN(), "epsilon", "0.1", 0.1),
        (DQN(), "epsilon", "linear:1,0.05", Linear(start=1.0, end=0.05)),
        (DQN(), "epsilon", "linear:1,0.05,0.3", Linear(start=1.0, end=0.05, fraction=0.3)),
        (SAC(), "alpha_learning_rate", "none", None),
        (SAC(), "alpha_learning_rate", "cosine:3e-4,0", Cosine(start=3e-4)),
        (DQN(), "cnn", "none", None),
        (DQN(), "memory", "GRU(size=8)", GRU(size=8)),
        (DQN(), "torso.memory", "Transformer(size=8, heads=2, burn_in=4)", Transformer(size=8, heads=2, burn_in=4)),
        (DQN(), "torso.cnn", "CNN()", CNN()),
        (DQN(), "cnn", "CNN(channels=(8, 4), kernels=(3, 2), strides=(1, 1))", DEEP),
    ],
)
def test_text_is_read_as_the_field_says(agent, name, text, value):
    read = parse(agent, name, text)
    assert read == value and type(read) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "takes"),
    [
        ("gamma", "high", "gamma takes a number"),
        ("gamma", "none", "gamma takes a number"),
        ("target_period", "1.5", "target_period takes a whole number"),
        ("target_period", "inf", "target_period takes a whole number"),
        ("target_period", "", "target_period takes a whole number"),
        ("double", "yes", "double takes true or false"),
        ("widths", "64,a", "widths takes whole numbers such as 64,64"),
        ("max_grad_norm", "off", "max_grad_norm takes a number, none"),
        ("epsilon", "linear:1", r"epsilon takes a number, linear:START,END\[,FRACTION\]"),
        ("epsilon", "linear:1,0,1,2", r"epsilon takes a number, linear:START,END\[,FRACTION\]"),
        ("epsilon", "lin:1,0", "epsilon takes a number"),
        ("cnn", "CNN", r"cnn takes CNN\(FIELD=VALUE, ...\), none"),
        ("cnn", "Linear(start=1, end=0)", "cnn takes CNN"),
        ("memory", "gru", r"memory takes GRU\(FIELD=VALUE, ...\), LSTM"),
        ("cnn", "CNN((8, 8))", "cnn takes CNN"),
        ("cnn", "CNN(channels=open)", "cnn takes CNN"),
        ("cnn", "CNN(chanels=(8,))", "CNN has no field 'chanels'. Did you mean 'channels'"),
    ],
)
def test_text_of_the_wrong_kind_is_refused(name, text, takes):
    with pytest.raises(ConfigError, match=takes):
        parse(DQN(), name, text)


def test_a_field_that_does_not_exist_is_refused():
    with pytest.raises(UnknownName, match="Did you mean 'gamma'"):
        parse(DQN(), "gama", "0.9")


@pytest.mark.parametrize("text", ["1.5", "nan", "inf", "-inf", "k", "ten", ""])
def test_counts_are_whole(text):
    with pytest.raises(ValueError):
        whole_number(text)


def test_every_field_of_every_agent_is_described():
    for name in MODULES:
        agent = get(name)()
        rows = describe(agent)
        assert [path for path, _, _ in rows] == list(paths(agent))
        assert all(help for _, _, help in rows)
        for path, default, _ in rows:
            value = json.loads(default)
            assert assign(agent, {path: tuple(value) if isinstance(value, list) else value}) == agent
