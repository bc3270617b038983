"""Tables compare tries made side by side."""

import pytest

from benchmarks import limit, report, work
from benchmarks.runner import Try

RATE = report.Line("steps/s", "PPO", report.result("rates"), more_is_better=True)
WALL = report.Line("start, s", "newcomer", report.wall)


def a_try(library, rates=(), row="PPO", wall=1.0, error=""):
    return Try(row, library, wall, 1.0, 100.0, 0.5, {"rates": list(rates)} if rates else {}, error)


def test_a_cell_is_the_median_of_the_tries_and_the_best():
    tries = [a_try("Ajax", [10.0, 30.0, 20.0]), a_try("Ajax", [40.0]), a_try("Ajax", [60.0])]
    assert report.table([RATE], tries, ["Ajax"])[1] == ["steps/s", "40 (60)", "-"]


def test_the_ratio_is_against_the_best_peer_of_the_same_try_and_ignores_the_limit():
    tries = [a_try("Ajax", [30.0]), a_try("rejax", [10.0]), a_try("SB3", [20.0]), a_try("limit", [99.0])]
    tries += [a_try("Ajax", [20.0]), a_try("rejax", [40.0]), a_try("SB3", [20.0]), a_try("limit", [99.0])]
    assert report.table([RATE], tries, ["Ajax", "rejax", "SB3", "limit"])[1][-1] == "1.00"  # of 1.5 and 0.5


def test_less_is_better_for_seconds():
    tries = [a_try("Ajax", row="newcomer", wall=2.0), a_try("rejax", row="newcomer", wall=4.0)]
    tries += [a_try("SB3", row="newcomer", wall=8.0)]
    assert report.table([WALL], tries, ["Ajax", "rejax", "SB3"])[1] == ["start, s", "2", "4", "8", "0.50"]


def test_failures_and_missing_numbers_are_left_out():
    tries = [a_try("Ajax", error="out of memory"), a_try("rejax", [5.0])]
    assert report.table([RATE], tries, ["Ajax", "rejax"])[1] == ["steps/s", "-", "5", "-"]
    assert len(report.table([WALL], tries, ["Ajax", "rejax"])) == 1


def test_markdown():
    assert report.markdown([["", "A"], ["x", "1"]]) == "|  | A |\n| --- | --- |\n| x | 1 |"


@pytest.mark.parametrize(
    ("name", "mflop"), [("dqn", 8.75), ("sac", 546.0), ("td3", 392.0), ("redq", 1163.0), ("crossq", 522.5)]
)
def test_the_products_of_an_update(name, mflop):
    make, updates = limit.PRODUCTS[name]
    flops = sum(2 * batch * n_in * n_out for _, batch, n_in, n_out in make()) / updates
    assert flops == pytest.approx(mflop * 1e6, rel=0.01)


def test_every_library_gets_whole_rollouts_and_the_same_updates():
    assert work.NEWCOMER_STEPS == 102_400 and work.PPO.batch_size == 256
    assert all(work.PPO.steps(seeds) % work.PPO.rollout == 0 for seeds in (1, 8, 64))
    assert work.SAC.done(4) == 4 * (work.SAC.steps(4) - work.SAC.warmup) == work.SAC.updates
    assert work.REDQ.done(4) == 4 * 100 and (work.REDQ.steps(1) - work.REDQ.warmup) * 20 == work.REDQ.done(1) == 200
