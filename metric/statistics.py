"""Statistics of scores: agreement with human ratings, bootstrap intervals, and tests of one system or metric against another.

The first part holds the measures of BLEURT, section 5.1: Kendall tau, Pearson r, Spearman rho and daRR. The second part
is resampling: one bootstrap, one interval and one paired test for `compare` and for the experiments. The third part is
agreement as the WMT Metrics task measures it today: accuracy with tie calibration (acc_eq, Deutsch et al., 2023,
https://aclanthology.org/2023.emnlp-main.798), soft pairwise accuracy (SPA, Thompson et al., 2024,
https://aclanthology.org/2024.wmt-1.118), averages by item and by system, permutation tests, and clusters of
significance, all as defined by mt-metrics-eval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Places = NDArray[np.intp]
Statistic = Callable[..., float]

RESAMPLES = 1000
CONFIDENCE = 0.95
PERMUTATIONS = 1000
ALPHA = 0.05

# Koehn (2004), section 4: 1000 virtual test sets. https://aclanthology.org/W04-3250
CONVENTION = (
    "paired bootstrap (Koehn, 2004), one-sided: p is the share of resampled test sets in which the system with the "
    "higher mean is not ahead, counting the observed set once more"
)
TWO_SIDED = (
    "approximate randomisation (Riezler and Maxwell, 2005), two-sided: p is the share of random exchanges of the two systems' "
    "scores, segment by segment, in which the difference of the means is at least as large, counting the observed order once more"
)
# Random bits drawn at once: a bound on memory.
DRAWN_AT_ONCE = 2**22


def kendall_tau(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Compute Kendall's tau-b of scores and ratings, from -1 to 1.

    Raises:
        ValueError: if either does not vary: a rank correlation is then undefined.
    """
    from scipy.stats import kendalltau

    return float(kendalltau(*_checked(scores, ratings)).statistic)


