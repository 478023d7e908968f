"""The paired bootstrap against what it must give, and against the normal distribution where that is known."""

from __future__ import annotations

import numpy as np
import pytest

from bleurt_repro.metric.statistics import interval, paired_test, resampled_means


def outcome(first, second, resamples=1000, seed=0):
    scores = np.array([first, second], dtype=float)
    return paired_test(("A", "B"), (scores[0], scores[1]), resampled_means(scores, resamples, seed))


def test_resampled_means_are_paired():
    scores = np.array([[1.0, 2.0, 4.0], [2.0, 3.0, 5.0]])
    means = resampled_means(scores, 50, seed=3)
    assert means.shape == (50, 2)
    assert means[:, 1] - means[:, 0] == pytest.approx(np.ones(50))
    assert len(set(means[:, 0].round(9))) > 3
    assert (means == resampled_means(scores, 50, seed=3)).all()


def test_always_ahead_has_the_least_p_there_can_be():
    test = outcome([1, 2, 3, 4], [0, 1, 2, 3])
    assert test.p_value == pytest.approx(1 / 1001)
    assert (test.difference, test.low, test.high) == pytest.approx((1, 1, 1))
    assert (test.wins, test.losses, test.ties) == (4, 0, 0)


def test_the_order_of_the_systems_does_not_change_p():
    generator = np.random.default_rng(1)
    first, second = generator.normal(0.1, 1, 60), generator.normal(0, 1, 60)
    one, other = outcome(first, second), outcome(second, first)
    assert one.p_value == other.p_value
    assert one.difference == pytest.approx(-other.difference)
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert (one.wins, one.losses) == (other.losses, other.wins)


def test_equal_systems():
    test = outcome([1, 2, 3], [1, 2, 3])
    assert (test.difference, test.p_value, test.ties) == (0, 1, 3)


def test_one_segment_has_no_test():
    test = outcome([1], [0])
    assert (test.difference, test.low, test.high, test.p_value) == (1, None, None, None)


def test_p_is_near_what_the_normal_distribution_gives():
    from scipy.stats import norm

    generator = np.random.default_rng(5)
    difference = generator.normal(0, 1, 400)
    difference += 0.06 - difference.mean()  # a mean of 0.06 with a standard error of 0.05
    test = outcome(difference, np.zeros(400), resamples=5000)
    expected = norm.cdf(-0.06 / (difference.std() / 20))
    assert test.p_value == pytest.approx(expected, abs=0.02)
    assert (test.low, test.high) == pytest.approx((0.06 - 1.96 * 0.05, 0.06 + 1.96 * 0.05), abs=0.015)


def test_interval_is_of_the_confidence_asked_for():
    assert interval(np.arange(101.0), 0.9) == pytest.approx((5, 95))
