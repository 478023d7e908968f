"""Compare the systems of rated files, and fit P(people prefer a system) on the comparisons.

`metric/calibration.py` has the function that is fitted, `Preference`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import FEWEST_SEGMENTS, Preference
from bleurt_repro.metric.statistics import RESAMPLES, Values

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer

# Sizes of the samples of segments on which two systems are compared, and the number of samples of each size.
SAMPLE_SIZES = (20, 50, 100, 200, 400, 800, 1600)
SAMPLES = 4
# Systems that share fewer segments are compared on different segments.
FEWEST_SHARED = 50
# Pairs of systems that a fit needs.
FEWEST_PAIRS = 10
# Digits of the fitted numbers.
DECIMALS = 4


@dataclass(frozen=True)
class RatedSystems:
    """Candidates of systems with a checkpoint's scores and human ratings, one array per column.

    Attributes:
        scores: scores of the checkpoint, (n,).
        ratings: human ratings, (n,).
        groups: names within which systems are compared, such as the language pair, (n,).
        segments: numbers of the candidates' segments, (n,).
        systems: names, (n,); systems with the same candidate are joined by "+"; "" if a candidate has no system.
    """

    scores: Values
    ratings: Values
    groups: NDArray[Any]
    segments: NDArray[np.intp]
    systems: NDArray[Any]

    def subset(self, mask: NDArray[Any]) -> RatedSystems:
        """Return the candidates that a mask or indices select."""
        return RatedSystems(*(getattr(self, field.name)[mask] for field in fields(self)))


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of two systems, one array per column.

    Attributes:
        groups: names of the systems' groups.
        pairs: numbers of the pairs of systems; a pair is compared several times, on samples of its segments.
        sizes: numbers of segments that were sampled; 0 for a comparison on all segments.
        segments: numbers of segments of the comparisons.
        differences: the first system's mean score minus the second's.
        errors: standard errors of the differences.
        preferred: whether the first system's mean rating is higher, over all ratings of both.
        p_values: one-sided p of the paired bootstrap; by normal approximation for systems on different segments.
    """

    groups: NDArray[Any]
    pairs: NDArray[np.intp]
    sizes: NDArray[np.intp]
    segments: NDArray[np.intp]
    differences: Values
    errors: Values
    preferred: NDArray[np.bool_]
    p_values: Values

    def subset(self, mask: NDArray[Any]) -> Comparisons:
        """Return the comparisons that a mask or indices select."""
        return Comparisons(*(getattr(self, field.name)[mask] for field in fields(self)))

    @property
    def weights(self) -> Values:
        """Weights that add up to 1 for each pair of systems and sample size."""
        _, index, counts = np.unique(
            np.stack([self.pairs, self.sizes]), axis=1, return_inverse=True, return_counts=True
        )
        return 1 / counts[index.reshape(-1)]


