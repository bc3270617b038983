"""Agents refuse the spaces that they can't act in, and are found by name."""

from __future__ import annotations

import pytest

from ajax.agents import MODULES, get
from ajax.agents.dqn import DQN
from ajax.agents.ppo import PPO
from ajax.agents.sac import SAC
from ajax.agents.td3 import TD3
from ajax.core.errors import SpaceError, UnknownName
from ajax.core.records import Spec
from ajax.core.spaces import Box, Discrete

DISCRETE, BOX = Spec(Box.of(-1, 1, (4,)), Discrete(3)), Spec(Box.of(-1, 1, (4,)), Box.of(-1, 1, (2,)))


def test_a_continuous_agent_refuses_discrete_actions():
    with pytest.raises(SpaceError, match=r"TD3 needs continuous actions .* are Discrete\(n=3\).*DQN"):
        TD3().check_spaces(DISCRETE)


def test_a_discrete_agent_refuses_a_box():
    with pytest.raises(SpaceError, match=r"DQN needs discrete actions, .* Box of shape \(2,\).*TD3"):
        DQN().check_spaces(BOX)


@pytest.mark.parametrize(("agent", "spec", "kind"), [(TD3(), DISCRETE, "discrete"), (DQN(), BOX, "continuous")])
def test_a_refusal_names_every_agent_that_would_do(agent, spec, kind):
    with pytest.raises(SpaceError) as error:
        agent.check_spaces(spec)
    named = str(error.value).rpartition(": ")[2].rstrip(".").split(", ")
    assert named == sorted((name for name in MODULES if kind in get(name).acts), key=str.lower)


@pytest.mark.parametrize("agent", [PPO(), SAC()], ids=["PPO", "SAC"])
def test_agents_of_both_kinds_accept_both(agent):
    agent.check_spaces(DISCRETE)
    agent.check_spaces(BOX)


def test_agents_are_found_in_any_case():
    assert [get(name.lower()) for name in MODULES] == [get(name) for name in MODULES]
    assert get("td3") is TD3


def test_an_unknown_agent_is_refused_with_the_nearest():
    with pytest.raises(UnknownName, match=r"unknown agent 'TD4'. Did you mean 'TD3'"):
        get("TD4")


def test_the_window_is_one_step_unless_an_agent_says_otherwise():
    assert TD3().window == 1 and DQN(n_step=3).window == 3
