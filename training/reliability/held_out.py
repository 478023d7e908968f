"""Fit P(people prefer a system) for a checkpoint, and test it on ratings that the fit has not seen.

bleurt-repro calibrate FOLDER --reliability held-out.jsonl --report reliability.json
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import Preference, Reliability
from bleurt_repro.metric.statistics import Values
from bleurt_repro.training.calibrate import open_folder
from bleurt_repro.training.reliability.fit import Comparisons, compare_systems, fit_preference, read_rated_systems
from bleurt_repro.training.reliability.report import DIFFERENCES, fitted_figures

if TYPE_CHECKING:
    from bleurt_repro.training.results import Result

# Bins of probabilities of a reliability diagram.
BINS = 10


def measure_reliability(
    checkpoint: str | Path,
    ratings: str | Path,
    *,
    tests: Sequence[str | Path] = (),
    seed: int = 0,
    dtype: str | None = None,
    cache: str | os.PathLike[str] | None = None,
) -> Result:
    """Fit P(people prefer a system) on ratings, test it, and write it to the checkpoint's folder.

    It is tested on the same file, each group (language pair and year) by a fit on all others, and on further files.

    Args:
        checkpoint: folder; it gets a reliability.json, which changes neither scores nor signature.
        ratings: file of reference, candidate, score, system (and source, lp, year), best of texts that the checkpoint was
            not trained on.
        tests: further files of ratings, to test on.
        seed: seed of the samples of segments.
        dtype: precision in which the checkpoint scores; by default float32.
        cache: folder of scores of earlier runs.

    Returns:
        the figures.

    Raises:
        FileNotFoundError: if the checkpoint is no folder.
        ValueError: if there are too few systems to fit or to test on, or as the reader of ratings does.
    """
    from bleurt_repro.metric.loading.checksums import content_hash, file_records
    from bleurt_repro.training.results import Result

    scorer = open_folder(checkpoint, dtype=dtype, cache=cache)
    files = file_records([str(ratings), *map(str, tests)])
    rated = read_rated_systems(ratings, scorer)
    comparisons = compare_systems(rated, seed)
    try:
        preference = fit_preference(comparisons)
    except ValueError as error:
        raise ValueError(f"{ratings}: {error}") from error
    figures: dict[str, Any] = {}
    probabilities = predict_left_out(comparisons)
    if (predicted := np.isfinite(probabilities)).any():
        figures[f"{files[0]['file']}, each group by fits on the others"] = {
            "ratings": len(rated.scores),
            "preference": preference_figures(comparisons.subset(predicted), probabilities[predicted]),
        }
    for path, file in zip(tests, files[1:], strict=True):
        test = read_rated_systems(path, scorer)
        test_comparisons = compare_systems(test, seed)
        if not len(test_comparisons.pairs):
            raise ValueError(f"{path}: no two systems to compare: give ratings with a column system")
        probabilities = preference(test_comparisons.differences, test_comparisons.errors)
        figures[file["file"]] = {
            "ratings": len(test.scores),
            "preference": preference_figures(test_comparisons, probabilities),
        }
    source = {**files[0], "ratings": len(rated.scores)}
    Reliability(content_hash(Path(checkpoint)), preference, source).write(Path(checkpoint))
    name = Path(checkpoint).resolve().name
    options = [f"--test {' '.join(file['file'] for file in files[1:])}"] if tests else []
    command = ["bleurt-repro calibrate", name, "--reliability", files[0]["file"], *options, f"--seed {seed}"]
    return Result(
        kind="reliability",
        command=" ".join([*command, "--report OUT"]),
        seed=seed,
        signatures={name: scorer.signature},
        data=[source, *files[1:]],
        figures={"fitted": {"preference": fitted_figures(preference, comparisons)}, "tests": figures},
    )


def predict_left_out(comparisons: Comparisons) -> Values:
    """Return P(people prefer the first system) of each comparison, by a fit on all other groups.

    Returns:
        (comparisons,); NaN where the other groups have too few systems for a fit.
    """
    probabilities = np.full(len(comparisons.pairs), np.nan)
    for group in np.unique(comparisons.groups):
        mask = comparisons.groups == group
        try:
            preference: Preference = fit_preference(comparisons.subset(~mask))
        except ValueError:
            continue
        probabilities[mask] = preference(comparisons.differences[mask], comparisons.errors[mask])
    return probabilities


def preference_figures(comparisons: Comparisons, preferred: Values) -> dict[str, Any]:
    """Compare predicted probabilities with people's preferences, and with 1 - p of the paired test.

    Args:
        comparisons: comparisons of systems.
        preferred: predicted P(people prefer the first system), (comparisons,).
    """
    # Each comparison is counted from the side of the system that scores higher.
    ahead = comparisons.differences >= 0
    p = np.where(ahead, preferred, 1 - preferred)
    outcomes = (ahead == comparisons.preferred).astype(float)
    p_of_test = 1 - comparisons.p_values
    weights = comparisons.weights

    def figures_of(mask: NDArray[np.bool_], bins: bool = False) -> dict[str, Any]:
        figures = _probability_figures(p[mask], outcomes[mask], weights[mask], bins)
        test = _probability_figures(p_of_test[mask], outcomes[mask], weights[mask], bins=False)
        pairs = len(np.unique(comparisons.pairs[mask]))
        return {"pairs": pairs, **figures, "ece_of_test": test["ece"], "brier_of_test": test["brier"]}

    whole = comparisons.sizes == 0
    gaps = np.abs(comparisons.differences)
    rows = []
    for least, most in zip(DIFFERENCES, (*DIFFERENCES[1:], math.inf), strict=True):
        mask = whole & (gaps >= least) & (gaps < most)
        agree, predicted = (float(values[mask].mean()) if mask.any() else None for values in (outcomes, p))
        rows.append({"from": least, "pairs": int(mask.sum()), "agree": agree, "predicted": predicted})
    return {
        **figures_of(np.ones(len(p), bool), bins=True),
        "all_segments": figures_of(whole, bins=True),
        "fewest_segments": int(comparisons.segments.min()),
        "most_segments": int(comparisons.segments.max()),
        "by_size": {
            ("all" if size == 0 else str(size)): figures_of(comparisons.sizes == size)
            for size in np.unique(comparisons.sizes)
        },
        "by_group": {str(group): figures_of(comparisons.groups == group) for group in np.unique(comparisons.groups)},
        "by_difference": rows,
    }


def _probability_figures(p: Values, outcomes: Values, weights: Values, bins: bool = True) -> dict[str, Any]:
    """Return expected calibration error, Brier score and the bins of probabilities against outcomes of 0 and 1."""
    bin_of = np.minimum((p * BINS).astype(int), BINS - 1)
    rows = []
    for number in range(BINS):
        mask = bin_of == number
        if mask.any():
            predicted, observed = (float(np.average(values[mask], weights=weights[mask])) for values in (p, outcomes))
            rows.append(
                {
                    "from": number / BINS,
                    "to": (number + 1) / BINS,
                    "n": int(mask.sum()),
                    "part": float(weights[mask].sum() / weights.sum()),
                    "predicted": predicted,
                    "observed": observed,
                }
            )
    return {
        "n": len(p),
        "ece": sum(row["part"] * abs(row["predicted"] - row["observed"]) for row in rows),
        "brier": float(np.average((p - outcomes) ** 2, weights=weights)),
        "observed": float(np.average(outcomes, weights=weights)),
        **({"bins": rows} if bins else {}),
    }