def read_rated_systems(path: str | Path, scorer: BleurtScorer) -> RatedSystems:
    """Read ratings of systems, and score their candidates.

    Args:
        path: file of ratings with columns system and, where there are several, lp and year.
        scorer: scorer of the checkpoint.

    Raises:
        ValueError: as `rating_records` does.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    rows = rating_records(str(path), (*scorer.layout.required, "score"))
    columns = ("lp", "year") if len({row["year"] for row in rows}) > 1 else ("lp",)
    groups = [" ".join(str(row[name]) for name in columns if row[name] is not None) or "all" for row in rows]
    # A segment is known by its texts: files number segments in different ways.
    texts = [(group, row["source"], row["reference"]) for group, row in zip(groups, rows, strict=True)]
    numbers: dict[Any, int] = {}
    return RatedSystems(
        scores=np.array(scorer.score_rows(rows), float),
        ratings=np.array([row["score"] for row in rows], float),
        groups=np.array(groups),
        segments=np.array([numbers.setdefault(text, len(numbers)) for text in texts]),
        systems=np.array([row["system"] or "" for row in rows]),
    )


def compare_systems(rated: RatedSystems, seed: int = 0) -> Comparisons:
    """Compare every two systems of a group on all segments that both were rated on, and on samples of these segments.

    Two systems that share fewer than `FEWEST_SHARED` segments are compared on all segments of each. Pairs of systems with
    equal mean ratings are left out.

    Args:
        rated: candidates of systems.
        seed: seed of the samples and of the bootstrap.
    """
    generator = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    pair = 0
    for group in np.unique(rated.groups):
        tables = _by_system(rated.subset(rated.groups == group))
        for first, second in itertools.combinations(sorted(tables), 2):
            (scores, ratings), (second_scores, second_ratings) = tables[first], tables[second]
            means = np.mean(list(ratings.values())), np.mean(list(second_ratings.values()))
            if means[0] == means[1]:
                continue
            pair += 1
            preferred = means[0] > means[1]
            shared = sorted(set(scores) & set(second_scores))
            # Different segments: the error of a difference of independent means.
            if len(shared) < FEWEST_SHARED:
                a, b = (np.array(list(values.values())) for values in (scores, second_scores))
                if min(len(a), len(b)) >= FEWEST_SEGMENTS:
                    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
                    difference = a.mean() - b.mean()
                    p = 0.5 * math.erfc(abs(difference) / error / math.sqrt(2)) if error else 0.5
                    rows.append((group, pair, 0, min(len(a), len(b)), difference, error, preferred, p))
                continue
            # Shared segments: paired differences of all of them, and of samples of each size.
            differences = np.array([scores[segment] - second_scores[segment] for segment in shared])
            for size in (0, *(size for size in SAMPLE_SIZES if size < len(differences))):
                for _ in range(SAMPLES if size else 1):
                    sample = generator.permutation(differences)[:size] if size else differences
                    error = sample.std(ddof=1) / math.sqrt(len(sample))
                    p = _bootstrap_p(sample, generator)
                    rows.append((group, pair, size, len(sample), sample.mean(), error, preferred, p))
    if not rows:
        return Comparisons(*(np.array([]) for _ in fields(Comparisons)))
    return Comparisons(*map(np.array, zip(*rows, strict=True)))


def _by_system(rated: RatedSystems) -> dict[str, tuple[dict[int, float], dict[int, float]]]:
    """Return the scores and the ratings of each system, by segment."""
    tables: dict[str, tuple[dict[int, float], dict[int, float]]] = {}
    for names, segment, score, rating in zip(rated.systems, rated.segments, rated.scores, rated.ratings, strict=True):
        for system in filter(None, names.split("+")):
            scores, ratings = tables.setdefault(system, ({}, {}))
            scores[segment], ratings[segment] = score, rating
    return tables


def _bootstrap_p(differences: Values, generator: np.random.Generator) -> float:
    """Return p of the paired bootstrap, as `metric.statistics.paired_difference` computes it."""
    resamples = generator.integers(0, len(differences), (RESAMPLES, len(differences)))
    not_ahead = np.count_nonzero(differences[resamples].mean(axis=1) * np.sign(differences.mean()) <= 0)
    return float((not_ahead + 1) / (RESAMPLES + 1))


def fit_preference(comparisons: Comparisons) -> Preference:
    """Fit P(people prefer the first system) by maximum likelihood; each pair of systems and sample size weighs the same.

    Raises:
        ValueError: if there are fewer than `FEWEST_PAIRS` pairs of systems.
    """
    from scipy.optimize import minimize

    if (count := len(np.unique(comparisons.pairs))) < FEWEST_PAIRS:
        raise ValueError(
            f"a fit needs {FEWEST_PAIRS} pairs of systems, found {count}: give ratings with a column system, of 5 systems "
            "or more"
        )
    signs = np.where(comparisons.preferred, 1.0, -1.0)
    weights = comparisons.weights

    def loss(logarithms: Values) -> float:
        slope, metric_error = np.exp(logarithms)
        z = comparisons.differences / np.hypot(comparisons.errors, metric_error)
        return float((weights * np.logaddexp(0, -slope * signs * z)).sum() / weights.sum())

    # Both numbers are positive and of unknown size: their logarithms are fitted.
    scale = max(float(np.median(comparisons.errors)), 1e-3)
    bounds = [(math.log(1e-3), math.log(1e2)), (math.log(scale * 1e-2), math.log(scale * 1e3))]
    optimum = minimize(loss, np.log([1.0, scale]), method="L-BFGS-B", bounds=bounds)
    slope, metric_error = np.exp(optimum.x)
    return Preference(round(float(slope), DECIMALS), round(float(metric_error), 2 * DECIMALS))
