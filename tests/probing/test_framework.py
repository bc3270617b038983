"""Checks of the harness's own state, which train nothing: what is pinned, what is planted, what is covered."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest

from ajax.agents import MODULES as EXPORTED
from ajax.agents import get
from ajax.probing.calibrate import LEAST, digest, load_cases
from ajax.probing.faults import PACKAGE, load_catalogue
from ajax.probing.mistakes import MISTAKES
from ajax.probing.suites import MODULES, PEERS, agent_of
from ajax.probing.suites.baselines.calibrated import UNCERTIFIED
from tests.probing import agents

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROBES = [f"test_{module}" for module in (*MODULES, PEERS)]
FAULTS = load_catalogue(HERE / "faults")
CAPS = {"default": 400, "total": 7_000}  # lines of a file, and of the folder


@pytest.mark.parametrize("module", PROBES)
def test_presets_and_answers_are_pinned(module):
    """Change a preset or an answer only together with a fresh calibration, then pin the value shown here."""
    assert agents.digest() == agents.DIGEST
    found = importlib.import_module(f"tests.probing.{module}")
    assert digest(found.CASES.values()) == found.ANSWER_DIGEST


@pytest.mark.parametrize("module", PROBES)
def test_every_case_is_calibrated_inside_its_gaps(module):
    for name, case in load_cases(f"tests.probing.{module}").items():
        assert case.id == name
        assert case.exact or "cert" in case.note or name in UNCERTIFIED, (
            f"{name}: certify it, and write the result in its note"
        )
        for query, tolerance in zip(case.queries, case.tolerances, strict=True):
            if query.kind == "value":
                assert LEAST <= tolerance <= min(0.1, query.gap / 2), f"{name}: {query.name}"


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_every_planted_fault_applies_once_and_names_live_nodes(fault):
    source = (ROOT / PACKAGE / fault.path).read_text()
    ast.parse(fault.applied(source))
    assert fault.catches
    named = set(MISTAKES)
    for node in fault.catches:
        file, _, rest = node.partition("::")
        test, _, case = rest.partition("[")
        names = {n.name for n in ast.walk(ast.parse((HERE / file).read_text())) if isinstance(n, ast.FunctionDef)}
        assert test in names, f"{file} has no {test}"
        if case and "/" not in file:  # else the parameters of a unit test
            cases = load_cases(f"tests.probing.{Path(file).stem}")
            assert case.rstrip("]") in cases, f"{file} has no case {case}"
            named |= {mistake for query in cases[case.rstrip("]")].queries for mistake in query.wrong}
    assert fault.mistake in ("", *named)


def test_files_keep_within_their_caps():
    sizes = {f.name: len(f.read_text().splitlines()) for f in HERE.rglob("*.py")}
    assert not {name: size for name, size in sizes.items() if size > CAPS.get(name, CAPS["default"])}
    assert sum(sizes.values()) <= CAPS["total"]


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("agent", EXPORTED)
def test_every_exported_agent_has_cases_of_what_concerns_it(agent, module):
    """A new agent fails this until it has a case in every module."""
    cls = get(agent)
    concerns = {"extensions": bool(cls.folds), "action_box": "continuous" in cls.acts, "memory": cls.remembers}
    if concerns.get(module, True):
        assert agent in {agent_of(case) for case in load_cases(f"tests.probing.test_{module}").values()}
