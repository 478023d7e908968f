"""Statistics of scores: the bootstrap, its intervals, and paired tests of one system or metric against another.

`compare` uses them, and so does `training/metrics`, which also has correlations with human ratings.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Indices = NDArray[np.intp]

RESAMPLES = 1000
CONFIDENCE = 0.95

# Koehn (2004), section 4: 1000 virtual test sets. https://aclanthology.org/W04-3250
CONVENTION = (
    "paired bootstrap (Koehn, 2004), one-sided: p is the share of resampled test sets in which the system with the "
    "higher mean is not ahead, counting the observed set once more"
)
# Segments with a difference up to which all exchanges of two systems' scores are counted, 65,536 of them.
EXACT_SEGMENTS = 16
TWO_SIDED = (
    "approximate randomisation (Riezler and Maxwell, 2005), two-sided: p is the share of random exchanges of the two systems' "
    "scores, segment by segment, in which the difference of the means is at least as large, counting the observed order once "
    f"more; of all exchanges, if at most {EXACT_SEGMENTS} segments have different scores"
)
# Random bits drawn at once, which bounds memory.
BITS_AT_ONCE = 2**22


def standardise(values: Values, by: Values | None = None, *, constant: float | None = None) -> Values:
    """Return values with mean 0 and standard deviation 1 along the last axis (z-scores).

    Args:
        values: array (..., n).
        by: array (..., m) that mean and deviation are computed from; by default the values themselves.
        constant: deviation to divide by where `by` does not vary; by default that is an error.

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


def resampled_indices(
    n: int, resamples: int, seed: int | Sequence[int], segments: NDArray[Any] | None = None
) -> Iterator[Indices]:
    """Draw rows with replacement, once per resample.

    Args:
        n: number of rows.
        resamples: number of resamples.
        seed: seed of the drawing; the same seed draws the same rows.
        segments: number of each row's segment, (n,), where several rows belong to one. Then whole segments are drawn, as
            many as there are, since rows of one segment are not independent.

    Yields:
        indices of rows, with repetitions.
    """
    generator = np.random.default_rng(seed)
    if segments is None:
        for _ in range(resamples):
            yield generator.integers(0, n, n)
        return
    # Sort the rows by segment, so that each segment is a range of the order.
    numbers = np.unique(segments, return_inverse=True)[1]
    order = np.argsort(numbers, kind="stable")
    counts = np.bincount(numbers)
    starts = np.cumsum(counts) - counts
    for _ in range(resamples):
        sample = generator.integers(0, len(counts), len(counts))
        sizes = counts[sample]
        # 0, 1, ... within each drawn segment
        offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield order[np.repeat(starts[sample], sizes) + offsets]


