"""How well scores agree with human ratings: Kendall tau, Pearson r, Spearman rho and daRR, with intervals.

The measures of BLEURT, section 5.1: correlations of segment scores with ratings, and daRR, the share of concordant
minus discordant pairs of translations that people clearly told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
