"""Bootstrap resampling of a test set: intervals of means, and tests of one system against another.

How well scores agree with human ratings: Kendall tau, Pearson r, Spearman rho and daRR, with intervals.

The measures of BLEURT, section 5.1: correlations of segment scores with ratings, and daRR, the share of concordant
minus discordant pairs of translations that people clearly told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Statistic = Callable[..., float]

RESAMPLES = 1000
CONFIDENCE = 0.95


def kendall_tau(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Give Kendall's tau-b of scores and ratings, from -1 to 1.

    Raises:
        ValueError: if either does not vary: a rank correlation is then undefined.
    """
    from scipy.stats import kendalltau

    return float(kendalltau(*_checked(scores, ratings)).statistic)


def pearson_r(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Give Pearson's r of scores and ratings, from -1 to 1.

    Raises:
        ValueError: as `kendall_tau` does, and if numbers are so large that their squares overflow.
    """
    from scipy.stats import pearsonr

    r = float(pearsonr(*_checked(scores, ratings)).statistic)
    if np.isnan(r):
        raise ValueError("Pearson's r of these numbers overflows: scale scores and ratings down")
    return r


def spearman_rho(scores: Sequence[float] | Values, ratings: Sequence[float] | Values) -> float:
    """Give Spearman's rho of scores and ratings, from -1 to 1; raises as `kendall_tau` does."""
    from scipy.stats import spearmanr

    return float(spearmanr(*_checked(scores, ratings)).statistic)


def darr(better: Sequence[float] | Values, worse: Sequence[float] | Values) -> float:
    """Give the agreement with relative ranks: (concordant - discordant) / (concordant + discordant).

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


def with_interval(
    statistic: str,
    first: Sequence[float] | Values,
    second: Sequence[float] | Values,
    *,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
    seed: int = 0,
) -> dict[str, Any]:
    """Give a statistic with its percentile bootstrap interval over segments.

    Args:
        statistic: a key of `STATISTICS`.
        first, second: its two samples, paired.
        resamples: bootstrap samples; 0 leaves the interval out.
        confidence: of the interval.
        seed: of the resampling.

    Returns:
        {"value", "low", "high", "n"}; low and high are None where there is no interval.
    """
    compute = STATISTICS[statistic]
    samples = _pair(first, second)
    figure: dict[str, Any] = {"value": compute(*samples), "low": None, "high": None, "n": len(samples[0])}
    if resamples and len(samples[0]) > 2:
        from scipy.stats import bootstrap

        interval = bootstrap(
            samples,
            lambda a, b: _or_nan(compute, a, b),
            paired=True,
            vectorized=False,
            n_resamples=resamples,
            confidence_level=confidence,
            method="percentile",
            rng=np.random.default_rng(seed),
        ).confidence_interval
        figure.update(low=float(interval.low), high=float(interval.high))
    return figure


def _or_nan(compute: Statistic, a: Values, b: Values) -> float:
    """A resample of a small group may happen not to vary."""
    try:
        return compute(a, b)
    except ValueError:
        return float("nan")


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


# Koehn (2004), section 4: 1000 virtual test sets. https://aclanthology.org/W04-3250
CONVENTION = (
    "paired bootstrap (Koehn, 2004), one-sided: p is the share of resampled test sets in which the system with the "
    "higher mean is not ahead, counting the observed set once more"
)


@dataclass(frozen=True)
class PairedTest:
    """One system against another on the same segments.

    Attributes:
        first, second: their names.
        difference: the first's mean minus the second's.
        low, high: the interval of the difference; None for a single segment.
        p_value: by `CONVENTION`; None for a single segment.
        wins, losses, ties: segments in which the first scores higher, lower, the same.
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


def resampled_means(scores: NDArray[np.float64], resamples: int = RESAMPLES, seed: int = 0) -> NDArray[np.float64]:
    """Give each system's mean on test sets drawn from the segments with replacement.

    Args:
        scores: (systems, segments); a resampled set holds the same segments of every system, which pairs them.
        resamples: how many test sets.
        seed: of the drawing.

    Returns:
        (resamples, systems).
    """
    generator = np.random.default_rng(seed)
    segments = scores.shape[1]
    means = np.empty((resamples, len(scores)))
    for row in means:
        row[:] = scores[:, generator.integers(0, segments, segments)].mean(axis=1)
    return means


def interval(values: NDArray[np.float64], confidence: float = CONFIDENCE) -> tuple[float, float]:
    """Give the percentile interval of resampled figures."""
    low, high = np.quantile(values, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def paired_test(
    names: tuple[str, str],
    scores: tuple[Sequence[float], Sequence[float]],
    means: NDArray[np.float64],
    confidence: float = CONFIDENCE,
) -> PairedTest:
    """Test whether one system's mean is above another's.

    Args:
        names: of the two systems.
        scores: of each, in the same order of segments.
        means: (resamples, 2), their means on the same resampled test sets.
        confidence: of the interval of the difference.
    """
    differences = np.asarray(scores[0], dtype=np.float64) - np.asarray(scores[1], dtype=np.float64)
    observed = float(differences.mean())
    low = high = p_value = None
    if len(differences) > 1:  # one segment resampled is the same segment
        resampled = means[:, 0] - means[:, 1]
        low, high = interval(resampled, confidence)
        not_ahead = int(np.count_nonzero(resampled * np.sign(observed) <= 0))
        p_value = (not_ahead + 1) / (len(resampled) + 1)
    wins, losses = int(np.count_nonzero(differences > 0)), int(np.count_nonzero(differences < 0))
    return PairedTest(*names, observed, low, high, p_value, wins, losses, len(differences) - wins - losses)
