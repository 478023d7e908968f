"""Agreement with ratings, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.metric.statistics import _or_nan, darr, kendall_tau, pearson_r, spearman_rho, with_interval


@pytest.mark.parametrize(
    ("statistic", "scores", "ratings", "expected"),
    [
        # 4 of 6 pairs concordant, 2 discordant
        (kendall_tau, [1, 2, 3, 4], [2, 1, 4, 3], 1 / 3),
        (kendall_tau, [1, 2, 3], [3, 2, 1], -1),
        # tau-b: 5 concordant, 0 discordant, one of 6 pairs tied in the scores
        (kendall_tau, [1, 1, 2, 3], [1, 2, 3, 4], 5 / np.sqrt(5 * 6)),
        (pearson_r, [0, 1, 2], [0, 1, 5], 5 / (2 * np.sqrt(7))),
        (spearman_rho, [1, 10, 100, 1000], [1, 3, 2, 4], 0.8),
        # one concordant, one discordant, one tie, which counts as discordant
        (darr, [1.0, 0.5, 0.3], [0.0, 0.6, 0.3], -1 / 3),
        (darr, [1, 2], [0, 0], 1),
        (darr, [0], [0], -1),
    ],
)
def test_statistics(statistic, scores, ratings, expected):
    assert statistic(scores, ratings) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("statistic", [kendall_tau, pearson_r, spearman_rho])
def test_without_variance_there_is_no_correlation(statistic):
    with pytest.raises(ValueError, match="all 3 ratings are 2: without variance"):
        statistic([1, 2, 3], [2, 2, 2])
    with pytest.raises(ValueError, match="all 3 scores are 0.5"):
        statistic([0.5, 0.5, 0.5], [1, 2, 3])


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1, 2], [1], "same length"),
        ([], [], "same length"),
        ([1, float("nan")], [1, 2], "finite numbers"),
        ([1, 2], [1, float("inf")], "finite numbers"),
    ],
)
def test_lists_that_do_not_fit(first, second, message):
    for statistic in (kendall_tau, darr):
        with pytest.raises(ValueError, match=message):
            statistic(first, second)


def test_numbers_too_large_for_pearson_are_refused():
    with pytest.raises(ValueError, match="overflows"):
        pearson_r([0.0, 1.0], [8.98846567431158e307, 8.988465674311579e307])


def test_the_interval_holds_the_value_and_narrows_with_more_segments():
    rng = np.random.default_rng(0)
    ratings = rng.normal(size=800)
    scores = ratings + rng.normal(size=800)
    few = with_interval("kendall_tau", scores[:50], ratings[:50], resamples=200)
    many = with_interval("kendall_tau", scores, ratings, resamples=200)
    assert many == with_interval("kendall_tau", scores, ratings, resamples=200)
    for figure, n in ((few, 50), (many, 800)):
        assert figure["low"] < figure["value"] < figure["high"]
        assert figure["n"] == n
    assert many["high"] - many["low"] < (few["high"] - few["low"]) / 2


def test_the_interval_is_a_95_percent_one():
    """Over 60 samples from a normal pair of known correlation, about 95 % of the intervals hold the truth."""
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(60):
        a = rng.normal(size=120)
        b = 0.6 * a + 0.8 * rng.normal(size=120)
        figure = with_interval("pearson_r", a, b, resamples=200, seed=seed)
        held += figure["low"] < 0.6 < figure["high"]
    assert 51 <= held <= 60


def test_the_interval_can_be_left_out():
    assert with_interval("darr", [1, 2], [0, 3], resamples=0) == {"value": 0.0, "low": None, "high": None, "n": 2}


def test_without_resamples_there_is_no_interval_however_many_segments():
    assert with_interval("pearson_r", [0, 1, 2, 3], [0, 1, 2, 5], resamples=0)["low"] is None


def test_two_segments_are_too_few_for_an_interval():
    assert with_interval("kendall_tau", [1, 2], [1, 2], resamples=20)["high"] is None
    assert with_interval("kendall_tau", [1, 2, 3, 4, 5], [1, 2, 3, 5, 4], resamples=20)["high"] is not None


def test_the_seed_is_0_unless_said():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 40))
    default, zero, one = (
        with_interval("pearson_r", a, b, resamples=30, **seed) for seed in ({}, {"seed": 0}, {"seed": 1})
    )
    assert default == zero != one


def test_resamples_that_do_not_vary_are_left_to_the_interval_as_nan():
    assert np.isnan(_or_nan(kendall_tau, np.zeros(3), np.arange(3.0)))
    assert _or_nan(kendall_tau, np.arange(3.0), np.arange(3.0)) == 1.0


def test_the_interval_is_of_percentiles():
    # every resample of pairs that all agree agrees, too; a bias-corrected interval is not defined there
    figure = with_interval("darr", [1.0] * 5, [0.0] * 5, resamples=20)
    assert (figure["low"], figure["high"]) == (1.0, 1.0)
