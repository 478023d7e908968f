"""What scores mean to people, fitted on human ratings and stored in the checkpoint's folder.

`Calibration`, in config.json, maps scores to percentiles of human ratings. `Reliability`, in reliability.json, gives the
probability that people prefer one system to another.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bleurt_repro.metric.layout import CONFIG_KEY

CALIBRATION_KEY = "calibration"


@dataclass(frozen=True)
class Calibration:
    """Map scores to the mean percentile, among human ratings, of translations with that score; piecewise linear.

    Attributes:
        scores: raw scores, ascending.
        percentiles: 0 to 100, one per score, never falling. Scores beyond the ends get the percentile of the end.
        source: file, SHA-256 and number of the ratings that it was fitted on.
    """

    scores: tuple[float, ...]
    percentiles: tuple[float, ...]
    source: dict[str, Any]

    def __post_init__(self) -> None:
        if len(self.scores) != len(self.percentiles) or len(self.scores) < 2:
            raise ValueError(
                f"a calibration needs two or more scores and one percentile per score, found {len(self.scores)} scores "
                f"and {len(self.percentiles)} percentiles"
            )
        rising = all(a < b for a, b in zip(self.scores, self.scores[1:], strict=False))
        steady = all(a <= b for a, b in zip(self.percentiles, self.percentiles[1:], strict=False))
        finite = all(map(math.isfinite, self.scores))
        if not (finite and rising and steady and 0 <= self.percentiles[0] and self.percentiles[-1] <= 100):
            raise ValueError(
                "the scores of a calibration must be finite and rising, and its percentiles from 0 to 100 and never falling"
            )

    def __call__(self, scores: Sequence[float]) -> list[float]:
        """Return the percentile of each score."""
        import numpy as np

        if not len(scores):
            return []
        between = np.interp(scores, self.scores, self.percentiles)
        # Rounding may put an interpolated value beyond its two neighbours, above the percentile of a higher score.
        above = np.searchsorted(self.scores, scores)
        last = len(self.percentiles) - 1
        low = np.take(self.percentiles, np.clip(above - 1, 0, last))
        high = np.take(self.percentiles, np.minimum(above, last))
        return np.clip(between, low, high).tolist()

    @classmethod
    def from_config(cls, config: Any) -> Calibration | None:
        """Read the calibration from a `transformers` config; return None if it has none."""
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
        """Return the calibration as an entry of config.json."""
        return {"scores": list(self.scores), "percentiles": list(self.percentiles), "source": self.source}


# Stored beside the weights in a separate file, which changes no score and no content hash.
RELIABILITY_FILE = "reliability.json"
# The standard error of a difference is unreliable with fewer segments, and the fit has not seen smaller test sets.
FEWEST_SEGMENTS = 20


@dataclass(frozen=True)
class Preference:
    """P(people prefer system A to system B), a logistic function of the difference of their mean scores.

    P = 1 / (1 + exp(-slope * d / sqrt(e^2 + metric_error^2))), where d is A's mean score minus B's, and e is the standard
    error of d over the segments. More segments reduce e, which makes P more certain. They do not reduce the error of the
    metric itself, which may favour one type of system.

    Attributes:
        slope: steepness of the logistic function, positive.
        metric_error: standard deviation of the metric's own error of a difference, on the scale of scores, positive.
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
        """Return P(people prefer the first system), from two systems' scores on the same segments.

        Returns:
            the probability; None with fewer than `FEWEST_SEGMENTS` segments.
        """
        import numpy as np

        differences = np.asarray(first, float) - np.asarray(second, float)
        if len(differences) < FEWEST_SEGMENTS:
            return None
        return float(self(differences.mean(), differences.std(ddof=1) / math.sqrt(len(differences))))


@dataclass(frozen=True)
class Reliability:
    """What was fitted on human ratings about comparisons of systems by one checkpoint.

    Attributes:
        hash: content hash of the checkpoint that it was fitted for; it does not apply to other weights.
        preference: P(people prefer a system).
        source: file, SHA-256 and number of the ratings that it was fitted on.
    """

    hash: str
    preference: Preference
    source: dict[str, Any]

    @classmethod
    def from_folder(cls, folder: Path, content: str) -> Reliability | None:
        """Read the reliability file of a checkpoint's folder.

        Args:
            folder: folder of the checkpoint.
            content: content hash of the checkpoint.

        Returns:
            what was fitted; None if there is no file, or if it was fitted for other weights or settings.

        Raises:
            ValueError: if the file is damaged.
        """
        path = folder / RELIABILITY_FILE
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if record["hash"] != content:
                return None
            slope, metric_error = (float(record["preference"][name]) for name in ("slope", "metric_error"))
            return cls(content, Preference(slope, metric_error), dict(record["source"]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"{path} cannot be read ({type(error).__name__}: {error}): remove it, or fit it again with "
                "`bleurt-repro calibrate --reliability`"
            ) from error

    def write(self, folder: Path) -> None:
        """Write the reliability file of a checkpoint's folder."""
        from bleurt_repro.metric.files.writing import write_text

        write_text(folder / RELIABILITY_FILE, json.dumps(asdict(self), indent=1) + "\n")
