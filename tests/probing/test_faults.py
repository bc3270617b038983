"""The fault runner on a repository of its own, a few lines long."""

from __future__ import annotations

import json
import os

import pytest

from ajax.core.errors import ConfigError, UnknownName
from ajax.probing import faults
from ajax.probing.copies import Copy
from ajax.probing.faults import Fault, load_catalogue, main, plant, read_results, report

SOURCE = "def double(x):\n    return 2 * x\n\n\ndef triple(x):\n    return 3 * x\n"
TESTS = """
from ajax.code import double, triple
class ProbeFailure(AssertionError): pass
def test_double():
    if double(1) != 2:
        raise ProbeFailure("X: 8 of 8 seeds read 3.00 +- 0.00; right 2.00; closest named mistake: no discount (3.00)"
                           " or sum of two (critics) (3.00), 8 of 8 agree; look at it")
def test_triple():
    assert triple(1) == 3
def test_slow():
    import time
    time.sleep(60 if double(1) == 4 else 0)
"""
LINES = [
    Fault("D-three", "code.py", "return 2 * x", "return 3 * x", ("test_it.py::test_double",), "no discount"),
    Fault("D-idle", "code.py", "return 2 * x", "return x + x", ("test_it.py::test_double",)),
    Fault("T-four", "code.py", "3 * x", "4 * x", ("test_it.py::test_triple", "test_it.py::test_double"), "no discount"),
]


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "repository"
    for folder in ("src/ajax", "tests/probing/faults"):
        (root / folder).mkdir(parents=True)
    (root / "src/ajax/__init__.py").touch()
    (root / "src/ajax/code.py").write_text(SOURCE)
    (root / "tests/probing/test_it.py").write_text(TESTS)
    (root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    catalogue = "\n".join(json.dumps(vars(line) | {"catches": list(line.catches)}) for line in LINES)
    (root / "tests/probing/faults/it.jsonl").write_text(catalogue + "\n\n")
    return root


def test_the_command(repository, tmp_path, capsys):
    scratch, catalogue = tmp_path / "scratch", repository / "tests/probing/faults"
    statuses = main([str(scratch)], repository, catalogue, "tests/probing")
    assert statuses == {"D-three": "caught", "D-idle": "survived", "T-four": "caught"}
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == str(statuses)
    assert "2 of 3 faults caught; 1 of 2 named rightly" in out
    assert "D-idle: survived" in out
    assert "T-four: named nothing" in out and "T-four: not noticed by test_it::test_double" in out
    assert (repository / "src/ajax/code.py").read_text() == SOURCE
    assert (scratch / "copy-0/src/ajax/code.py").read_text() == SOURCE
    found = {result.id: result for result in read_results(scratch / "results.csv")}
    assert found["D-three"].named == "no discount | sum of two (critics)" and found["D-three"].right == "yes"
    assert found["D-idle"].right == ""

    assert (scratch / "results.md").read_text().splitlines()[2:4] == [
        "| D-three | code.py | no discount | caught | `test_it::test_double` | no discount; sum of two (critics) |"
        f" {found['D-three'].seconds:.0f} |",
        f"| D-idle | code.py |  | survived |  |  | {found['D-idle'].seconds:.0f} |",
    ]

    # a second run reads the results, and runs again only survivors and what a change of source concerns
    main([str(scratch), "D-three", "T-four"], repository, catalogue, "tests/probing")
    assert capsys.readouterr().out.startswith("2 of 2 faults caught")
    (repository / "src/ajax/code.py").write_text(SOURCE + "\n")
    main([str(scratch), "D-three"], repository, catalogue, "tests/probing")
    assert capsys.readouterr().out.startswith("D-three caught no discount")


def test_a_run_past_its_time_is_stopped(repository, tmp_path):
    fault = Fault("D-slow", "code.py", "return 2 * x", "return 4 * x", ("test_it.py::test_slow",))
    with Copy(repository, tmp_path / "scratch") as place:
        result = plant(fault, place, "tests/probing", seconds=3)
    assert result.status == "timed out" and result.seconds < 20
    assert report([result]).splitlines() == ["0 of 1 faults caught; 0 of 0 named rightly", "  D-slow: timed out"]


def test_a_broken_precondition_is_not_a_catch(repository, tmp_path):
    (repository / "tests/probing/test_it.py").write_text(
        "from ajax.code import double\n"
        "def test_double():\n"
        "    if double(1) != 2:\n"
        "        raise RuntimeError('readings have another shape')\n"
    )
    with Copy(repository, tmp_path / "scratch") as place:
        result = plant(LINES[0], place, "tests/probing")
    assert result.status == "broken"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [("return", "x", "occurs 2 times"), ("gone", "x", "occurs 0 times"), ("2 * x", "2 * x", "changes nothing")],
)
def test_an_edit_that_is_not_one_edit_is_refused(old, new, why):
    with pytest.raises(RuntimeError, match=why):
        Fault("F", "code.py", old, new, ()).applied(SOURCE)


def test_nodes_that_are_gone_are_an_error(repository, tmp_path):
    fault = Fault("F", "code.py", "2 * x", "3 * x", ("test_it.py::test_nothing",))
    with (
        Copy(repository, tmp_path / "scratch") as place,
        pytest.raises(RuntimeError, match=r"pytest ran none of tests/probing/test_it\.py::test_nothing"),
    ):
        plant(fault, place, "tests/probing")
    assert place.read("code.py") == SOURCE


def test_python_must_import_the_copy(repository, tmp_path, monkeypatch):
    place = Copy(repository, tmp_path / "scratch")
    place.check_import()
    monkeypatch.setattr(Copy, "environment", os.environ | {"PYTHONPATH": str(repository / "src")})
    with pytest.raises(RuntimeError, match="not the copy"):
        place.check_import()


def test_ids_are_unique_and_known(repository, tmp_path):
    catalogue = repository / "tests/probing/faults"
    with pytest.raises(UnknownName, match="Did you mean 'D-three'"):
        main([str(tmp_path), "D-thre"], repository, catalogue, "tests/probing")
    (catalogue / "more.jsonl").write_text((catalogue / "it.jsonl").read_text())
    with pytest.raises(ConfigError, match="there is another fault 'D-three'"):
        load_catalogue(catalogue)


def test_workers_keep_within_the_memory(monkeypatch):
    pages = {"SC_PAGE_SIZE": 4096, "SC_AVPHYS_PAGES": 2**18}  # 1 GiB
    monkeypatch.setattr(os, "sysconf", pages.__getitem__)
    assert faults._workers() == 1
    pages["SC_AVPHYS_PAGES"] = 2**30
    assert faults._workers() == os.cpu_count()


def test_a_named_mistake_may_end_in_a_number():
    message = "read 0.40; closest named mistake: lambda ignored (1) (0.40) or no discount (-0.4), 6 of 8 agree; look at"
    assert faults._named(message) == ["lambda ignored (1)", "no discount"]