def pearson_r(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Compute Pearson's r of scores and ratings, from -1 to 1.

    Raises:
        ValueError: as `kendall_tau` does, and if numbers are so large that their squares overflow.
    """
    from scipy.stats import pearsonr

    r = float(pearsonr(*_checked(scores, ratings)).statistic)
    if np.isnan(r):
        raise ValueError("Pearson's r of these numbers overflows: scale scores and ratings down")
    return r


def spearman_rho(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Compute Spearman's rho of scores and ratings, from -1 to 1; raises as `kendall_tau` does."""
    from scipy.stats import spearmanr

    return float(spearmanr(*_checked(scores, ratings)).statistic)


def darr(better: Sequence[float] | Values, worse: Sequence[float] | Values) -> float:
    """Compute the agreement with relative ranks: (concordant - discordant) / (concordant + discordant).

    Args:
        better: scores of the candidates that people preferred.
        worse: scores of the candidates that they were preferred to, in the same order.

    Returns:
        a figure from -1 to 1; equal scores count as discordant, as in the WMT Metrics task
        (https://aclanthology.org/W18-6450, section 4).
    """
    better_scores, worse_scores = _pair(better, worse)
    concordant = np.count_nonzero(better_scores > worse_scores)
    return float(2 * concordant / len(better_scores) - 1)


STATISTICS: dict[str, Statistic] = {
    "kendall_tau": kendall_tau,
    "pearson_r": pearson_r,
    "spearman_rho": spearman_rho,
    "darr": darr,
}


def _pair(first: Any, second: Any) -> tuple[Values, Values]:
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not len(a):
        raise ValueError(f"expected two lists of numbers of the same length, found shapes {a.shape} and {b.shape}")
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise ValueError("expected finite numbers, found NaN or infinity")
    return a, b


def _checked(scores: Any, ratings: Any) -> tuple[Values, Values]:
    a, b = _pair(scores, ratings)
    for name, values in (("scores", a), ("ratings", b)):
        if np.ptp(values) == 0:
            raise ValueError(f"all {len(values)} {name} are {values[0]:g}: without variance there is no correlation")
    return a, b


def standardise(values: Values, by: Values | None = None, *, constant: float | None = None) -> Values:
    """Return values with mean 0 and standard deviation 1 along the last axis (z-scores).

    Args:
        values: of shape (..., n).
        by: what mean and deviation are taken from, of shape (..., m); the values themselves by default.
        constant: the deviation to divide by where `by` does not vary; by default that is an error.

    Raises:
        ValueError: if `by` does not vary and `constant` is not given.
    """
    base = values if by is None else by
    deviation = base.std(axis=-1, keepdims=True)
    if not (deviation > 0).all():
        if constant is None:
            raise ValueError("scores or ratings that are all equal cannot be standardised")
        deviation = np.where(deviation > 0, deviation, constant)
    return (values - base.mean(axis=-1, keepdims=True)) / deviation


def share_with_interval(right: int, n: int, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Return `right` of `n` as a share with its Wilson interval, as fractions of 1.

    Args:
        right: how many of the n.
        n: at least 1.
        confidence: of the interval (https://doi.org/10.1080/01621459.1927.10502953).
    """
    from scipy.stats import binomtest

    ends = binomtest(right, n).proportion_ci(confidence, method="wilson")
    return {"right": right, "n": n, "share": right / n, "low": float(ends.low), "high": float(ends.high)}


# Resampling: one bootstrap, one interval, one paired test.


def resampled_places(
    n: int, resamples: int, seed: int | Sequence[int], segments: NDArray[Any] | None = None
) -> Iterator[Places]:
    """Draw items with replacement, once for each resample.

    Args:
        n: how many items there are.
        resamples: how many times to draw.
        seed: of the drawing; with one seed the same places are drawn.
        segments: number of each item's segment, where several items belong to one: whole segments are then drawn, as
            many as there are, since items of a segment are not independent of each other.

    Yields:
        places of items, repeated ones included.
    """
    generator = np.random.default_rng(seed)
    if segments is None:
        for _ in range(resamples):
            yield generator.integers(0, n, n)
        return
    numbers = np.unique(segments, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers)
    starts = np.cumsum(counts) - counts
    for _ in range(resamples):
        drawn = generator.integers(0, len(counts), len(counts))
        sizes = counts[drawn]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield order[np.repeat(starts[drawn], sizes) + within]


def interval(resampled: Values, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Compute the percentile interval of resampled values.

    Args:
        resampled: the values; those that are NaN, where a resample did not vary, are left out.
        confidence: of the interval.

    Returns:
        its ends; (None, None) without values.
    """
    known = resampled[~np.isnan(resampled)] if len(resampled) else resampled
    if not len(known):
        return None, None
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """How far one figure is above another, by the same resamples of both.

    Attributes:
        value: the first minus the second.
        low, high: the interval of the difference; None without resamples.
        p_value: the share of resamples in which the higher one is not ahead, counting the observed set once more;
            None without resamples.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None


def paired_difference(observed: float, first: Values, second: Values, confidence: float = CONFIDENCE) -> Difference:
    """Test a difference of two figures by the paired bootstrap, one-sided; see `CONVENTION`.

    Args:
        observed: the first figure minus the second one.
        first, second: both on the same resamples; NaN where a resample did not vary.
        confidence: of the interval.
    """
    differences = first - second
    differences = differences[~np.isnan(differences)]
    low, high = interval(differences, confidence)
    not_ahead = int(np.count_nonzero(differences * np.sign(observed) <= 0))
    p_value = (not_ahead + 1) / (len(differences) + 1) if len(differences) else None
    return Difference(observed, low, high, p_value)


def resampled_means(scores: NDArray[np.float64], resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """Compute each system's mean on test sets drawn from the segments with replacement.

    Args:
        scores: (systems, segments); a resampled set holds the same segments of every system, which pairs them.
        resamples: how many test sets.
        seed: of the drawing.

    Returns:
        (resamples, systems).
    """
    means = np.empty((resamples, len(scores)))
    for row, places in zip(means, resampled_places(scores.shape[1], resamples, seed), strict=True):
        row[:] = scores[:, places].mean(axis=1)
    return means


@dataclass(frozen=True)
class PairedTest:
    """One system against another on the same segments.

    Attributes:
        first, second: their names.
        difference: the first's mean minus the second's.
        low, high: the interval of the difference; None for a single segment.
        p_value: by `CONVENTION`; None for a single segment.
        wins, losses, ties: segments in which the first scores higher, lower, the same.
        p_two_sided: by `TWO_SIDED`; None for a single segment, or if it was not computed.
        preferred: the probability that people prefer the first, by their ratings; None if it was not computed.
    """

    first: str
    second: str
    difference: float
    low: float | None
    high: float | None
    p_value: float | None
    wins: int
    losses: int
    ties: int
    p_two_sided: float | None = None
    preferred: float | None = None


def paired_test(
    names: tuple[str, str],
    scores: tuple[Sequence[float], Sequence[float]],
    means: NDArray[np.float64],
    confidence: float = CONFIDENCE,
    p_two_sided: float | None = None,
) -> PairedTest:
    """Test whether one system's mean is above another's.

    Args:
        names: of the two systems.
        scores: of each, in the same order of segments.
        means: (resamples, 2), their means on the same resampled test sets.
        confidence: of the interval of the difference.
        p_two_sided: of `two_sided_p_values`.
    """
    differences = np.asarray(scores[0], dtype=np.float64) - np.asarray(scores[1], dtype=np.float64)
    if len(differences) < 2:  # one segment resampled is the same segment
        means, p_two_sided = np.empty((0, 2)), None
    found = paired_difference(float(differences.mean()), means[:, 0], means[:, 1], confidence)
    wins, losses = int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))
    ties = len(differences) - wins - losses
    return PairedTest(*names, found.value, found.low, found.high, found.p_value, wins, losses, ties, p_two_sided)


def two_sided_p_values(differences: Values, trials: int = RESAMPLES, seed: int = 0) -> Values:
    """Test by approximate randomisation whether means differ, in either direction.

    Riezler and Maxwell (2005, https://aclanthology.org/W05-0908), the test of sacreBLEU's `--paired-ar`, with the same
    exchanges from the same seed.

    Args:
        differences: (tests, segments), the first system's score minus the second's.
        trials: how many times the two systems' scores are exchanged at random, segment by segment.
        seed: of the exchanges, which are the same in every test.

    Returns:
        (tests,), p by `TWO_SIDED`.
    """
    generator = np.random.default_rng(seed)
    totals = differences.sum(axis=1)
    # rounding must not take the observed order for another one
    least = np.abs(totals) - 1e-9 * np.abs(differences).sum(axis=1)
    reached = np.zeros(len(differences))
    # multiples of 32 rows: numpy draws 32 bits at once, and begins anew in each call
    rows = max(1, DRAWN_AT_ONCE // (32 * max(1, differences.shape[1]))) * 32
    for start in range(0, trials, rows):
        exchanged = generator.integers(2, size=(min(rows, trials - start), differences.shape[1]), dtype=bool)
        reached += np.count_nonzero(np.abs(totals - 2 * (exchanged @ differences.T)) >= least, axis=0)
    return (reached + 1) / (trials + 1)


def williams_test(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Test whether r12 is above r13, two correlations of the same segments that share a variable.

    Williams (1959), in the form of Steiger (1980), equation 7: https://doi.org/10.1037/0033-2909.87.2.245.

    Args:
        r12, r13: correlations of ratings with the one metric and with the other.
        r23: of the two metrics with each other.
        n: segments, at least 4.

    Returns:
        t, with n - 3 degrees of freedom, and the one-sided p-value. Two metrics that are one have 0 and 0.5.

    Raises:
        ValueError: if there are fewer than 4 segments.
    """
    from scipy.stats import t as student

    if n < 4:
        raise ValueError(f"Williams' test needs at least 4 segments, found {n}")
    determinant = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    mean = (r12 + r13) / 2
    variance = 2 * max(determinant, 0.0) * (n - 1) / (n - 3) + mean**2 * (1 - r23) ** 3
    if variance <= 0:
        return (0.0, 0.5) if r12 == r13 else (math.copysign(math.inf, r12 - r13), 0.0 if r12 > r13 else 1.0)
    value = (r12 - r13) * math.sqrt((n - 1) * (1 + r23) / variance)
    return value, float(student.sf(value, n - 3))


# Agreement as the WMT Metrics task measures it today.


def members(labels: Sequence[Any]) -> list[Places]:
    """Return the places of each different label, in the order of first appearance."""
    found: dict[Any, list[int]] = {}
    for place, label in enumerate(labels):
        found.setdefault(label, []).append(place)
    return [np.array(places, dtype=np.intp) for places in found.values()]


def average_over(statistic: Statistic, scores: Values, ratings: Values, groups: Sequence[Places]) -> float:
    """Average a correlation over groups of items, those where it is undefined left out, as mt-metrics-eval does.

    Args:
        statistic: such as `kendall_tau`.
        scores, ratings: of all items.
        groups: places of each group's items: by item, the translations of one segment; by system, those of one system.

    Returns:
        the mean, each group counting once; NaN if it is undefined in all of them.
    """
    found = []
    for places in groups:
        try:
            found.append(statistic(scores[places], ratings[places]))
        except ValueError:  # does not vary
            continue
    return float(np.mean(found)) if found else math.nan


@dataclass(frozen=True)
class TiedPairs:
    """All pairs of items within each group, and how people ranked them: what acc_eq is computed from.

    Attributes:
        first, second: places of the two items of each pair.
        group: number of each pair's group, counted from 0; groups of a single item have no pair.
        sizes: how many pairs each group has.
        preferred: of each pair, 1 if people preferred the first, -1 the second, 0 for a tie.
    """

    first: Places
    second: Places
    group: Places
    sizes: Places
    preferred: NDArray[np.int8]

    @classmethod
    def within(cls, ratings: Values, groups: Sequence[Places]) -> TiedPairs:
        """List the pairs.

        Args:
            ratings: of people, of all items.
            groups: places of each group's items.
        """
        found = [places[np.array(np.triu_indices(len(places), 1))] for places in groups if len(places) > 1]
        if not found:
            raise ValueError("no group has two items or more: there is no pair to rank")
        first, second = np.concatenate(found, axis=1)
        sizes = np.array([pairs.shape[1] for pairs in found])
        preferred = np.sign(ratings[first] - ratings[second]).astype(np.int8)
        return cls(first, second, np.repeat(np.arange(len(found)), sizes), sizes, preferred)

    def right(self, scores: Values, epsilon: float = 0.0) -> NDArray[np.bool_]:
        """Return which pairs are ranked as people did; scores at most `epsilon` apart are a tie."""
        difference = scores[self.first] - scores[self.second]
        return np.where(np.abs(difference) <= epsilon, 0, np.sign(difference)) == self.preferred

    def accuracies(self, scores: Values, epsilon: float = 0.0) -> Values:
        """Return the share of pairs ranked as people did, in each group."""
        return np.bincount(self.group, self.right(scores, epsilon), len(self.sizes)) / self.sizes


def calibrate_ties(pairs: TiedPairs, scores: Values) -> tuple[float, float]:
    """Find the difference of scores up to which a tie agrees best with people (Deutsch et al., 2023, section 6).

    Args:
        pairs: of the items.
        scores: of all items.

    Returns:
        acc_eq, the accuracy averaged over groups at the best threshold, and the threshold: 0 or a difference of two
        scores, the smallest of those that are equally good.
    """
    difference = scores[pairs.first] - scores[pairs.second]
    apart = np.abs(difference)
    order = np.argsort(apart, kind="stable")
    weights = 1.0 / (pairs.sizes[pairs.group] * len(pairs.sizes))
    right = np.sign(difference) == pairs.preferred
    # a pair that becomes a tie is right where people tied, and wrong where they did not
    gains = weights * ((pairs.preferred == 0).astype(float) - right)
    reached = np.concatenate([[0.0], np.cumsum(gains[order])])
    thresholds = np.concatenate([[0.0], apart[order]])
    last = np.append(thresholds[1:] != thresholds[:-1], True)  # all pairs of one difference become ties together
    best = reached[last].max()
    place = np.flatnonzero(last)[np.flatnonzero(reached[last] >= best - 1e-12)[0]]
    return float((weights * right).sum() + reached[place]), float(thresholds[place])


def pairwise_accuracy(scores: Values, ratings: Values) -> float:
    """Compute the share of pairs of systems that scores rank as people do (Kocmi et al., 2021).

    Args:
        scores, ratings: one a system; a pair that is tied on one side alone is wrong.
    """
    i, j = np.triu_indices(len(scores), 1)
    return float(np.mean(np.sign(scores[i] - scores[j]) == np.sign(ratings[i] - ratings[j])))


def permutation_p_values(scores: Values, permutations: int = PERMUTATIONS, seed: int = 0) -> Values:
    """Test by paired permutation whether each system is better than each other one.

    Args:
        scores: (systems, segments); NaN where a system has no score. A pair is tested on the segments of both.
        permutations: how many times the two systems' scores are exchanged at random, segment by segment.
        seed: of the exchanges, which are the same for every pair.

    Returns:
        (systems, systems): p of the hypothesis that the row's system is better than the column's, in the upper
        triangle; NaN elsewhere, and where two systems share no segment.
    """
    signs = np.random.default_rng(seed).integers(0, 2, (permutations, scores.shape[1])) * 2.0 - 1.0
    found = np.full((len(scores), len(scores)), np.nan)
    i, j = np.triu_indices(len(scores), 1)
    differences = (scores[i] - scores[j]).T  # (segments, pairs)
    known = np.isfinite(differences).any(axis=0)
    differences = np.nan_to_num(differences)
    # rounding must not take the observed order for another one
    least = differences.sum(axis=0) - 1e-9 * np.abs(differences).sum(axis=0)
    found[i, j] = np.where(known, np.mean(signs @ differences >= least, axis=0), np.nan)
    return found


def soft_pairwise_accuracy(by_scores: Values, by_ratings: Values) -> float:
    """Compute 1 minus the mean distance of two p-values over all pairs of systems (Thompson et al., 2024).

    Args:
        by_scores, by_ratings: of `permutation_p_values`, of a metric's scores and of people's ratings.

    Returns:
        SPA, from 0 to 1; NaN without a pair of systems that can be tested.
    """
    distance = np.abs(by_scores - by_ratings)
    return float(1 - np.nanmean(distance)) if np.isfinite(distance).any() else math.nan


def permutation_test(
    statistic: Callable[[Values], float],
    first: Values,
    second: Values,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> float:
    """Test whether one metric agrees better with people than another, by exchanging their scores at random.

    The PERM-BOTH test of Deutsch et al. (2021, https://aclanthology.org/2021.tacl-1.67): both metrics' scores are
    standardised, then exchanged item by item.

    Args:
        statistic: the agreement of scores with people, a function of all items' scores.
        first, second: scores of the two metrics, of the same items.
        permutations: how many times.
        seed: of the exchanges.

    Returns:
        p of the hypothesis that the first agrees better: the share of exchanges with at least the observed difference.
    """
    one, other = standardise(first), standardise(second)
    observed = statistic(one) - statistic(other)
    generator = np.random.default_rng(seed)
    reached = 0
    for _ in range(permutations):
        kept = generator.integers(0, 2, len(one)) == 1
        difference = statistic(np.where(kept, one, other)) - statistic(np.where(kept, other, one))
        reached += difference >= observed - 1e-12
    return reached / permutations


def significance_clusters(
    values: Mapping[str, float], p_values: Mapping[tuple[str, str], float | None], alpha: float = ALPHA
) -> dict[str, int]:
    """Rank metrics by clusters of significance, as the WMT Metrics task prints them.

    From the best metric down, a metric shares the rank of those above until it is significantly worse than one of them;
    there the next rank begins (Freitag et al., 2022, https://aclanthology.org/2022.wmt-1.2).

    Args:
        values: of each metric, higher is better.
        p_values: of the hypothesis that the first of two metrics is better than the second, at least for each two
            metrics in descending order.
        alpha: p below this is significant.

    Returns:
        the rank of each metric, from 1, in descending order of value.
    """
    ranks: dict[str, int] = {}
    cluster: list[str] = []
    rank = 1
    for name in sorted(values, key=lambda name: -values[name]):
        found = [p_values[better, name] for better in cluster]
        if any(p is not None and p < alpha for p in found):
            rank += 1
            cluster = []
        cluster.append(name)
        ranks[name] = rank
    return ranks
