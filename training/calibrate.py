"""Fit a checkpoint's calibration on human ratings that it was not trained on, and record it in the checkpoint.

    bleurt-repro calibrate FOLDER --ratings validation.jsonl

With --reliability the same command fits P(people prefer a system); see `training/reliability/held_out.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bleurt_repro.metric.calibration import CALIBRATION_KEY, Calibration
from bleurt_repro.metric.layout import CONFIG_KEY

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer

# Points of the map: the percentiles of the scores.
POINTS = 101
DECIMALS = 4


def fit(scores: np.ndarray, ratings: np.ndarray, source: dict[str, Any]) -> Calibration:
    """Fit the mean percentile of the ratings at each score, by isotonic regression.

    Args:
        scores: scores of a checkpoint, (n,).
        ratings: human ratings, (n,).
        source: record of the ratings, stored with the calibration.

    Raises:
        ValueError: if there are fewer than 100 ratings, or if scores or ratings do not vary.
    """
    from scipy.optimize import isotonic_regression
    from scipy.stats import rankdata

    if len(ratings) < 100 or np.ptp(ratings) == 0 or np.ptp(scores) == 0:
        raise ValueError(
            f"a calibration needs at least 100 ratings, with different ratings and scores among them; found "
            f"{len(ratings)} ratings, {len(np.unique(ratings))} of them different, and {len(np.unique(scores))} "
            "different scores"
        )
    percentiles = 100 * (rankdata(ratings) - 0.5) / len(ratings)
    different, index, counts = np.unique(scores, return_inverse=True, return_counts=True)
    fitted = isotonic_regression(np.bincount(index, percentiles) / counts, weights=counts).x
    # The fit has one value per different score: keep a hundred of them.
    points = np.unique(np.round(np.quantile(different, np.linspace(0, 1, POINTS)), DECIMALS))
    values = np.maximum.accumulate(np.round(np.interp(points, different, fitted), DECIMALS))
    return Calibration(tuple(points.tolist()), tuple(values.tolist()), source)


def calibrate(checkpoint: str | Path, ratings: str | Path, dtype: str | None = None) -> Calibration:
    """Score ratings with a checkpoint, fit its calibration, and write it to the checkpoint's config.json.

    Args:
        checkpoint: folder; its config.json is changed, and with it the hash in its signature.
        ratings: file of reference, candidate, score (and source), best of texts that the checkpoint was not trained on.
        dtype: precision in which the checkpoint scores; by default float32.

    Returns:
        the calibration.

    Raises:
        FileNotFoundError: if the checkpoint is no folder.
        ValueError: as `fit` and the reader of ratings do.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.loading.checksums import file_records
    from bleurt_repro.metric.loading.save import write_config

    scorer = open_folder(checkpoint, dtype=dtype)
    config_file = Path(checkpoint) / "config.json"
    rows = rating_records(str(ratings), (*scorer.layout.required, "score"))
    scores = scorer.score_rows(rows)
    source = {**file_records([str(ratings)])[0], "ratings": len(rows)}
    calibration = fit(np.array(scores), np.array([row["score"] for row in rows], float), source)
    config = json.loads(config_file.read_text(encoding="utf-8"))
    config.setdefault(CONFIG_KEY, scorer.layout.to_config())[CALIBRATION_KEY] = calibration.to_config()
    write_config(config_file.parent, config)
    return calibration


def open_folder(checkpoint: str | Path, **options: Any) -> BleurtScorer:
    """Open a checkpoint that is going to be changed: always the folder, even if an embedded checkpoint has the same name.

    Args:
        checkpoint: folder of the checkpoint.
        options: further arguments of `BleurtScorer`.

    Raises:
        FileNotFoundError: if it is not the folder of a checkpoint.
    """
    from bleurt_repro.metric.scorer import BleurtScorer

    if not (config_file := Path(checkpoint) / "config.json").is_file():
        raise FileNotFoundError(f"{checkpoint} must be the folder of a checkpoint, but there is no {config_file}")
    return BleurtScorer(str(Path(checkpoint).resolve()), **options)
