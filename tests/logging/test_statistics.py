"""The statistics against closed forms, SciPy's implementations and their own coverage."""

import numpy as np
import pytest
import scipy.stats

from ajax.logging.statistics import (
    Estimate,
    bootstrap_interval,
    compare,
    interquartile_mean,
    mean_band,
    probability_of_improvement,
)

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 9, 50])
def test_the_interquartile_mean_is_scipys_trimmed_mean(n):
    values = RNG.normal(size=(3, n))
    np.testing.assert_allclose(interquartile_mean(values), scipy.stats.trim_mean(values, 0.25, axis=-1))


def test_the_interquartile_mean_by_hand():
    assert interquartile_mean(np.array([-100.0, 1, 2, 3, 4, 5, 6, 1e9])) == 3.5


def test_the_interval_of_a_mean_is_the_central_limit_theorems():
    values = RNG.normal(3.0, 2.0, size=400)
    estimate = bootstrap_interval(values, np.mean, resamples=4000)
    half = 1.96 * values.std() / np.sqrt(len(values))
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert estimate.high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_the_interval_is_scipys_percentile_bootstrap():
    values = RNG.exponential(size=30)
    ours = bootstrap_interval(values, np.median, resamples=5000, confidence=0.9)
    theirs = scipy.stats.bootstrap(
        (values,), np.median, n_resamples=5000, confidence_level=0.9, method="percentile", rng=1
    ).confidence_interval
    spread = theirs.high - theirs.low
    assert ours.low == pytest.approx(theirs.low, abs=0.1 * spread)
    assert ours.high == pytest.approx(theirs.high, abs=0.1 * spread)


def test_runs_are_resampled_within_their_task():
    # Tasks of very different scale, each with equal runs: within a task there is nothing to resample.
    values = np.tile([1.0, 1000.0], (6, 1))
    assert bootstrap_interval(values, np.mean) == Estimate(500.5, 500.5, 500.5)


def test_tasks_are_resampled_independently():
    # The mean over T independent tasks has an interval 1/sqrt(T) as wide; resampling whole rows would not shrink it.
    column = RNG.normal(size=(40, 1))
    one, many = bootstrap_interval(column, np.mean), bootstrap_interval(np.tile(column, (1, 16)), np.mean)
    assert (many.high - many.low) / (one.high - one.low) == pytest.approx(1 / 4, rel=0.1)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    covered = 0
    for seed in range(300):
        interval = bootstrap_interval(np.random.default_rng(seed).normal(size=20), np.mean, resamples=300)
        covered += interval.low <= 0 <= interval.high
    assert 0.88 <= covered / 300 <= 0.98


def test_the_same_seed_gives_the_same_interval():
    values = RNG.normal(size=10)
    assert bootstrap_interval(values, seed=3) == bootstrap_interval(values, seed=3)
    assert bootstrap_interval(values, seed=3) != bootstrap_interval(values, seed=4)


def test_one_run_has_no_interval():
    estimate = bootstrap_interval(np.array([4.0]))
    assert estimate.value == 4
    assert np.isnan([estimate.low, estimate.high]).all()
    assert str(estimate) == "4 [one run]"
    assert str(bootstrap_interval(np.array([4.0, 4.0]))) == "4 [4, 4]"


def test_improvement_by_hand_with_ties():
    assert probability_of_improvement(np.array([1.0, 2, 3]), np.array([2.0, 2])).value == pytest.approx(0.5)
    assert probability_of_improvement(np.array([5.0, 6]), np.array([1.0, 2])) == Estimate(1, 1, 1)
    two_tasks = probability_of_improvement(np.array([[1.0, 0], [1, 0]]), np.array([[0.0, 1], [0, 1]]))
    assert two_tasks.value == 0.5


def test_improvement_is_mann_whitneys_u():
    x, y = RNG.integers(0, 9, 13).astype(float), RNG.integers(0, 9, 8).astype(float)
    u = scipy.stats.mannwhitneyu(x, y).statistic
    estimate = probability_of_improvement(x, y)
    assert estimate.value == pytest.approx(u / (13 * 8))
    assert estimate.low < estimate.value < estimate.high
    mirrored = probability_of_improvement(y, x)
    assert mirrored.value == pytest.approx(1 - estimate.value)


def test_the_interval_of_the_improvement_has_the_variance_of_u():
    x, y = RNG.normal(0.3, 1, 60), RNG.normal(0, 1, 60)
    estimate = probability_of_improvement(x, y, resamples=5000)
    wins = (x[:, None] > y).mean(1), (x[:, None] > y).mean(0)
    deviation = np.sqrt(wins[0].var() / 60 + wins[1].var() / 60)  # DeLong et al. 1988
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * deviation, rel=0.1)


def test_the_band_of_a_curve_skips_seeds_that_failed():
    returns = np.array([[1.0, 1, np.nan, np.nan], [3, 3, 3, np.nan], [5, np.inf, 5, np.nan], [7, 7, 7, 2]])
    mean, low, high = mean_band(returns)
    np.testing.assert_allclose(mean, [4, 11 / 3, 5, 2])
    assert (low[:3] < mean[:3]).all()
    assert (high[:3] > mean[:3]).all()
    assert np.isnan([low[3], high[3]]).all()
    assert np.isnan(mean_band(np.full((2, 1), np.nan))[0]).all()


def test_the_band_is_the_bootstrap_of_the_mean():
    returns = RNG.normal(size=(50, 1))
    band, interval = mean_band(returns, resamples=5000), bootstrap_interval(returns[:, 0], np.mean, resamples=5000)
    assert [x[0] for x in band] == pytest.approx([interval.value, interval.low, interval.high], abs=0.02)


def test_comparing_two_groups_counts_failed_runs():
    a, b = np.array([490.0, 500, 480, np.nan, 495]), np.array([200.0, 300, 250])
    comparison = compare(a, b)
    assert comparison.n_runs == (4, 3)
    assert comparison.n_failed == (1, 0)
    assert comparison.rows["interquartile mean"][0].value == 492.5
    assert comparison.rows["median"][1].value == 250
    assert comparison.improvement == Estimate(1, 1, 1)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [(np.zeros(0), r"not \(0,\)"), (np.zeros((1, 1, 1)), r"not \(1, 1, 1\)"), (np.array([1, np.nan]), "finite")],
)
def test_scores_of_no_meaning_are_refused(values, sentence):
    with pytest.raises(ValueError, match=sentence):
        bootstrap_interval(values)
    with pytest.raises(ValueError, match="x has 1 tasks and y 2"):
        probability_of_improvement(np.zeros(3), np.zeros((3, 2)))
