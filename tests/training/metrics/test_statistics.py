"""Agreement with ratings and its tests, against values computed by hand or published."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from bleurt_repro.training.metrics.statistics import (
    TiedPairs,
    average_over,
    calibrate_ties,
    darr,
    indices_by_label,
    kendall_tau,
    pairwise_accuracy,
    pearson_r,
    permutation_p_values,
    permutation_test,
    share_with_interval,
    significance_clusters,
    soft_pairwise_accuracy,
    spearman_rho,
    williams_test,
)


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


def brute_force_acc_eq(scores, ratings, groups):
    """Deutsch et al. (2023), equation 6 and section 6: every difference of two scores is tried as a threshold."""
    lists = [list(itertools.combinations(places, 2)) for places in groups if len(places) > 1]
    thresholds = sorted({0.0} | {abs(scores[i] - scores[j]) for pairs in lists for i, j in pairs})

    def accuracy(epsilon, pairs):
        concordant = ties_both = 0
        for i, j in pairs:
            tied = abs(scores[i] - scores[j]) <= epsilon
            if ratings[i] == ratings[j]:
                ties_both += tied
            else:
                concordant += not tied and (scores[i] > scores[j]) == (ratings[i] > ratings[j])
        return (concordant + ties_both) / len(pairs)

    found = [(sum(accuracy(e, pairs) for pairs in lists) / len(lists), -e) for e in thresholds]
    best = max(value for value, _ in found)
    return best, next(-e for value, e in found if value > best - 1e-12)


def test_acc_eq_by_hand():
    # three translations of one segment, of which people tie the first two; the metric sets them 0.1 apart
    ratings, scores = np.array([1.0, 1.0, 2.0]), np.array([0.5, 0.6, 0.9])
    pairs = TiedPairs.within(ratings, [np.arange(3)])
    assert pairs.accuracies(scores) == pytest.approx([2 / 3])
    value, epsilon = calibrate_ties(pairs, scores)
    assert (value, epsilon) == pytest.approx((1, 0.1))
    assert pairs.accuracies(scores, epsilon) == pytest.approx([1])
    # where people never tie, no tie helps
    assert calibrate_ties(TiedPairs.within(np.array([1.0, 2.0, 3.0]), [np.arange(3)]), scores) == (1, 0)


@pytest.mark.parametrize("seed", range(25))
def test_acc_eq_is_that_of_brute_force(seed):
    rng = np.random.default_rng(seed)
    segments = rng.integers(0, 6, 24)  # of different sizes, some of a single item
    ratings = rng.integers(0, 3, 24).astype(float)  # with many ties
    scores = np.round(ratings + rng.normal(size=24), rng.integers(0, 3))  # with ties, with equal differences
    groups = indices_by_label(segments.tolist())
    pairs = TiedPairs.within(ratings, groups)
    value, epsilon = calibrate_ties(pairs, scores)
    assert (value, epsilon) == pytest.approx(brute_force_acc_eq(scores, ratings, groups), abs=1e-9)
    assert pairs.accuracies(scores, epsilon).mean() == pytest.approx(value)


def test_without_pairs_there_is_no_accuracy():
    with pytest.raises(ValueError, match="no group has two translations"):
        TiedPairs.within(np.array([1.0, 2.0]), [np.array([0]), np.array([1])])


def test_averages_over_groups_leave_out_what_is_undefined():
    scores, ratings = np.array([1.0, 2, 3, 1, 2, 3, 5, 5]), np.array([1.0, 2, 3, 3, 2, 1, 1, 2])
    groups = indices_by_label(["a", "a", "a", "b", "b", "b", "c", "c"])  # perfect, reversed, undefined
    assert average_over(kendall_tau, scores, ratings, groups) == pytest.approx(0)
    assert average_over(pearson_r, scores[:3], ratings[:3], [np.arange(3)]) == pytest.approx(1)
    assert math.isnan(average_over(kendall_tau, scores, ratings, groups[2:]))


def test_pairwise_accuracy_of_systems():
    assert pairwise_accuracy(np.array([3.0, 2, 1]), np.array([3.0, 1, 2])) == pytest.approx(2 / 3)
    assert pairwise_accuracy(np.array([1.0, 1, 2]), np.array([1.0, 2, 3])) == pytest.approx(2 / 3)


def exact_p_value(first, second):
    """Exchange the two systems' scores in every one of the 2^n ways."""
    difference = np.subtract(first, second)
    sums = [np.dot(signs, difference) for signs in itertools.product((1, -1), repeat=len(difference))]
    return np.mean(np.array(sums) >= difference.sum() - 1e-9)


def test_permutation_p_values_approach_those_of_all_exchanges():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(4, 8)) + np.array([[0.9], [0.5], [0.2], [0.0]])
    found = permutation_p_values(scores, permutations=20_000, seed=1)
    for i, j in itertools.combinations(range(4), 2):
        assert found[i, j] == pytest.approx(exact_p_value(scores[i], scores[j]), abs=0.015)
    assert np.isnan(found[np.tril_indices(4)]).all()


def test_two_equal_systems_have_p_of_1_and_disjoint_ones_none():
    scores = np.array([[1.0, 2.0, np.nan], [1.0, 2.0, np.nan], [np.nan, np.nan, 3.0]])
    found = permutation_p_values(scores, 50)
    assert found[0, 1] == 1
    assert np.isnan(found[0, 2]) and np.isnan(found[1, 2])


