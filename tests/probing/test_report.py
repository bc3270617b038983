"""What a person and a CI server are shown, on made-up readings."""

from __future__ import annotations

import threading
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from rich.console import Console

from ajax.probing import Case, Query
from ajax.probing.picture import further, picture
from ajax.probing.report import junit, page, summary, terminal
from ajax.probing.suite import run

QUERY = Query("Q(s0, a=2)", 0.8, {"mean instead of max in the bootstrap": 0.4, "no <discount>": 1.0, "sum": np.inf})


def case(name: str, *values, **options) -> Case:
    def readings(budget, seeds):
        return np.resize(np.array(values, float), (len(seeds), 1))

    return Case(name, (QUERY,), readings, 2500, (0.03,), "DQN, chain", **options)


def broken(budget, seeds):
    raise RuntimeError("gamma did not reach the agent")


@pytest.fixture
def outcomes():
    seen = []
    found = run(
        [
            case("good", 0.8, 0.81),
            case("mean", 0.4, 0.41),
            case("known", 0.4, defect="B22"),
            case("fixed", 0.8, defect="B23"),
            Case("torn", (QUERY,), broken, 2500, (0.03,), "DQN, chain"),
        ],
        done=seen.append,
    )
    assert sorted(seen, key=found.index) == found
    return found


def test_statuses(outcomes):
    assert [o.status for o in outcomes] == ["passed", "failed", "known defect", "defect gone", "error"]
    assert [o.good for o in outcomes] == [True, False, True, False, False]
    assert summary(outcomes).startswith("1 passed, 1 known defect, 1 defect gone, 1 error, 1 failed; ")
    assert summary([]) == "no cases; 0.0 s of compiling and training"


def test_the_table_in_the_terminal(outcomes):
    console = Console(width=200, record=True, force_terminal=False)
    with console.capture() as captured:
        console.print(terminal(outcomes, "Probes of DQN"))
    text = captured.get()
    rows = {line.split()[1]: line for line in text.splitlines() if line.startswith("│") and line.split()[1] != "│"}
    assert "passed" in rows["good"] and "8/8" in rows["good"]
    assert "failed" in rows["mean"] and "0/8" in rows["mean"]
    assert "closest named mistake: mean instead of max in the bootstrap (0.40)" in " ".join(
        text.replace("│", "").split()
    )
    assert "gamma did not reach the agent" in rows["torn"]
    assert "remove defect='B23'" in rows["fixed"]


def test_junit(outcomes, tmp_path):
    junit(outcomes, tmp_path / "probes.xml", "DQN")
    root = ET.parse(tmp_path / "probes.xml").getroot()
    assert {k: root.get(k) for k in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "DQN",
        "tests": "5",
        "failures": "2",
        "errors": "1",
        "skipped": "1",
    }
    kinds = {one.get("name"): [child.tag for child in one] for one in root}
    assert kinds == {"good": [], "mean": ["failure"], "known": ["skipped"], "fixed": ["failure"], "torn": ["error"]}
    assert root[1][0].text == outcomes[1].text
    assert root[2][0].get("message") == "LIVE defect: B22"


def test_the_page_stands_alone_and_shows_failures_first(outcomes, tmp_path):
    page(outcomes, tmp_path / "probes.html", "Probes of DQN")
    text = (tmp_path / "probes.html").read_text()
    assert "http" not in text and "<script" not in text
    assert text.index(">mean<") < text.index(">torn<") < text.index(">known<") < text.index(">good<")
    assert text.count("<svg") == 4  # none for the broken precondition
    assert "no &lt;discount&gt;" in text and "no <discount>" not in text


def test_right_readings_of_a_failed_case_are_folded_away(tmp_path):
    def readings(budget, seeds):
        return np.tile([0.8, 0.4], (len(seeds), 1))

    other = Query("V(s0)", 0.8, {"sum": 1.6})
    failed = Case("half", (QUERY, other), readings, 2500, (0.03, 0.03))
    page(run([failed]), tmp_path / "probes.html", "Probes")
    text = (tmp_path / "probes.html").read_text()
    assert "8 of 8 wrong" in text and "1 reading right" in text
    assert text.index("V(s0) <em") < text.index("1 reading right") < text.index("<h3>Q(s0, a=2)</h3>")


def attributes(svg: str, kind: str, name: str) -> list[float]:
    root = ET.fromstring(svg)
    return [float(node.get(name)) for node in root.iter() if node.get("class", "").endswith(kind)]


def test_the_picture_places_readings_on_its_number_line():
    readings = np.array([0.4, 0.4, 0.6, 0.8])
    svg = picture(QUERY, 0.03, range(4), readings, ["mean instead of max in the bootstrap"])
    right = attributes(svg, "right", "x1")[0]
    named, wrong = attributes(svg, "named", "x1")[0], attributes(svg, "wrong", "x1")
    assert len(wrong) == 1  # an infinite answer has no place on the line
    unit = (right - named) / 0.4
    np.testing.assert_allclose(attributes(svg, "miss", "cx"), named + unit * np.array([0, 0, 0.2]), atol=0.2)
    np.testing.assert_allclose(attributes(svg, "hit", "cx"), [right], atol=0.2)
    np.testing.assert_allclose(attributes(svg, "band", "width"), 0.06 * unit, atol=0.2)
    assert len(set(attributes(svg, "miss", "cy"))) == 2  # equal readings are stacked
    assert "seed 2: 0.6" in svg
    assert further(QUERY, readings) == "sum (diverges)"


def test_the_picture_says_what_is_not_finite():
    svg = picture(QUERY, 0.03, range(3), np.array([np.nan, np.inf, 0.8]))
    assert "2 not finite" in svg and svg.count("<circle") == 1
    assert "3 not finite" in picture(QUERY, 0.03, range(3), np.full(3, np.nan))


def test_a_margins_band_is_open():
    svg = picture(Query("m", -1.0, kind="margin"), 0.3, range(2), np.array([-0.5, 0.1]))
    assert "right below -0.30" in svg
    assert svg.count("hit") == 1 and svg.count("miss") == 1


def test_cases_judged_together_come_in_their_order_and_go_on_after_a_broken_one():
    begun = [threading.Event(), threading.Event()]

    def meet(i):
        def readings(budget, seeds):
            begun[i].set()
            assert begun[1 - i].wait(20)  # neither ends before the other has begun
            return np.full((len(seeds), 1), 0.8)

        return Case(str(i), (QUERY,), readings, 2500, (0.03,), "DQN, chain")

    found = run([meet(0), meet(1), Case("torn", (QUERY,), broken, 2500, (0.03,), "DQN, chain")], workers=2)
    assert [(outcome.case.id, outcome.status) for outcome in found] == [
        ("0", "passed"),
        ("1", "passed"),
        ("torn", "error"),
    ]