def interval(resampled: Values, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Compute the percentile interval of resampled values.

    Args:
        resampled: values of the resamples; NaN, where a resample did not vary, is left out.
        confidence: level of the interval.

    Returns:
        lower and upper end; (None, None) without values.
    """
    values = resampled[~np.isnan(resampled)] if len(resampled) else resampled
    if not len(values):
        return None, None
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def mean_interval(
    count: int, total: float, squares: float, confidence: float = CONFIDENCE
) -> tuple[float | None, float | None]:
    """Compute the interval of a mean from sums of the values, without resampling.

    Over resamples, the standard error of a mean is the standard deviation of the values divided by the root of their number,
    and the means approach a normal distribution. The interval is the bootstrap's in that limit, at the same cost for any
    number of values.

    Args:
        count: number of values.
        total: sum of the values.
        squares: sum of their squares.
        confidence: level of the interval.

    Returns:
        lower and upper end; (None, None) for fewer than two values, as in `compare`.
    """
    if count < 2:
        return None, None
    mean = total / count
    error = math.sqrt(max(0.0, squares / count - mean**2) / count)
    half = NormalDist().inv_cdf((1 + confidence) / 2) * error
    return mean - half, mean + half


def interval_text(low: float | None, high: float | None) -> str:
    """Return an interval as text."""
    return "no interval" if low is None or high is None else f"{low:.4f} to {high:.4f}"


@dataclass(frozen=True)
class Difference:
    """Difference of two figures, tested on the same resamples of both.

    Attributes:
        value: first figure minus the second.
        low, high: ends of the interval of the difference; None without resamples.
        p_value: share of resamples in which the higher figure is not ahead, counting the observed set once more; None
            without resamples.
    """

    value: float
    low: float | None
    high: float | None
    p_value: float | None


def paired_difference(observed: float, first: Values, second: Values, confidence: float = CONFIDENCE) -> Difference:
    """Test a difference of two figures by the paired bootstrap, one-sided; see `CONVENTION`.

    Args:
        observed: first figure minus the second.
        first, second: both figures on the same resamples; NaN where a resample did not vary.
        confidence: level of the interval.
    """
    differences = first - second
    differences = differences[~np.isnan(differences)]
    low, high = interval(differences, confidence)
    not_ahead = int(np.count_nonzero(differences * np.sign(observed) <= 0))
    p_value = (not_ahead + 1) / (len(differences) + 1) if len(differences) else None
    return Difference(observed, low, high, p_value)


def resampled_means(scores: Values, resamples: int = RESAMPLES, seed: int = 0) -> Values:
    """Compute each system's mean on test sets drawn from the segments with replacement.

    Args:
        scores: (systems, segments); a resample has the same segments of every system, which pairs them.
        resamples: number of test sets.
        seed: seed of the drawing.

    Returns:
        (resamples, systems).
    """
    means = np.empty((resamples, len(scores)))
    for row, indices in zip(means, resampled_indices(scores.shape[1], resamples, seed), strict=True):
        row[:] = scores[:, indices].mean(axis=1)
    return means


@dataclass(frozen=True)
class PairedTest:
    """Test of one system against another on the same segments.

    Attributes:
        first, second: names of the systems.
        difference: mean of the first minus mean of the second.
        low, high: ends of the interval of the difference; None for a single segment.
        p_value: p by `CONVENTION`; None for a single segment.
        wins, losses, ties: numbers of segments in which the first scores higher, lower, the same.
        p_two_sided: p by `TWO_SIDED`; None for a single segment, or if it was not computed.
        preferred: P(people prefer the first system); None if it was not computed.
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
    means: Values,
    confidence: float = CONFIDENCE,
    p_two_sided: float | None = None,
) -> PairedTest:
    """Test whether one system's mean is above another's.

    Args:
        names: names of the two systems.
        scores: scores of each, in the same order of segments.
        means: (resamples, 2), their means on the same resampled test sets.
        confidence: level of the interval of the difference.
        p_two_sided: p of `two_sided_p_values`.
    """
    differences = np.asarray(scores[0], dtype=np.float64) - np.asarray(scores[1], dtype=np.float64)
    if len(differences) < 2:  # all resamples of one segment are the same
        means, p_two_sided = np.empty((0, 2)), None
    test = paired_difference(float(differences.mean()), means[:, 0], means[:, 1], confidence)
    wins, losses = int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))
    ties = len(differences) - wins - losses
    return PairedTest(*names, test.value, test.low, test.high, test.p_value, wins, losses, ties, p_two_sided)


def two_sided_p_values(differences: Values, trials: int = RESAMPLES, seed: int = 0) -> Values:
    """Test by randomisation whether means differ, in either direction.

    Riezler and Maxwell (2005, https://aclanthology.org/W05-0908), the test of sacreBLEU's `--paired-ar`, with the same
    exchanges from the same seed. A test with at most `EXACT_SEGMENTS` differences counts all exchanges.

    Args:
        differences: (tests, segments), the first system's score minus the second's.
        trials: number of random exchanges of the two systems' scores, segment by segment.
        seed: seed of the exchanges, which are the same in every test.

    Returns:
        (tests,), p by `TWO_SIDED`.
    """
    exact = np.count_nonzero(differences, axis=1) <= EXACT_SEGMENTS
    p_values = np.empty(len(differences))
    p_values[exact] = [_exact_p_value(row[row != 0]) for row in differences[exact]]
    if not exact.all():
        p_values[~exact] = _sampled_p_values(differences[~exact], trials, seed)
    return p_values


def _exact_p_value(differences: Values) -> float:
    """Return the share of all exchanges with a total at least as large as the observed one."""
    totals = np.zeros(1)
    for difference in differences:
        totals = np.concatenate([totals + difference, totals - difference])
    return float(np.mean(np.abs(totals) >= _least_total(differences[None])[0]))


def _sampled_p_values(differences: Values, trials: int, seed: int) -> Values:
    generator = np.random.default_rng(seed)
    totals, least = differences.sum(axis=1), _least_total(differences)
    reached = np.zeros(len(differences))
    # numpy draws 32 bits at once, and begins anew in each call: batches of 32 rows give the same bits as one batch
    rows = max(1, BITS_AT_ONCE // (32 * max(1, differences.shape[1]))) * 32
    for start in range(0, trials, rows):
        exchanged = generator.integers(2, size=(min(rows, trials - start), differences.shape[1]), dtype=bool)
        reached += np.count_nonzero(np.abs(totals - 2 * (exchanged @ differences.T)) >= least, axis=0)
    return (reached + 1) / (trials + 1)


def _least_total(differences: Values) -> Values:
    """Return from which total on an exchange counts, (tests,): rounding must not hide one that equals the observed order."""
    return np.abs(differences.sum(axis=1)) - 1e-9 * np.abs(differences).sum(axis=1)
