"""Resampling and paired tests, on cases that can be worked out by hand or from known distributions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from bleurt_repro.metric.statistics import (
    Difference,
    _sampled_p_values,
    interval,
    mean_interval,
    paired_difference,
    paired_test,
    resampled_indices,
    resampled_means,
    standardise,
    two_sided_p_values,
)


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
    assert paired_test(("A", "B"), ([1.0], [0.0]), np.ones((5, 2)), p_two_sided=1.0).p_two_sided is None


def test_p_is_near_what_the_normal_distribution_gives():
    from scipy.stats import norm

    generator = np.random.default_rng(5)
    difference = generator.normal(0, 1, 400)
    difference += 0.06 - difference.mean()  # a mean of 0.06 with a standard error of 0.05
    test = outcome(difference, np.zeros(400), resamples=5000)
    expected = norm.cdf(-0.06 / (difference.std() / 20))
    assert test.p_value == pytest.approx(expected, abs=0.02)
    assert (test.low, test.high) == pytest.approx((0.06 - 1.96 * 0.05, 0.06 + 1.96 * 0.05), abs=0.015)


def sacrebleus_p_value(scores, test_type, trials=1000):
    """What sacreBLEU's own test makes of two systems' scores: of a metric whose score is the mean over segments."""
    from sacrebleu.metrics.base import Metric, Score, Signature
    from sacrebleu.significance import PairedTest

    class Mean(Metric):
        _SIGNATURE_TYPE = Signature
        _preprocess_segment = _extract_reference_info = _compute_segment_statistics = None

        def __init__(self):
            super().__init__()
            self.num_refs = 1

        def _extract_corpus_statistics(self, hypotheses, references):
            return [[float(score), 1.0] for score in hypotheses]

        def _aggregate_and_compute(self, statistics):
            return self._compute_score_from_stats(np.sum(statistics, axis=0))

        def _compute_score_from_stats(self, statistics):
            return Score("mean", float(statistics[0] / statistics[1]))

    systems = [(name, [repr(float(score)) for score in own]) for name, own in zip("AB", scores, strict=True)]
    test = PairedTest(systems, {"mean": Mean()}, [["r"] * scores.shape[1]], test_type, n_samples=trials)
    return test()[1]["mean"][1].p_value


SACREBLEUS_SEED = 12345


@pytest.mark.parametrize(("segments", "shift"), [(50, 0.1), (200, 0.1), (333, 0.05), (1000, 0.0), (1000, 0.05)])
def test_sacrebleus_paired_test_finds_the_same(segments, shift, monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    generator = np.random.default_rng(segments)
    first = generator.normal(0, 1, segments)
    scores = np.array([first, first + generator.normal(shift, 1, segments)])
    [p] = two_sided_p_values(scores[:1] - scores[1:], 1000, SACREBLEUS_SEED)
    assert p == sacrebleus_p_value(scores, "ar")

    # its bootstrap draws the same test sets, but counts those whose distance is above the mean distance by the one observed
    means = resampled_means(scores, 1000, SACREBLEUS_SEED)
    test = paired_test(("A", "B"), (scores[0], scores[1]), means, p_two_sided=float(p))
    apart = np.abs(means[:, 0] - means[:, 1])
    counted = np.count_nonzero(apart - apart.mean() > abs(test.difference))
    theirs = sacrebleus_p_value(scores, "bs")
    assert theirs == pytest.approx((counted + 1) / 1001, abs=0.0011)  # it computes in single precision
    assert theirs <= test.p_value <= test.p_two_sided
    assert test.p_two_sided == pytest.approx(min(1.0, 2 * test.p_value), abs=0.05)


def test_exchanges_drawn_in_parts_are_those_drawn_at_once(monkeypatch):
    differences = np.random.default_rng(3).normal(0.1, 1, (3, 77))
    at_once = two_sided_p_values(differences, 1000, 7)
    monkeypatch.setattr("bleurt_repro.metric.statistics.BITS_AT_ONCE", 5000)
    assert two_sided_p_values(differences, 1000, 7).tolist() == at_once.tolist()
    assert [two_sided_p_values(row[None], 1000, 7)[0] for row in -differences] == at_once.tolist()


def test_few_differences_are_exchanged_in_all_ways():
    # of four orders of two segments the observed one and its opposite are as far apart
    assert two_sided_p_values(np.array([[1.0, 2.0]]))[0] == 0.5
    generator = np.random.default_rng(2)
    differences = generator.normal(0.3, 1, (3, 11))
    differences[1, 3:9] = 0
    for row, p in zip(differences, two_sided_p_values(differences, 10), strict=True):
        sums = [abs(np.dot(signs, row)) for signs in itertools.product((1, -1), repeat=11)]
        assert p == np.mean(np.array(sums) >= abs(row.sum()) - 1e-9)


def test_a_test_of_many_segments_is_counted_if_few_of_them_differ():
    generator = np.random.default_rng(2)
    row = np.zeros(300)
    row[::30] = generator.normal(0.5, 1, 10)
    many = generator.normal(0, 1, 300)
    assert two_sided_p_values(np.array([many, row])).tolist() == [
        two_sided_p_values(many[None])[0],
        two_sided_p_values(row[None, ::30])[0],
    ]
    [sampled] = _sampled_p_values(row[None], 20_000, 1)
    assert two_sided_p_values(row[None])[0] == pytest.approx(sampled, abs=0.02)


def test_equal_systems_have_a_two_sided_p_of_1():
    assert two_sided_p_values(np.zeros((1, 5)), 100)[0] == 1  # sacreBLEU's strict comparison gives 1/101
    assert sacrebleus_p_value(np.ones((2, 5)), "ar", 100) == pytest.approx(1 / 101)


def test_interval_is_of_the_confidence_asked_for():
    assert interval(np.arange(101.0), 0.9) == pytest.approx((5, 95))


def test_the_interval_leaves_out_what_did_not_vary():
    assert interval(np.array([1.0, np.nan, 1.0])) == (1, 1)
    assert interval(np.array([])) == interval(np.array([np.nan])) == (None, None)


def test_the_bootstrap_counts_resamples_in_which_the_better_is_not_ahead():
    first, second = np.array([0.5, 0.6, 0.4, 0.5]), np.array([0.4, 0.6, 0.5, 0.3])
    test = paired_difference(0.1, first, second)
    assert test.p_value == pytest.approx((2 + 1) / (4 + 1))  # a tie and a loss
    assert (test.low, test.high) == pytest.approx((-0.0925, 0.1925))
    other = paired_difference(-0.1, second, first)
    assert (other.value, other.p_value) == pytest.approx((-0.1, 0.6))
    assert paired_difference(0.0, first, second).p_value == 1


def test_without_resamples_there_is_no_p():
    assert paired_difference(0.1, np.array([]), np.array([])) == Difference(0.1, None, None, None)


def test_places_are_drawn_alike_with_one_seed():
    drawn, again, other = (list(resampled_indices(9, 4, seed)) for seed in (1, 1, 2))
    assert all((a == b).all() for a, b in zip(drawn, again, strict=True))
    assert not all((a == b).all() for a, b in zip(drawn, other, strict=True))
    assert all(len(places) == 9 and set(places) <= set(range(9)) for places in drawn)


def test_items_of_a_segment_are_drawn_together():
    segments = np.array([7, 3, 7, 3, 3, 9])
    for places in resampled_indices(6, 200, 0, segments):
        counts = np.bincount(places, minlength=6)
        assert counts[0] == counts[2] and counts[1] == counts[3] == counts[4]
        assert counts[0] + counts[1] + counts[5] == 3  # as many segments as there are


def test_segments_of_one_item_are_drawn_as_items_are():
    for rows, segments in zip(resampled_indices(8, 5, 3), resampled_indices(8, 5, 3, np.arange(8)), strict=True):
        assert (rows == segments).all()


def test_the_interval_of_repeated_items_is_as_wide_as_that_of_single_ones():
    """Ten copies of each rating say no more than one does: only resampled segments know it."""
    generator = np.random.default_rng(0)
    ratings = generator.normal(size=120)
    scores = ratings + generator.normal(size=120)
    segments = np.repeat(np.arange(120), 10)
    scores_often, ratings_often = scores[segments], ratings[segments]

    def width(a, b, samples):
        low, high = interval(np.array([np.corrcoef(a[sample], b[sample])[0, 1] for sample in samples]))
        return high - low

    single = width(scores, ratings, resampled_indices(120, 200, 0))
    assert width(scores_often, ratings_often, resampled_indices(1200, 200, 0, segments)) == pytest.approx(
        single, rel=0.25
    )
    assert width(scores_often, ratings_often, resampled_indices(1200, 200, 0)) < single / 2


def test_the_interval_is_a_95_percent_one():
    """Over 60 samples from a normal pair of known correlation, about 95 % of the intervals hold the truth."""
    rng = np.random.default_rng(1)
    held = 0
    for seed in range(60):
        a = rng.normal(size=120)
        b = 0.6 * a + 0.8 * rng.normal(size=120)
        resampled = [np.corrcoef(a[places], b[places])[0, 1] for places in resampled_indices(120, 200, seed)]
        low, high = interval(np.array(resampled))
        held += low < 0.6 < high
    assert 51 <= held <= 60


def test_the_interval_from_sums_is_that_of_many_resamples():
    scores = np.random.default_rng(2).gamma(2, size=400)
    sums = len(scores), scores.sum(), (scores**2).sum()
    for confidence in (0.95, 0.8):
        low, high = interval(resampled_means(scores[None], 20_000)[:, 0], confidence)
        assert mean_interval(*sums, confidence) == pytest.approx((low, high), abs=0.05 * (high - low))
    assert mean_interval(2, 2.0, 2.0) == (1.0, 1.0)  # two equal scores
    assert mean_interval(1, 0.5, 0.25) == mean_interval(0, 0, 0) == (None, None)


def test_two_segments_are_enough_for_an_interval_and_one_is_not():
    assert outcome([1.0, 2.0], [0.0, 0.5]).low is not None
    assert outcome([1.0], [0.0]).low is None


def test_p_does_not_depend_on_the_scale_of_scores():
    scores = np.random.default_rng(5).normal(size=(2, 30)) + [[0.2], [0.0]]
    small = scores * 2.0**-40
    for segments in (12, 30):  # counted, and sampled
        [p], [p_of_small] = (two_sided_p_values(rows[:1, :segments] - rows[1:, :segments]) for rows in (scores, small))
        assert 0.01 < p < 0.99 and p == p_of_small


def test_standardised_values():
    values = np.array([[1.0, 2, 3], [10, 10, 40]])
    found = standardise(values)
    assert found.mean(axis=1) == pytest.approx([0, 0]) and found.std(axis=1) == pytest.approx([1, 1])
    assert standardise(np.array([5.0]), by=np.array([1.0, 3])) == pytest.approx([3])
    with pytest.raises(ValueError, match="all equal cannot be standardised"):
        standardise(np.array([2.0, 2]))
    assert standardise(np.array([2.0, 2]), constant=1.0) == pytest.approx([0, 0])
