"""What scores mean to people, as measured on human ratings and kept in the checkpoint.

`Calibration`, in config.json, maps scores to percentiles of human ratings. `Reliability`, in reliability.json, holds how far
scores can be trusted: whether people would prefer one system to another, between which values a rating lies, and whether a
rater would find an error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from bleurt_repro.metric.layout import CONFIG_KEY

CALIBRATION_KEY = "calibration"


@dataclass(frozen=True)
class Calibration:
    """A piecewise linear map: the percentile, among human ratings, that translations of a score have on average.

    Attributes:
        scores: raw scores, ascending.
        percentiles: 0..100, one a score, never falling. Scores beyond the ends get the end's percentile.
        source: what it was fitted on, such as file, SHA-256 and number of ratings.
    """

    scores: tuple[float, ...]
    percentiles: tuple[float, ...]
    source: dict[str, Any]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.percentiles) or len(self.scores) < 2:
            raise ValueError(
                f"a calibration needs two or more scores and a percentile for each, found {len(self.scores)} scores "
                f"and {len(self.percentiles)} percentiles"
            )
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        steady = all(a <= b for a, b in zip(self.percentiles, self.percentiles[1:], strict=False))
        finite = all(map(math.isfinite, self.scores))
        if not (finite and rising and steady and 0 <= self.percentiles[0] and self.percentiles[-1] <= 100):
            raise ValueError(
                "a calibration's scores must rise and be finite, and its percentiles never fall, from 0 to 100 at most"
            )

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """Return the percentile of each score."""
        import numpy as np

        if not len(scores):
            return []
        between = np.interp(scores, self.scores, self.percentiles)
        # Interpolation may round beyond the two points it goes between, and so above a higher score's percentile.
        above = np.searchsorted(self.scores, scores)
        last = len(self.percentiles) - 1
        low = np.take(self.percentiles, np.clip(above - 1, 0, last))
        high = np.take(self.percentiles, np.minimum(above, last))
        return np.clip(between, low, high).tolist()

    @classmethod
    def from_config(cls, config: Any) -> Calibration | None:
        """Read the calibration that a `transformers` config records, if it does."""
        entry = getattr(config, CONFIG_KEY, None)
        recorded = entry.get(CALIBRATION_KEY) if isinstance(entry, dict) else None
        if recorded is None:
            return None
        try:
            scores, percentiles = (tuple(map(float, recorded[name])) for name in ("scores", "percentiles"))
            return cls(scores, percentiles, dict(recorded.get("source", {})))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(
                f"the checkpoint's {CALIBRATION_KEY} must have scores and percentiles, lists of numbers: {error}"
            ) from error

    def to_config(self) -> dict[str, Any]:
        """Return the entry to record in config.json."""
        return {"scores": list(self.scores), "percentiles": list(self.percentiles), "source": self.source}


# How far scores can be trusted: kept beside the weights in a file of its own, which changes no score and no hash.

RELIABILITY_FILE = "reliability.json"
# With fewer, the standard error of a difference says little; the fit has seen no fewer.
FEWEST_SEGMENTS = 20
LEAST_COVERAGE, MOST_COVERAGE = 0.5, 0.99


def _numbers(name: str, values: Any, least: int = 1) -> tuple[float, ...]:
    numbers = tuple(map(float, values))
    if len(numbers) < least or not all(map(math.isfinite, numbers)):
        raise ValueError(f"{name} must be {least} finite numbers or more")
    return numbers


@dataclass(frozen=True)
class Preference:
    """P(raters prefer system A to B), by a logistic function of the difference of their mean scores.

    P = 1 / (1 + exp(-slope * d / sqrt(e^2 + metric_error^2))), where d is A's mean score minus B's, and e the standard error
    of d over the segments. More segments make e smaller and P more certain, but they do nothing against the error of the
    metric itself, which prefers one kind of system.

    Attributes:
        slope: positive.
        metric_error: of a difference of two means, on the scale of scores, positive.
    """

    slope: float
    metric_error: float

    def __post_init__(self) -> None:
        if not (0 < self.slope < math.inf and 0 < self.metric_error < math.inf):
            raise ValueError(f"slope and metric_error must be positive, found {self.slope} and {self.metric_error}")

    def __call__(self, differences: Any, errors: Any) -> Any:
        """Return P for differences and their standard errors, two numbers or two arrays."""
        import numpy as np

        z = np.asarray(differences, float) / np.hypot(np.asarray(errors, float), self.metric_error)
        return 0.5 * (1 + np.tanh(0.5 * self.slope * z))  # the logistic function, without overflow

    def of_scores(self, first: Sequence[float], second: Sequence[float]) -> float | None:
        """Return P(raters prefer the first system), from two systems' scores on the same segments.

        Returns:
            None if there are fewer than `FEWEST_SEGMENTS` segments.
        """
        import numpy as np

        gaps = np.asarray(first, float) - np.asarray(second, float)
        if len(gaps) < FEWEST_SEGMENTS:
            return None
        return float(self(gaps.mean(), gaps.std(ddof=1) / math.sqrt(len(gaps))))


@dataclass(frozen=True)
class RatingIntervals:
    """Between which two values a candidate's rating lies, given its score: split conformal, in bands of scores.

    Residuals of ratings are divided by their deviation, as means and deviations fitted on other ratings predict it (Lei et al.,
    2018, section 5.2, https://doi.org/10.1080/01621459.2017.1307116), and their quantiles are taken in each band of scores. Of
    the intervals that hold the wanted share, the shortest is taken: ratings are skewed.

    A rating differs from what the score predicts for two reasons: the metric is wrong, and raters differ. The rating that is
    the mean of n judgements varies around its prediction with deviation**2 * (1 - noise + noise / n).

    Attributes:
        scores: one a band, ascending.
        means: of the ratings at these scores.
        deviations: standard deviation of single judgements around the mean.
        noise: the share of their variance that is raters' noise, 0..1; None where the ratings that it was fitted on do not
            say of how many judgements they are.
        quantiles: of the divided residuals in each band, at equally spaced probabilities from 0 to 1.
        words: numbers of words of a candidate, ascending; in between they are interpolated on a logarithmic scale.
        factors: of the deviation at these numbers of words: ratings of short candidates vary more.
        groups: of groups such as language pairs, by how many deviations their ratings lie above the means, and the factor of
            their deviation; without a group these are 0 and 1.
    """

    scores: tuple[float, ...]
    means: tuple[float, ...]
    deviations: tuple[float, ...]
    noise: float | None
    quantiles: tuple[tuple[float, ...], ...]
    words: tuple[float, ...] = (1.0,)
    factors: tuple[float, ...] = (1.0,)
    groups: dict[str, tuple[float, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.scores)
        if not len(self.means) == len(self.deviations) == len(self.quantiles) == count:
            raise ValueError("means, deviations and quantiles must be as many as scores")
        if len({len(row) for row in self.quantiles}) != 1 or len(self.quantiles[0]) < 3:
            raise ValueError("quantiles must be three or more, and as many in each band")
        if any(a > b for row in self.quantiles for a, b in zip(row, row[1:], strict=False)):
            raise ValueError("quantiles must not fall")
        if len(self.words) != len(self.factors) or not (_rising(self.scores) and _rising(self.words)):
            raise ValueError("scores and words must rise, and factors be as many as words")
        if min(self.deviations) < 0 or min(self.factors) < 0 or min(self.words) < 0:
            raise ValueError("deviations, factors and words must not be negative")
        if any(len(pair) != 2 or pair[1] < 0 for pair in self.groups.values()):
            raise ValueError("groups must have a shift and a factor each")
        if self.noise is not None and not 0 <= self.noise <= 1:
            raise ValueError(f"noise must be from 0 to 1, found {self.noise}")

    def check(self, coverage: float, judgements: int, group: str | None = None) -> None:
        """Refuse what no interval can be given for: coverage, number of judgements, or group."""
        if not LEAST_COVERAGE <= coverage <= MOST_COVERAGE:
            raise ValueError(
                f"interval must be the share of ratings within it, {LEAST_COVERAGE} to {MOST_COVERAGE}, found {coverage}"
            )
        if judgements < 1:
            raise ValueError(f"judgements must be 1 or more, found {judgements}")
        if judgements > 1 and self.noise is None:
            raise ValueError(
                "the ratings that the intervals were fitted on do not say of how many judgements they are: leave "
                "judgements out, or fit them on ratings with a column n_annotations"
            )
        if group is not None and group not in self.groups:
            raise ValueError(
                f"group must be one that the intervals were fitted on ({', '.join(self.groups) or 'there is none'}), or be "
                f"left out, found {group!r}"
            )

    def __call__(
        self,
        scores: Sequence[float],
        coverage: float = 0.9,
        judgements: int = 1,
        words: Sequence[int] | None = None,
        group: str | None = None,
    ) -> list[tuple[float, float]]:
        """Return the interval of the rating at each score.

        Args:
            scores: of candidates.
            coverage: share of ratings that lie within, such as 0.9.
            judgements: the rating is the mean of so many people's judgements.
            words: how many each candidate has; by default the deviations of candidates of average length are taken.
            group: the candidates', such as a language pair, if it is one of `groups`.

        Raises:
            ValueError: if coverage, judgements or group are none that an interval can be given for.
        """
        import numpy as np

        self.check(coverage, judgements, group)
        shift, factor = self.groups[group] if group is not None else (0.0, 1.0)
        centre, spread = self.prediction(scores, judgements, words)
        ends = np.array([_shortest(row, coverage) for row in self.quantiles])
        sides = [np.interp(scores, self.scores, side) for side in ends.T]
        low, high = (centre + spread * (shift + factor * side) for side in sides)
        return list(zip(low.tolist(), high.tolist(), strict=True))

    def prediction(self, scores: Any, judgements: Any = 1, words: Any = None) -> tuple[Any, Any]:
        """Return the mean of the ratings at each score, and their standard deviation around it, as arrays.

        Args:
            scores: (n,).
            judgements: a number, or (n,).
            words: (n,).
        """
        import numpy as np

        shrinking = np.sqrt(1 - (self.noise or 0.0) * (1 - 1 / np.asarray(judgements, float)))
        spread = np.interp(scores, self.scores, self.deviations) * shrinking
        if words is not None:
            spread = spread * np.interp(np.log1p(words), np.log1p(self.words), self.factors)
        return np.interp(scores, self.scores, self.means), spread


def _rising(values: Sequence[float]) -> bool:
    return all(a < b for a, b in zip(values, values[1:], strict=False))


def _shortest(quantiles: Sequence[float], coverage: float) -> tuple[float, float]:
    """Return the shortest interval between two quantiles that are so far apart in probability."""
    import numpy as np

    places = np.linspace(0, 1, len(quantiles))
    starts = np.append(places[places < 1 - coverage], 1 - coverage)
    low, high = np.interp(starts, places, quantiles), np.interp(starts + coverage, places, quantiles)
    best = int(np.argmin(high - low))
    return float(low[best]), float(high[best])


@dataclass(frozen=True)
class ErrorFree:
    """P(a rater sees no error in the candidate), given its score.

    A rater sees no error if the rating is one that candidates without any error get: candidates that are copies of their
    reference. `rating` is the level that all but `missed` of the ratings of such copies reach.

    Attributes:
        scores: ascending.
        probabilities: 0..1, one a score, never falling; in between they are interpolated.
        rating: from which on a rating counts as free of errors.
        missed: share of the copies' ratings below it.
    """

    scores: tuple[float, ...]
    probabilities: tuple[float, ...]
    rating: float
    missed: float

    def __post_init__(self) -> None:
        Calibration(self.scores, tuple(100 * p for p in self.probabilities), {})  # refuses what is no monotone map
        if not (math.isfinite(self.rating) and 0 <= self.missed < 1):
            raise ValueError("rating must be finite, and missed from 0 to 1")

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """Return the probability at each score."""
        import numpy as np

        return np.interp(scores, self.scores, self.probabilities).tolist() if len(scores) else []


@dataclass(frozen=True)
class Reliability:
    """How far a checkpoint's scores can be trusted, measured on human ratings; what was not fitted is None.

    Attributes:
        hash: of the checkpoint's content that it was fitted for; of no use to another.
        preference, intervals, error_free: see there.
        source: what it was fitted on.
    """

    hash: str
    preference: Preference | None
    intervals: RatingIntervals | None
    error_free: ErrorFree | None
    source: dict[str, Any]

    @classmethod
    def from_folder(cls, folder: Path, content: str) -> Reliability | None:
        """Read the file of a checkpoint's folder.

        Args:
            folder: a checkpoint's.
            content: its content hash.

        Returns:
            None if there is no file, or it was fitted for other weights or settings.

        Raises:
            ValueError: if the file is damaged.
        """
        path = folder / RELIABILITY_FILE
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["hash"] != content:
                return None
            return cls(
                content,
                _read(Preference, found["preference"]),
                _read(RatingIntervals, found["intervals"]),
                _read(ErrorFree, found["error_free"]),
                dict(found["source"]),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{path} cannot be read ({type(error).__name__}: {error}): remove it, or fit it again with "
                "`bleurt-repro calibrate`"
            ) from error

    def write(self, folder: Path) -> None:
        """Write the file of a checkpoint's folder."""
        from bleurt_repro.metric.files.writing import write_text

        write_text(folder / RELIABILITY_FILE, json.dumps(asdict(self), indent=1) + "\n")


def _read(kind: type[Any], found: Any) -> Any:
    """Make one part of a `Reliability` of its JSON object."""
    if found is None:
        return None
    values: dict[str, Any] = {}
    for name in (one.name for one in fields(kind)):
        value = found[name]
        if name == "quantiles":
            values[name] = tuple(_numbers(name, row) for row in value)
        elif name == "groups":
            values[name] = {str(group): _numbers(name, pair) for group, pair in value.items()}
        elif isinstance(value, list):
            values[name] = _numbers(name, value)
        else:
            values[name] = None if value is None else float(value)
    return kind(**values)
