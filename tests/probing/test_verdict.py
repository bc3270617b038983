"""The verdict's rules on made-up readings, and the texts that a person reads."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing import Case, Estimator, ProbeFailure, Problem, Query, Spec, ask, check, judge
from ajax.probing.verdict import failure_rate

CHAIN = Spec.of(
    "two-step chain",
    lambda s, a: (1, 0.0, False) if s == 0 else (2, (0.0, 0.5, 1.0)[a], True),
    n_states=3,
    n_actions=3,
)
Q0 = ask("Q(s0, a=2)", Problem(CHAIN, Estimator(gamma=0.8)), lambda s: s.q[0, 2])
PLAIN = Query("Q", 1.0, {"half": 0.5})


class Readings:
    """Made-up readings by seed; remembers the seeds that were trained."""

    def __init__(self, *columns):
        self.table, self.seeds = np.array(columns, float).T, []

    def __call__(self, budget, seeds):
        self.seeds += list(seeds)
        return self.table[list(seeds)]


def case(*columns, queries=(Q0,), tolerances=None, **options) -> Case:
    tolerances = (0.03,) * len(queries) if tolerances is None else tolerances
    options = {"title": "DQN, two-step chain"} | options
    return Case("p0a-DQN", tuple(queries), Readings(*columns), 2500, tolerances, **options)


def noisy(value, n, seed=0, spread=0.01):
    z = np.random.default_rng(seed).normal(size=n)
    return value + spread * (z - z.mean()) / max(z.std(), 1e-9) if n > 1 else np.full(n, value)


def judged(right: int, right_later: int = 8):
    """Seeds of which `right` of 0-7 and `right_later` of 8-15 read 1, the others 0.5."""
    first, second = [1.0] * right + [0.5] * (8 - right), [1.0] * right_later + [0.5] * (8 - right_later)
    subject = case([*first, *second], queries=(PLAIN,))
    return judge(subject), subject.readings.seeds


@pytest.mark.parametrize("right", range(9))
def test_the_first_stage_decides_unless_five_or_six_are_right(right):
    verdict, seeds = judged(right)
    assert seeds == list(range(16 if right in (5, 6) else 8))
    assert verdict.passed == (right >= 5)


@pytest.mark.parametrize(("right", "later", "passed"), [(6, 7, True), (6, 6, False), (5, 8, True), (5, 7, False)])
def test_thirteen_of_sixteen_pass(right, later, passed):
    assert judged(right, later)[0].passed == passed


@pytest.mark.parametrize("wrong", [0.0, 0.1, 0.3, 1.0])
def test_the_failure_rate_is_that_of_verdicts_on_random_seeds(wrong):
    right = np.random.default_rng(0).random((2_000, 16)) >= wrong
    failed = [not judge(case(np.where(row, 1.0, 0.5), queries=(PLAIN,))).passed for row in right]
    assert failure_rate(wrong) == pytest.approx(np.mean(failed), abs=0.03)


def test_a_seed_is_right_when_all_its_readings_are():
    first, second = [0.5, *[1.0] * 7], [*[1.0] * 7, 0.5]
    verdict = judge(case([*first, *[1.0] * 8], [*second, *[1.0] * 8], queries=(PLAIN, PLAIN)))
    assert verdict.right[:8].sum() == 6 and verdict.passed and len(verdict.seeds) == 16


def test_margins_ask_for_the_sign():
    query = Query("preference", -1.0, kind="margin")
    assert judge(case([-0.4] * 8, queries=(query,), tolerances=(0.3,))).passed
    verdict = judge(case([-0.2] * 8, queries=(query,), tolerances=(0.3,)))
    assert verdict.text == (
        "DQN, two-step chain, preference: 8 of 8 seeds read -0.20 +- 0.00; right is below -0.30;"
        " no named mistake to compare with"
    )


def test_exact_cases_are_right_on_two_seeds():
    query = Query("step counter", 400, {"counts collection steps": 100}, "exact")
    options = {"queries": (query,), "tolerances": ()}
    assert judge(case([400, 400], **options)).passed
    verdict = judge(case([400, 100], **options))
    assert not verdict.passed
    assert verdict.text == (
        "DQN, two-step chain, step counter: 1 of 2 seeds read 100; right 400;"
        " closest named mistake: counts collection steps (100), 1 of 1 agree"
    )


def test_the_failure_names_the_mistake():
    values = np.r_[noisy(0.4, 6), 0.8, 0.8]
    with pytest.raises(ProbeFailure) as failure:
        check(case(values))
    assert str(failure.value) == (
        "DQN, two-step chain, Q(s0, a=2): 6 of 8 seeds read 0.40 +- 0.01; right 0.80;"
        " closest named mistake: mean instead of max in the bootstrap (0.40), 6 of 6 agree;"
        " look at how the target is computed"
    )


def test_readings_near_no_mistake_say_so():
    assert judge(case(noisy(0.52, 8))).text == (
        "DQN, two-step chain, Q(s0, a=2): 8 of 8 seeds read 0.52 +- 0.01; right 0.80;"
        " no named mistake is near; the nearest is mean instead of max in the bootstrap (0.40)"
    )


def test_mistakes_that_noise_hides_are_listed_together():
    query = Query("V(s0)", 1.0, {"discount squared": 0.5, "no bootstrap": 0.505, "reward missing": 0.0})
    assert judge(case(noisy(0.5, 8, spread=0.02), queries=(query,))).text == (
        "DQN, two-step chain, V(s0): 8 of 8 seeds read 0.50 +- 0.02; right 1.00;"
        " closest named mistake: discount squared (0.50) or no bootstrap (0.51), 8 of 8 agree;"
        " look at where the discount enters the target, or at how the target is computed"
    )


def test_seeds_that_fail_differently_are_counted():
    text = judge(case(np.r_[noisy(0.4, 5), 1.6, 0.8, 0.8])).text
    assert "6 of 8 seeds" in text and "(0.40), 5 of 6 agree" in text


def test_a_mistake_must_fit_every_query():
    """Both mistakes explain Q(s0), one of them also moves Q(s1), which reads right."""
    first = Query("Q(s0)", 1.0, {"discount squared": 0.5, "reward missing": 0.5})
    second = Query("Q(s1)", 1.0, {"reward missing": 0.0})
    text = judge(case(noisy(0.5, 8), noisy(1.0, 8), queries=(first, second))).text
    assert "closest named mistake: discount squared (0.50), 8 of 8 agree" in text
    assert "reward missing" not in text


def test_every_failing_query_is_listed():
    other = Query("greedy(s1)", 2, {"greedy action read one index up": 0}, "exact")
    text = judge(case(noisy(0.4, 8), [0] * 8, queries=(Q0, other), tolerances=(0.03, 0.0))).text
    lines = text.splitlines()
    assert lines[0].startswith("DQN, two-step chain, greedy(s1): 8 of 8 seeds read 0; right 2;")
    assert lines[1] == "  also Q(s0, a=2): 8 of 8 seeds read 0.40 +- 0.01; right 0.80"


def test_readings_that_are_not_finite_fail():
    text = judge(case([np.nan] * 8)).text
    assert "8 of 8 seeds read values that are not finite; right 0.80; no named mistake to compare with" in text
    assert "read 0.40 +- 0.00 (2 not finite)" in judge(case([0.4] * 6 + [np.inf] * 2)).text


def test_a_pass_says_how_many():
    assert judge(case([0.8] * 8)).text == "DQN, two-step chain: 8 of 8 seeds right"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: case([1.0] * 8, tolerances=(0.2,)), "must lie in [0.0, 0.08]; its nearest wrong answer is 0.16 away"),
        (lambda: case([1.0] * 8, tolerances=(0.03, 0.03)), "1 queries, 2 tolerances"),
        (lambda: case([1.0] * 8, queries=()), "asks nothing"),
        (lambda: case([1.0] * 8, queries=(Query("Q", 1.0, {"same": 1.0}),)), "a wrong answer of Q is the right one"),
        (lambda: case([1.0] * 8, queries=(Query("Q", float("nan")),)), "the answers of Q are not numbers"),
        (
            lambda: case([1.0] * 8, queries=(Query("m", 1.0, kind="margin"),), tolerances=(0.1,)),
            "the tolerance 0.1 of m must lie in [0.25, inf]",
        ),
        (lambda: judge(case([1.0] * 8, tolerances=())), "'p0a-DQN' is not calibrated"),
        (lambda: judge(case([1.0] * 8, [1.0] * 8)), "readings have shape (8, 2), expected (8, 1)"),
    ],
)
def test_broken_preconditions_are_not_assertions(make, message):
    with pytest.raises(RuntimeError) as error:
        make()
    assert message in str(error.value)


def test_a_tolerance_is_at_most_a_tenth():
    assert Query("Q", 0.0, {"far": 9.0}).cap == 0.1
    assert Query("Q", 0.0, {"near": 0.1}).cap == 0.05


def test_training_that_stops_short_of_a_mistakes_answer_still_names_it():
    assert "closest named mistake: mean instead of max in the bootstrap (0.40)" in judge(case(noisy(0.46, 8))).text


def test_a_mistake_much_nearer_than_any_other_answer_is_named_though_one_reading_is_off():
    asked = (Query("first", 1.0, {"half": 0.5, "none": 0.0}), Query("second", 2.0, {"none": 0.0}))
    found = judge(case(noisy(0.5, 8), noisy(2.1, 8), queries=asked))
    assert "closest named mistake: half (0.50), 8 of 8 agree" in found.text
    found = judge(case(noisy(0.5, 8), noisy(1.4, 8), queries=asked))
    assert "no named mistake is near; the nearest is half (2.00)" in found.text


@pytest.mark.parametrize(("value", "named"), [(9.0, True), (-9.0, True), (1.6, False)])
def test_a_diverging_answer_is_met_far_beyond_all_others(value, named):
    asked = (Query("V", 0.0, {"gone": np.inf, "one": 1.0}),)
    text = judge(case(noisy(value, 8), queries=asked)).text
    assert ("closest named mistake: gone (diverges), 8 of 8 agree" in text) == named