def test_only_shared_segments_are_compared():
    scores = np.array([[1.0, 3.0, 9.0, 2.0, 5.0], [0.0, 1.0, np.nan, 1.5, 2.0]])
    assert permutation_p_values(scores, 20_000)[0, 1] == pytest.approx(1 / 16, abs=0.01)


def test_soft_pairwise_accuracy():
    # Thompson et al. (2024), equation 2: 1 - mean |p_human - p_metric| over the pairs
    people = np.array([[np.nan, 0.1, 0.5], [np.nan, np.nan, 0.9], [np.nan] * 3])
    metric = np.array([[np.nan, 0.3, 0.5], [np.nan, np.nan, 0.2], [np.nan] * 3])
    assert soft_pairwise_accuracy(metric, people) == pytest.approx(1 - (0.2 + 0 + 0.7) / 3)
    assert soft_pairwise_accuracy(people, people) == 1
    assert math.isnan(soft_pairwise_accuracy(people[2:], people[2:]))


def test_a_better_metric_is_found_better_by_permutation():
    rng = np.random.default_rng(0)
    ratings = rng.normal(size=120)
    good, bad = ratings + 0.5 * rng.normal(size=120), ratings + 3 * rng.normal(size=120)

    def agreement(scores):
        return pearson_r(scores, ratings)

    assert permutation_test(agreement, good, bad, 200) == 1 / 201  # the least there can be
    assert permutation_test(agreement, bad, good, 200) > 0.98
    assert permutation_test(agreement, good, 10 * good - 3, 50) == 1  # the same but for the scale
    assert permutation_test(agreement, good, bad, 50, seed=3) == permutation_test(agreement, good, bad, 50, seed=3)


def test_permutation_p_is_that_of_all_exchanges():
    def pearson(a, b):
        return float(np.mean((a - a.mean()) * (b - b.mean())) / (a.std() * b.std()))  # `pearson_r` is slower

    rng = np.random.default_rng(3)
    ratings, first, second = rng.normal(size=(3, 9))
    one, other = ((v - v.mean()) / v.std() for v in (first + ratings, second))
    observed = pearson(one, ratings) - pearson(other, ratings)
    reached = []
    for kept in itertools.product((True, False), repeat=9):
        a, b = np.where(kept, one, other), np.where(kept, other, one)
        reached.append(pearson(a, ratings) - pearson(b, ratings) >= observed - 1e-12)
    found = permutation_test(lambda scores: pearson(scores, ratings), first + ratings, second, 8000)
    assert found == pytest.approx(np.mean(reached), abs=0.02)


def test_clusters_begin_where_a_metric_is_worse_than_one_above():
    values = {"c": 0.3, "a": 0.5, "b": 0.4, "d": 0.2}
    p_values = {("a", "b"): 0.2, ("a", "c"): 0.01, ("b", "c"): 0.4, ("a", "d"): 0, ("b", "d"): 0, ("c", "d"): 0.3}
    assert significance_clusters(values, p_values) == {"a": 1, "b": 1, "c": 2, "d": 2}
    assert list(significance_clusters(values, p_values)) == ["a", "b", "c", "d"]
    assert significance_clusters(values, dict.fromkeys(p_values)) == dict.fromkeys("abcd", 1)


def test_the_published_example_of_williams_test():
    # Steiger (1980): r12 = .5, r13 = .4, r23 = .1, n = 103; r.test of the R package psych gives t = .89, p < .37
    t, p = williams_test(0.5, 0.4, 0.1, 103)
    assert t == pytest.approx(0.8913, abs=1e-4)
    assert 2 * p == pytest.approx(0.3749, abs=1e-3)
    assert williams_test(0.4, 0.5, 0.1, 103) == pytest.approx((-t, 1 - p))


def test_williams_test_on_few_segments_by_hand():
    # determinant 0.12, variance 0.51136; with two degrees of freedom p = 1/2 - t / (2 sqrt(2 + t^2))
    t, p = williams_test(0.9, 0.5, 0.6, 5)
    assert (t, p) == pytest.approx((1.41510, 0.14634), abs=1e-5)


def test_williams_test_without_any_variance():
    assert williams_test(0.5, -0.5, -1.0, 50) == (np.inf, 0.0)
    assert williams_test(-0.5, 0.5, -1.0, 50) == (-np.inf, 1.0)


def test_one_metric_twice_is_no_better():
    assert williams_test(0.5, 0.5, 1.0, 50) == (0.0, 0.5)
    with pytest.raises(ValueError, match="at least 4 segments, found 3"):
        williams_test(0.5, 0.4, 0.1, 3)


def test_a_share_with_its_wilson_interval():
    found = share_with_interval(9, 10)  # Brown, Cai and DasGupta (2001), https://doi.org/10.1214/ss/1009213286
    assert (found["share"], found["low"], found["high"]) == pytest.approx((0.9, 0.5958, 0.9821), abs=1e-4)


def test_permutation_p_values_do_not_depend_on_the_scale_of_scores():
    scores = np.random.default_rng(5).normal(size=(2, 30)) + [[0.2], [0.0]]
    [p] = permutation_p_values(scores, permutations=500)[:1, 1]
    assert 0.01 < p < 0.99 and permutation_p_values(scores * 2.0**-40, permutations=500)[0, 1] == p
