"""Calibration on made-up readings: which budget, which tolerances, on which seeds."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.core.errors import ConfigError, UnknownName
from ajax.probing import Case, Query
from ajax.probing.calibrate import (
    Ladder,
    alarms,
    certify,
    choose,
    describe,
    digest,
    find_case,
    ladder,
    load_cases,
    main,
    table,
)

VALUE = Query("Q", 1.0, {"half": 0.5})
MARGIN = Query("preference", 1.0, kind="margin")


def errors(budget: int, seeds) -> np.ndarray:
    """Errors of at most 10 / budget, reached in the last seed of each block; margins grow to 2."""
    off = 0.5 if budget == 0 else 10 / budget
    share = (np.asarray(seeds) % 1000) / 31
    return np.stack([1.0 - off * share, 2.0 - 4 * off * share], axis=1)


def case(readings=errors, queries=(VALUE, MARGIN), budget=100, **options) -> Case:
    return Case("chain-X", tuple(queries), readings, budget, **options)


def test_the_ladder_reads_its_block_untrained_and_trained():
    calls = []

    def readings(budget, seeds):
        calls.append((budget, list(seeds)))
        return errors(budget, seeds)

    found = ladder(case(readings), 2000, [200, 100])
    assert calls == [(budget, list(range(2000, 2032))) for budget in (0, 100, 200)]
    assert found.readings[100].shape == (32, 2)


@pytest.mark.parametrize("seed", [0, 8, 1001, 3000])
def test_ladders_keep_off_the_seeds_of_checks(seed):
    with pytest.raises(ConfigError, match=f"first seed {seed}: .* from 1000 or 2000"):
        ladder(case(), seed, [100])


def test_the_smallest_budget_that_fits_is_chosen():
    rungs = [ladder(case(), first, [100, 250, 500]) for first in (1000, 2000)]
    chosen = choose(case(), rungs)
    # at 100 twice the error is 0.2, over the cap of 0.1; at 250 it is 0.08, and the weakest margin 1.84
    assert chosen.budget == 250
    assert chosen.tolerances == (0.08, 0.92)
    calibrated = case(budget=chosen.budget, tolerances=chosen.tolerances)
    assert certify(calibrated) == "cert 32/32"


def test_the_worst_seed_of_either_block_counts():
    strayed = Ladder("chain-X", 2000, {100: np.ones((32, 2)), 0: np.zeros((32, 2))})
    strayed.readings[100][7, 0] = 1.051
    with pytest.raises(RuntimeError, match="no budget qualifies"):
        choose(case(), [Ladder("chain-X", 1000, {100: np.ones((32, 2)), 0: np.zeros((32, 2))}), strayed])


def test_tolerances_have_a_floor():
    exact = Ladder("chain-X", 1000, {0: np.zeros((32, 2)), 100: np.ones((32, 2))})
    assert choose(case(), [exact]).tolerances == (0.02, 0.5)


def test_a_gap_under_the_floor_never_qualifies():
    narrow = case(queries=(Query("Q", 1.0, {"near": 1.03}),))
    with pytest.raises(RuntimeError, match="no budget qualifies"):
        choose(narrow, [Ladder("chain-X", 1000, {0: np.zeros((32, 1)), 100: np.ones((32, 1))})])


def test_readings_that_are_right_untrained_are_refused():
    with pytest.raises(RuntimeError, match="reads right without training"):
        choose(case(), [Ladder("chain-X", 1000, {0: np.ones((32, 2))})])


def test_ladders_of_other_cases_or_budgets_are_refused():
    mine, other = ladder(case(), 1000, [100]), ladder(case(), 2000, [200])
    with pytest.raises(RuntimeError, match="same budgets"):
        choose(case(), [mine, other])
    with pytest.raises(RuntimeError, match="was given the ladder of 'chain-Y'"):
        choose(case(), [Ladder("chain-Y", 1000, mine.readings)])


def test_certification_counts_and_says_what_is_off():
    assert certify(case(budget=250, tolerances=(0.02, 0.5))) == "cert 16/32 (16 off in Q, up to 0.040)"


def test_false_alarms_are_counted_on_blocks_of_fresh_seeds():
    seen = []

    def readings(budget, seeds):
        seen.extend(seeds)
        return np.where(np.asarray(seeds)[:, None] // 16 % 5 == 0, 0.5, 1.0)  # every fifth block reads wrong

    found = alarms(case(readings, queries=(VALUE,), tolerances=(0.02,)), blocks=10)
    assert (found.failed, found.blocks) == (2, 10)
    assert min(seen) == 10_000 and len(set(seen)) == len(seen) == 80
    # of seeds of which 8.9 % are wrong, 200 blocks fail 7.3 times on average, and 12 times at most in 19 of 20 trials
    assert alarms(case(lambda b, s: np.ones((len(s), 1)), queries=(VALUE,), tolerances=(0.02,))).allowed == 12


def test_ladders_survive_their_file(tmp_path):
    found = ladder(case(), 1000, [100])
    found.save(tmp_path / "a.json")
    back = Ladder.load(tmp_path / "a.json")
    assert back.case == "chain-X" and list(back.readings) == [0, 100]
    np.testing.assert_array_equal(back.readings[100], found.readings[100])


def test_the_digest_covers_every_answer():
    base = digest([case(tolerances=(0.05, 0.5))])
    assert len(base) == 12
    moved = [
        case(tolerances=(0.06, 0.5)),
        case(tolerances=(0.05, 0.5), queries=(Query("Q", 1.0, {"half": 0.500001}), MARGIN)),
        case(tolerances=(0.05, 0.5), queries=(Query("Q", 1.000001, {"half": 0.5}), MARGIN)),
        case(tolerances=(0.05, 0.5), queries=(Query("Q", 1.0, {"other": 0.5}), MARGIN)),
    ]
    assert len({base, *(digest([one]) for one in moved)}) == 5
    assert digest([case(tolerances=(0.05, 0.5), budget=7, note="says nothing about answers")]) == base
    assert describe([case(tolerances=(0.05, 0.5))]).splitlines() == [
        "chain-X | Q | value 1.000000 +- 0.050000 | half=0.500000",
        "chain-X | preference | margin 1.000000 +- 0.500000 | ",
    ]


MODULE = """
import numpy as np
from ajax.probing import Case, Query
def read(budget, seeds):
    return np.ones((len(seeds), 1)) - (0.4 if budget == 0 else 5 / budget) * (np.asarray(seeds)[:, None] % 2)
