"""Bootstrap resampling of a test set: intervals of means, and tests of one system against another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Koehn (2004), section 4: 1000 virtual test sets. https://aclanthology.org/W04-3250
RESAMPLES = 1000
CONFIDENCE = 0.95
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
