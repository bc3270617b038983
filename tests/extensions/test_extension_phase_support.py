"""Each agent accepts exactly the phases that it folds, and a reader of phi* needs someone before it who provides it."""

from __future__ import annotations

import pytest

from ajax.agents import MODULES as AGENTS
from ajax.agents import get as agent_class
from ajax.core.config import config
from ajax.core.errors import CapabilityError
from ajax.core.hooks import PHASES, Extension, check_extensions
from ajax.extensions import MODULES, get
from ajax.training.chunk import loop_of
from tests.agents.contract import Witness
from tests.extensions.builders import BUILD
from tests.extensions.watch import folded

ONE_PHASE = {phase: config(type(f"Only{phase}", (Extension,), {phase: lambda *_: None}))() for phase in PHASES}


def test_every_extension_has_a_builder():
    assert set(BUILD) == set(MODULES)
    assert all(isinstance(BUILD[name](Witness("continuous"))[-1], get(name)) for name in MODULES)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("name", AGENTS)
def test_an_agent_accepts_exactly_the_phases_that_it_folds(name, phase):
    agent = agent_class(name)()
    if phase in folded(agent):
        check_extensions(agent, (ONE_PHASE[phase],), loop_of(agent, False).FOLDS)
        return
    with pytest.raises(CapabilityError, match=f"works in {phase}, which {name} does not fold"):
        check_extensions(agent, (ONE_PHASE[phase],), loop_of(agent, False).FOLDS)


READERS = [name for name in MODULES if "phi*" in get(name).needs.fget(BUILD[name](Witness("continuous"))[-1])]


def test_phi_has_a_reader_and_those_who_provide_it():
    assert READERS
    assert {name for name in MODULES if "phi*" in get(name).provides} == {"MCPretrain", "BellmanPretrain"}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_of_phi_needs_who_provides_it_before_it(name):
    provider, reader = BUILD[name](Witness("continuous"))
    agent = agent_class("SAC")()
    folds = loop_of(agent, False).FOLDS
    check_extensions(agent, (provider, reader), folds)
    for stack in ((reader,), (reader, provider)):
        with pytest.raises(CapabilityError, match=r"needs phi\*, which SAC has not"):
            check_extensions(agent, stack, folds)
