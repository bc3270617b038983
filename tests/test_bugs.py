"""`BUGS.md` promises only what is there: every test node, probe case and planted fault that it names exists."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from ajax.agents import MODULES
from ajax.probing.calibrate import load_cases
from ajax.probing.faults import load_catalogue

HERE = Path(__file__).parent
TEXT = (HERE / "BUGS.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TEXT.splitlines()
    if line.startswith("|") and not line.startswith(("| ---", "| What goes wrong", "| Looks wrong"))
]
NODES = sorted(set(re.findall(r"`([\w/]+\.py::[^`]+)`", TEXT)))
FAULTS = sorted({name for row in ROWS if len(row) == 4 for name in re.findall(r"`([\w-]+)`", row[3])})


@functools.cache
def functions(file: str) -> set[str]:
    return {node.name for node in ast.walk(ast.parse((HERE / file).read_text())) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("node", NODES)
def test_a_named_node_exists(node):
    file, _, rest = node.partition("::")
    test, _, case = rest.partition("[")
    assert (HERE / file).exists() and test in functions(file)
    if case:
        assert case.rstrip("]") in load_cases(f"tests.probing.{Path(file).stem}")


def test_named_faults_are_in_the_catalogue():
    assert len(FAULTS) > 40 and not set(FAULTS) - set(load_catalogue(HERE / "probing" / "faults"))


def test_every_planted_fault_of_a_unit_test_has_its_row():
    units = {fault for fault in load_catalogue(HERE / "probing" / "faults") if fault.startswith("U-")}
    of_one_agent = {fault for fault in units if fault.split("-")[1] in MODULES}
    assert not units - of_one_agent - set(FAULTS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:50])
def test_every_kind_names_what_notices_it_or_says_that_ajax_has_none(row):
    assert re.search(r"`[\w/]+\.py::", row[2]) or re.search(r"Ajax (has|relabels) no", row[2]), row[0]
