"""Every measurement is a process of its own, in turn, with nothing cached unless asked."""

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import main
from benchmarks.environments import Library
from benchmarks.runner import Row, measure, run

HERE = Path(sys.executable)
FAKE = Library("fake", "tests.benchmarks.fake")


def test_a_measurement_says_what_it_printed_and_what_it_used():
    done = measure(Row("a row", "echo", seeds=3), FAKE, HERE)
    assert done.result == {"seeds": 3, "threads": "", "rates": [1.0, 3.0, 2.0]}
    assert (done.row, done.library, done.error) == ("a row", "fake", "")
    assert done.cpu > 0 and done.wall > 0


def test_a_measured_process_imports_its_own_librarys_packages(monkeypatch):
    """ajax-rl's package is called `ajax`, too."""
    monkeypatch.setenv("PYTHONPATH", "src")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    assert not {"PYTHONPATH", "PYTHONDONTWRITEBYTECODE"} & set(measure(Row("a row", "environment"), FAKE, HERE).result)


def test_a_measurement_that_there_is_not_is_refused(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["benchmarks", "--quick", "--only", "sac"])
    with pytest.raises(SystemExit):
        main()
    assert "no such measurement with --quick. Measurements: import, newcomer, ppo." in capsys.readouterr().err


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peak memory is read where Linux keeps it")
def test_the_peak_memory_is_the_measured_process_s_own():
    mine = np.ones(100_000_000)  # 800 MB here, that the child must not be charged with
    assert 3 < measure(Row("a row", "echo"), FAKE, HERE).peak_mb < 300 < mine.nbytes / 2**20


def test_one_thread_is_asked_for():
    assert measure(Row("a row", "echo", one_thread=True), FAKE, HERE).result["threads"] == "1"


def test_the_cache_is_empty_unless_the_row_wants_it_warm():
    assert measure(Row("cold", "count"), FAKE, HERE).result == {"found": 0}
    assert measure(Row("warm", "count", cache=True), FAKE, HERE).result == {"found": 1}


def test_a_failure_is_kept_and_the_rest_goes_on():
    other = Library("other", "tests.benchmarks.fake")
    tries = list(run([Row("a row", "fail")], {FAKE: HERE, other: HERE}, tries=1))
    assert [t.library for t in tries] == ["fake", "other"]
    assert tries[0].result == {} and "out of cheese" in tries[0].error


def test_libraries_alternate_and_skip_what_they_cannot_do():
    single = Library("single", "tests.benchmarks.fake", seed_axis=False)
    rows = [Row("one", "echo"), Row("two", "echo", seeds=2)]
    tries = list(run(rows, {FAKE: HERE, single: HERE}, tries=2))
    assert [(t.row, t.library) for t in tries] == [("one", "fake"), ("one", "single")] * 2 + [("two", "fake")] * 2