CASES = {"one-X": Case("one-X", (Query("Q", 1.0, {"half": 0.5}),), read, 500, (0.02,))}
"""


def test_the_commands(tmp_path, capsys):
    module = str(tmp_path / "test_chains.py")
    (tmp_path / "test_chains.py").write_text(MODULE)
    a, b = str(tmp_path / "a.json"), str(tmp_path / "b.json")
    main(["ladder", module, "one-X", "1000", "100,500", a])
    main(["ladder", module, "one-X", "2000", "100,500", b])
    capsys.readouterr()
    main(["choose", module, "one-X", a, b])
    out = capsys.readouterr().out
    assert out.splitlines()[1].split() == ["Q", "0.050", "0.400", "0.050", "0.010"]
    assert "Choice(budget=100, tolerances=(0.1,))" in out
    main(["certify", module, "one-X"])
    assert capsys.readouterr().out == "cert 32/32\n"
    main(["alarms", module, "one-X"])
    assert capsys.readouterr().out == "0 of 200 blocks of seeds fail; its certificate allows 12\n"
    main(["answers", module])
    assert "ANSWER_DIGEST = '" in capsys.readouterr().out


def test_modules_and_cases_that_are_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"no module of cases 'tests\.probing\.test_nothing'"):
        load_cases("tests.probing.test_nothing")
    with pytest.raises(ConfigError, match="has no CASES"):
        load_cases("tests.probing.test_calibrate")
    (tmp_path / "m.py").write_text(MODULE)
    with pytest.raises(UnknownName, match="Did you mean 'one-X'"):
        find_case(str(tmp_path / "m.py"), "one-Y")


def test_the_table_shows_worst_errors_against_the_caps():
    lines = table(case(), [ladder(case(), 1000, [250])]).splitlines()
    assert lines[0].split() == ["cap", "0", "250"]
    assert lines[1].split() == ["Q", "0.050", "0.500", "0.040"]
    assert lines[2].split() == ["preference", "0.500", "0.000", "1.840"]
