"""What a raw score means to people: a monotone map from scores to percentiles of human ratings, kept in the checkpoint."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
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
