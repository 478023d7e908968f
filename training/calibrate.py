"""Fit a checkpoint's calibration on human ratings it was not trained on, and record it in the checkpoint.

bleurt-repro calibrate FOLDER --ratings validation.jsonl

How far scores can be trusted is fitted by `training/reliability.py`, by the same command.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import CALIBRATION_KEY, Calibration
from bleurt_repro.metric.layout import CONFIG_KEY

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer

Values = NDArray[np.float64]

# Points of the map: one a hundredth of the scores.
POINTS = 101
DECIMALS = 4


def fit(scores: np.ndarray, ratings: np.ndarray, source: dict[str, Any]) -> Calibration:
    """Fit by isotonic regression the mean percentile of the ratings at each score.

    Args:
        scores: of a checkpoint, (n,).
        ratings: of people, (n,).
        source: to record with it.

    Raises:
        ValueError: if there are fewer than 100 ratings, or one side does not vary.
    """
    from scipy.stats import rankdata

    if len(ratings) < 100 or np.ptp(ratings) == 0 or np.ptp(scores) == 0:
        raise ValueError(
            f"a calibration needs at least 100 ratings, with different ratings and scores among them; found "
            f"{len(ratings)}, {len(np.unique(ratings))} and {len(np.unique(scores))} different"
        )
    percentiles = 100 * (rankdata(ratings) - 0.5) / len(ratings)
    different, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    fitted = never_falling(np.bincount(place, percentiles) / counts, counts)
    # One of a hundred scores each, and the means of what was fitted between them.
    points = np.unique(np.round(np.quantile(different, np.linspace(0, 1, POINTS)), DECIMALS))
    values = np.maximum.accumulate(np.round(np.interp(points, different, fitted), DECIMALS))
    return Calibration(tuple(points.tolist()), tuple(values.tolist()), source)


def calibrate(checkpoint: str | Path, ratings: str | Path) -> Calibration:
    """Score ratings with a checkpoint, fit its calibration, and write it to the checkpoint's config.json.

    Args:
        checkpoint: a folder; it is changed, and with it the hash in its signature.
        ratings: file of reference, candidate, score (and source), best of texts that were not trained on.

    Returns:
        the calibration.

    Raises:
        FileNotFoundError: if the checkpoint is no folder.
        ValueError: as `fit`, or as the ratings' reader.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.loading.save import write_config
    from bleurt_repro.training.results import fingerprint

    scorer = opened(checkpoint)
    config_file = Path(checkpoint) / "config.json"
    rows = rating_records(str(ratings), (*scorer.layout.inputs, "score"))
    scores = scorer.score_rows(rows)
    source = {**fingerprint([str(ratings)])[0], "ratings": len(rows)}
    calibration = fit(np.array(scores), np.array([row["score"] for row in rows], float), source)
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config.setdefault(CONFIG_KEY, scorer.layout.to_config())[CALIBRATION_KEY] = calibration.to_config()
    write_config(config_file.parent, config)
    return calibration


def opened(checkpoint: str | Path, **options: Any) -> BleurtScorer:
    """Open the scorer of a folder that is to be changed, be it named as an embedded checkpoint is.

    Args:
        checkpoint: the folder.
        options: further arguments of `BleurtScorer`.

    Raises:
        FileNotFoundError: if it is no checkpoint's folder.
    """
    from bleurt_repro.metric.scorer import BleurtScorer

    if not (config_file := Path(checkpoint) / "config.json").is_file():
        raise FileNotFoundError(f"{checkpoint} must be a checkpoint's folder: there is no {config_file}")
    return BleurtScorer(str(Path(checkpoint).resolve()), **options)


def never_falling(values: Values, weights: NDArray[Any]) -> Values:
    """Fit values that never fall to those given, by isotonic regression."""
    from scipy.optimize import isotonic_regression

    return isotonic_regression(values, weights=weights).x
