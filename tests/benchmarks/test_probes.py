"""The benchmark of the probes: how spans of compiling add up, and a row as it is printed."""

from __future__ import annotations

import pytest

from benchmarks.probes import covered, line


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [([], 0.0), ([(1.0, 2.0), (3.0, 5.0)], 3.0), ([(3.0, 5.0), (1.0, 4.0)], 4.0), ([(1.0, 9.0), (2.0, 3.0)], 8.0)],
)
def test_seconds_that_overlap_count_once(spans, seconds):
    assert covered(spans) == pytest.approx(seconds)


def test_a_row_says_what_it_cost():
    row = {"case": "p0a-DQN", "status": "passed", "wall": 9.0, "compiling": 7.5, "running": 1.5, "processor": 12.0}
    text = " ".join(line(row).split())
    assert text == "p0a-DQN wall 9.0 s compiling 7.5 s running 1.5 s processor 12.0 s passed"
