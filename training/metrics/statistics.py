"""Agreement of scores with human ratings: correlations, and the measures and tests of the WMT Metrics task.

The first part has the measures of BLEURT, section 5.1: Kendall's tau, Pearson's r, Spearman's rho and daRR. The second part
has agreement as the WMT Metrics task measures it today, as defined by mt-metrics-eval: accuracy with tie calibration (acc_eq,
Deutsch et al., 2023, https://aclanthology.org/2023.emnlp-main.798), soft pairwise accuracy (SPA, Thompson et al., 2024,
https://aclanthology.org/2024.wmt-1.118), averages by item and by system, permutation tests, and clusters of significance.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.statistics import CONFIDENCE, Indices, Values, standardise

Statistic = Callable[..., float]

PERMUTATIONS = 1000
ALPHA = 0.05


def kendall_tau(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Compute Kendall's tau-b of scores and ratings, from -1 to 1.

    Raises:
        ValueError: if scores or ratings do not vary, since a rank correlation is then undefined.
    """
    from scipy.stats import kendalltau

    return float(kendalltau(*_checked(scores, ratings)).statistic)


def pearson_r(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Compute Pearson's r of scores and ratings, from -1 to 1.

    Raises:
        ValueError: as `kendall_tau` does, or if numbers are so large that their squares overflow.
    """
    # scipy.stats.pearsonr tests significance too, which takes several times as long: too long for each resample
    with np.errstate(over="ignore", invalid="ignore"):
        r = float(np.corrcoef(*_checked(scores, ratings))[0, 1])
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
        worse: scores of the other candidates, in the same order.

    Returns:
        agreement from -1 to 1; equal scores count as discordant, as in the WMT Metrics task
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


def share_with_interval(right: int, n: int, confidence: float = CONFIDENCE) -> dict[str, Any]:
    """Return `right` of `n` as a share with its Wilson interval, as fractions of 1.

    Args:
        right: number of successes.
        n: number of trials, at least 1.
        confidence: level of the interval (https://doi.org/10.1080/01621459.1927.10502953).
    """
    from scipy.stats import binomtest

    ends = binomtest(right, n).proportion_ci(confidence, method="wilson")
    return {"right": right, "n": n, "share": right / n, "low": float(ends.low), "high": float(ends.high)}


def williams_test(r12: float, r13: float, r23: float, n: int) -> tuple[float, float]:
    """Test whether r12 is above r13, two correlations of the same segments that share a variable.

    Williams (1959), in the form of Steiger (1980), equation 7: https://doi.org/10.1037/0033-2909.87.2.245.

    Args:
        r12, r13: correlations of the ratings with the first and with the second metric.
        r23: correlation of the two metrics.
        n: number of segments, at least 4.

    Returns:
        t, with n - 3 degrees of freedom, and the one-sided p-value. Equal metrics have 0 and 0.5.

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


def indices_by_label(labels: Sequence[Any]) -> list[Indices]:
    """Return the indices of each different label, in the order of first appearance."""
    indices: dict[Any, list[int]] = {}
    for i, label in enumerate(labels):
        indices.setdefault(label, []).append(i)
    return [np.array(group, dtype=np.intp) for group in indices.values()]


def average_over(statistic: Statistic, scores: Values, ratings: Values, groups: Sequence[Indices]) -> float:
    """Average a correlation over groups; groups where it is undefined are left out, as in mt-metrics-eval.

    Args:
        statistic: correlation, such as `kendall_tau`.
        scores, ratings: scores and ratings of all translations, (n,) each.
        groups: indices of each group: the translations of one segment (by item), or those of one system (by system).

    Returns:
        mean over the groups; NaN if the correlation is undefined in all of them.
    """
    values = []
    for group in groups:
        try:
            values.append(statistic(scores[group], ratings[group]))
        except ValueError:  # does not vary
            continue
    return float(np.mean(values)) if values else math.nan


@dataclass(frozen=True)
class TiedPairs:
    """All pairs of translations within each group, and how people ranked them, for acc_eq.

    Attributes:
        first, second: indices of the two translations of each pair, (pairs,).
        group: number of each pair's group, (pairs,), counted from 0; groups of a single translation have no pair.
        sizes: number of pairs of each group, (groups,).
        preferred: 1 if people preferred the first, -1 the second, 0 for a tie, (pairs,).
    """

    first: Indices
    second: Indices
    group: Indices
    sizes: Indices
    preferred: NDArray[np.int8]

    @classmethod
    def within(cls, ratings: Values, groups: Sequence[Indices]) -> TiedPairs:
        """Make all pairs within each group.

        Args:
            ratings: human ratings of all translations, (n,).
            groups: indices of each group's translations.

        Raises:
            ValueError: if no group has two translations.
        """
        pairs = [group[np.array(np.triu_indices(len(group), 1))] for group in groups if len(group) > 1]
        if not pairs:
            raise ValueError("no group has two translations or more: there is no pair to rank")
        first, second = np.concatenate(pairs, axis=1)
        sizes = np.array([group_pairs.shape[1] for group_pairs in pairs])
        preferred = np.sign(ratings[first] - ratings[second]).astype(np.int8)
        return cls(first, second, np.repeat(np.arange(len(pairs)), sizes), sizes, preferred)

    def right(self, scores: Values, epsilon: float = 0.0) -> NDArray[np.bool_]:
        """Return which pairs are ranked as people ranked them, (pairs,); scores at most `epsilon` apart are a tie."""
        difference = scores[self.first] - scores[self.second]
        return np.where(np.abs(difference) <= epsilon, 0, np.sign(difference)) == self.preferred

    def accuracies(self, scores: Values, epsilon: float = 0.0) -> Values:
        """Return the share of pairs ranked as people ranked them, (groups,)."""
        return np.bincount(self.group, self.right(scores, epsilon), len(self.sizes)) / self.sizes


def calibrate_ties(pairs: TiedPairs, scores: Values) -> tuple[float, float]:
    """Find the difference of scores up to which a tie agrees best with people (Deutsch et al., 2023, section 6).

    Args:
        pairs: pairs of translations.
        scores: scores of all translations, (n,).

    Returns:
        acc_eq, the accuracy averaged over groups at the best threshold, and the threshold: 0 or a difference of two
        scores, the smallest of those that are equally good.
    """
    difference = scores[pairs.first] - scores[pairs.second]
    apart = np.abs(difference)
    # Without ties: the accuracy is a sum over pairs, in which each group weighs the same.
    weights = 1.0 / (pairs.sizes[pairs.group] * len(pairs.sizes))
    right = np.sign(difference) == pairs.preferred
    # A rising threshold turns one pair after another into a tie: right if people tied, wrong if they did not.
    order = np.argsort(apart, kind="stable")
    gains = weights * ((pairs.preferred == 0).astype(float) - right)
    total_gains = np.concatenate([[0.0], np.cumsum(gains[order])])
    thresholds = np.concatenate([[0.0], apart[order]])
    # Pairs with the same difference become ties together: only the last of them is a possible threshold.
    last = np.append(thresholds[1:] != thresholds[:-1], True)
    best = total_gains[last].max()
    optimum = np.flatnonzero(last)[np.flatnonzero(total_gains[last] >= best - 1e-12)[0]]
    return float((weights * right).sum() + total_gains[optimum]), float(thresholds[optimum])


def pairwise_accuracy(scores: Values, ratings: Values) -> float:
    """Compute the share of pairs of systems that scores rank as people do (Kocmi et al., 2021).

    Args:
        scores, ratings: score and rating of each system, (systems,); a pair that is tied in one of them is wrong.
    """
    i, j = np.triu_indices(len(scores), 1)
    return float(np.mean(np.sign(scores[i] - scores[j]) == np.sign(ratings[i] - ratings[j])))


def permutation_p_values(scores: Values, permutations: int = PERMUTATIONS, seed: int = 0) -> Values:
    """Test by paired permutation whether each system is better than each other one.

    Args:
        scores: (systems, segments); NaN where a system has no score. A pair is tested on the segments of both.
        permutations: number of random exchanges of the two systems' scores, segment by segment.
        seed: seed of the exchanges, which are the same for every pair.

    Returns:
        (systems, systems): p of the hypothesis that the row's system is better than the column's, in the upper
        triangle; NaN elsewhere, and where two systems share no segment.
    """
    signs = np.random.default_rng(seed).integers(0, 2, (permutations, scores.shape[1])) * 2.0 - 1.0
    p_values = np.full((len(scores), len(scores)), np.nan)
    i, j = np.triu_indices(len(scores), 1)
    differences = (scores[i] - scores[j]).T  # (segments, pairs)
    shared = np.isfinite(differences).any(axis=0)
    differences = np.nan_to_num(differences)
    # Rounding must not hide an exchange that equals the observed order.
    least = differences.sum(axis=0) - 1e-9 * np.abs(differences).sum(axis=0)
    p_values[i, j] = np.where(shared, np.mean(signs @ differences >= least, axis=0), np.nan)
    return p_values


def soft_pairwise_accuracy(by_scores: Values, by_ratings: Values) -> float:
    """Compute 1 minus the mean distance of two p-values over all pairs of systems (Thompson et al., 2024).

    Args:
        by_scores, by_ratings: p-values of `permutation_p_values`, for a metric's scores and for human ratings.

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
        statistic: agreement of scores with people, a function of the scores of all translations.
        first, second: scores of the two metrics for the same translations, (n,) each.
        permutations: number of random exchanges.
        seed: seed of the exchanges.

    Returns:
        p of the hypothesis that the first agrees better: the share of exchanges with at least the observed difference,
        counting the observed order once more.
    """
    first, second = standardise(first), standardise(second)
    observed = statistic(first) - statistic(second)
    generator = np.random.default_rng(seed)
    reached = 0
    for _ in range(permutations):
        mask = generator.integers(0, 2, len(first)) == 1
        difference = statistic(np.where(mask, first, second)) - statistic(np.where(mask, second, first))
        reached += difference >= observed - 1e-12
    return (reached + 1) / (permutations + 1)


def significance_clusters(
    values: Mapping[str, float], p_values: Mapping[tuple[str, str], float | None], alpha: float = ALPHA
) -> dict[str, int]:
    """Rank metrics by clusters of significance, as the WMT Metrics task prints them.

    From the best metric down, a metric shares the rank of those above it until it is significantly worse than one of them:
    then the next rank begins (Freitag et al., 2022, https://aclanthology.org/2022.wmt-1.2).

    Args:
        values: value of each metric; higher is better.
        p_values: p of the hypothesis that the first of two metrics is better than the second, at least for each two
            metrics in descending order.
        alpha: level of significance.

    Returns:
        rank of each metric, from 1, in descending order of value.
    """
    ranks: dict[str, int] = {}
    cluster: list[str] = []
    rank = 1
    for name in sorted(values, key=lambda name: -values[name]):
        against_cluster = [p_values[better, name] for better in cluster]
        if any(p is not None and p < alpha for p in against_cluster):
            rank += 1
            cluster = []
        cluster.append(name)
        ranks[name] = rank
    return ranks
