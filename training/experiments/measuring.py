"""Measure rows on samples, with intervals and paired tests from the same bootstrap resamples of segments."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.training.agreement import CONFIDENCE, STATISTICS
from bleurt_repro.training.experiments.scoring import Row, Values

AVERAGE = "average"


@dataclass(frozen=True)
class Sample:
    """What a measure compares in one group.

    Attributes:
        measure: a key of `STATISTICS`.
        group: such as a language pair.
        first: items whose scores are the measure's first argument.
        second: the second argument: ratings, or, if `of_scores`, items whose scores it is.
        of_scores: as in daRR, which compares scores with scores.
    """

    measure: str
    group: str
    first: NDArray[np.intp]
    second: NDArray[Any]
    of_scores: bool = False

    def of(self, scores: Values, chosen: NDArray[np.intp] | None = None) -> float:
        """Give the measure of scores on the sample, or on some of it.

        Args:
            scores: of all items.
            chosen: places in the sample, repeated ones included.

        Raises:
            ValueError: if the scores or ratings do not vary.
        """
        first, second = (self.first, self.second) if chosen is None else (self.first[chosen], self.second[chosen])
        return STATISTICS[self.measure](scores[first], scores[second] if self.of_scores else second)

    def resamples(self, number: int, seed: int) -> Iterator[NDArray[np.intp]]:
        """Draw places with replacement, as many as the sample has, `number` times; the same for every row."""
        generator = np.random.default_rng([seed, zlib.crc32(f"{self.measure}/{self.group}".encode())])
        for _ in range(number):
            yield generator.integers(0, len(self.first), len(self.first))


@dataclass(frozen=True)
class Figure:
    """A measure of one row on one sample.

    Attributes:
        value: the mean over the row's seeds.
        by_seed: the value of each.
        resampled: the value on each resample; NaN where one did not vary.
        n: size of the sample.
    """

    value: float
    by_seed: tuple[float, ...]
    resampled: Values
    n: int

    def to_json(self) -> dict[str, Any]:
        """Give value, interval and size; low and high are None where there is no interval."""
        low, high = interval(self.resampled)
        return {"value": self.value, "low": low, "high": high, "n": self.n}


def measure(row: Row, sample: Sample, resamples: int, seed: int) -> Figure | None:
    """Measure a row on a sample; None if its file has no scores there.

    Raises:
        ValueError: naming row and group, if ratings or scores do not vary.
    """
    if all(np.isnan(vector[sample.first]).all() for vector in row.vectors):
        return None
    try:
        by_seed = tuple(sample.of(vector) for vector in row.vectors)
    except ValueError as error:
        raise ValueError(f"{row.name}, {sample.group}: {error}") from error
    places = sample.resamples(resamples, seed) if len(sample.first) > 2 else iter(())
    resampled = [np.mean([_or_nan(sample, vector, chosen) for vector in row.vectors]) for chosen in places]
    return Figure(float(np.mean(by_seed)), by_seed, np.array(resampled), len(sample.first))


def measure_average(figures: Sequence[Figure | None]) -> Figure | None:
    """Average figures of several groups, each group counting once, as the shared tasks do; None if one is missing."""
    known = [figure for figure in figures if figure is not None]
    if not known or len(known) < len(figures):
        return None
    by_seed = tuple(float(np.mean(values)) for values in zip(*(figure.by_seed for figure in known), strict=True))
    lengths = {len(figure.resampled) for figure in known}
    resampled = np.mean([figure.resampled for figure in known], axis=0) if len(lengths) == 1 else np.array([])
    return Figure(float(np.mean([f.value for f in known])), by_seed, resampled, sum(f.n for f in known))


def interval(resampled: Values, confidence: float = CONFIDENCE) -> tuple[float | None, float | None]:
    """Give the percentile interval of resampled values, those that are NaN left out; (None, None) without any."""
    known = resampled[~np.isnan(resampled)] if len(resampled) else resampled
    if not len(known):
        return None, None
    low, high = np.quantile(known, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def _or_nan(sample: Sample, scores: Values, chosen: NDArray[np.intp]) -> float:
    """A resample of a small group may happen not to vary."""
    try:
        return sample.of(scores, chosen)
    except ValueError:
        return float("nan")
