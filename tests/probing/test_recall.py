"""The answers of the recall task, against what can be worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from ajax.probing.oracle import solve
from ajax.probing.suites.memory.recall import (
    AFTER_A,
    AFTER_B,
    ALONE,
    BOXED,
    HISTORY,
    LOOKS,
    RECALL,
    TASK,
    VALUES,
    best,
    blind,
    greedy,
    queries,
)

GOES_ON = 0.7 * 0.4  # the discount, and the probability that a blank is followed by another


def test_who_remembers_gets_what_each_blank_pays_for_ever():
    found = {query.name: query for query in queries("Q*", best, TASK)}
    assert found["Q*(A, blank)"].right == pytest.approx(0.6 / (1 - GOES_ON))
    assert found["Q*(B, blank)"].right == pytest.approx(0.4 / (1 - GOES_ON))
    assert found["Q*(blank, after an episode of A)"].right == pytest.approx(0.0)


def test_who_forgets_reads_something_else():
    found = {query.name: query.wrong for query in queries("Q*", best, TASK)}
    assert found["Q*(A, blank)"]["next value without what came before"] == pytest.approx(0.6)  # a blank alone pays 0


def test_who_forgets_takes_the_action_of_the_better_paid_blank():
    """Of the three blanks alike, A's action pays 0.6 in one, and B's 0.4 in another."""
    assert [query.wrong for query in greedy()] == [{}, {"memory reset every step": 1}]


def test_the_blind_see_the_mean_of_three_blanks():
    """Each is as frequent as the others: an episode of every kind has as many blanks."""
    q = solve(blind(RECALL), VALUES).q
    v = 0.2 / (1 - GOES_ON)
    np.testing.assert_allclose(
        q[[AFTER_A, AFTER_B, ALONE]], 3 * [[GOES_ON * v, 0.2 + GOES_ON * v, 0.4 / 3 + GOES_ON * v]]
    )


def test_the_blind_in_a_box_see_the_mean_of_three_parabolas():
    a = np.linspace(-1.5, 3.0, 7)
    pays = [0.6 - 0.2 * (a - 1.8) ** 2, 0.4 - 0.2 * (a + 0.6) ** 2, -0.2 * (a - 0.75) ** 2]
    for state in (AFTER_A, AFTER_B, ALONE):
        constant, slope, bend = blind(BOXED).quadratic[state, 0]
        np.testing.assert_allclose(constant + slope * a + bend * a**2, np.mean(pays, 0))


def test_the_moments_end_in_the_blank():
    np.testing.assert_array_equal(HISTORY.obs[-1], np.tile(LOOKS[ALONE], (3, 1)))
    np.testing.assert_array_equal(HISTORY.reset[-1], [0, 0, 1])
