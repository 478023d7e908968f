"""Find noisy ratings by how far several metrics disagree on an item's rank, and remove or re-score them.

    bleurt-repro data denoise --ratings train.jsonl --checkpoint A --checkpoint B --output denoised.jsonl

RoBLEURT, section 2.3: the variance of an item's rank over several metrics marks it noisy; its rating gives way to those
metrics' own, and every year is brought back to mean 0 and standard deviation 1. The paper states neither how large a
variance is too large nor how metrics' scores become one: here the share with the largest variance of its year is
noisy, and the mean of the standardised scores is the new rating.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Rating = dict[str, Any]

METHODS = ("rescore", "remove", "mark")
SHARE = 0.2  # not stated in the paper


@dataclass(frozen=True)
class Denoised:
    """Ratings with what was found out about them.

    Attributes:
        rows: with original_score, rank_variance and noisy beside score.
        counts: "ratings", "noisy" and "kept".
        by_year: the same for each year.
    """

    rows: list[Rating]
    counts: dict[str, int]
    by_year: dict[str, dict[str, int]]


def rank_variance(scores: Values) -> Values:
    """Give the variance of an item's rank over metrics.

    Args:
        scores: (metrics, items); NaN where a metric has none.

    Returns:
        (items,); ranks are counted from 0 to 1 among the items that a metric has scored. 0 where only one has.
    """
    from scipy.stats import rankdata

    ranks = np.full_like(scores, np.nan)
    for row, own in enumerate(scores):
        known = np.isfinite(own)
        ranks[row, known] = (rankdata(own[known]) - 1) / max(known.sum() - 1, 1)
    counts = np.isfinite(ranks).sum(axis=0)
    return np.where(counts > 1, np.nanvar(ranks, axis=0), 0.0)


def denoise(
    ratings: Sequence[Rating],
    scores: Sequence[Sequence[float]] | Values,
    *,
    share: float = SHARE,
    method: str = "rescore",
    years: Sequence[int] = (),
) -> Denoised:
    """Mark the noisiest ratings of each year, remove or re-score them, and standardise each year anew.

    Args:
        ratings: with score and year; those without a year are a group of their own.
        scores: of each metric, (metrics, ratings); NaN where a metric has none.
        share: of each year's ratings that is noisy.
        method: "rescore" (the mean of the metrics' standardised scores), "remove", or "mark" alone.
        years: where to look for noise; everywhere by default.

    Raises:
        ValueError: if a setting is out of range, scores do not fit, or a metric's of a year are all equal.
    """
    table = _checked(ratings, scores, share, method)
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, rating in enumerate(ratings):
        groups[rating.get("year")].append(place)
    rows: list[Rating | None] = [None] * len(ratings)
    by_year: dict[str, dict[str, int]] = {}
    for year, places in sorted(groups.items(), key=lambda group: str(group[0])):
        wanted = share if not years or year in years else 0.0
        own = _denoise_year([ratings[i] for i in places], table[:, places], wanted, method)
        for place, row in zip(places, own, strict=True):
            rows[place] = row
        noisy = sum(row["noisy"] for row in own if row is not None) if method != "remove" else own.count(None)
        kept = len(own) - own.count(None)
        by_year[str(year)] = {"ratings": len(own), "noisy": noisy, "kept": kept}
    counts = {name: sum(year[name] for year in by_year.values()) for name in ("ratings", "noisy", "kept")}
    return Denoised([row for row in rows if row is not None], counts, by_year)


def _checked(ratings: Sequence[Rating], scores: Any, share: float, method: str) -> Values:
    table = np.asarray(scores, dtype=float)
    if not 0 < share < 1:
        raise ValueError(f"the noisy share must be above 0 and below 1, found {share}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, found {method!r}")
    if table.ndim != 2 or len(table) < 2 or table.shape[1] != len(ratings):
        raise ValueError(
            f"denoising takes scores of at least two metrics for each of the {len(ratings)} ratings, found {table.shape}"
        )
    return table


def _denoise_year(ratings: Sequence[Rating], scores: Values, share: float, method: str) -> list[Rating | None]:
    """Give the year's rows, None for those removed."""
    variances = rank_variance(scores)
    order = np.argsort(-variances, kind="stable")
    noisy = np.zeros(len(ratings), dtype=bool)
    noisy[order[: round(share * len(ratings))]] = True
    kept = ~noisy if method == "remove" else np.ones(len(ratings), dtype=bool)
    values = standardised(np.array([rating["score"] for rating in ratings], dtype=float), np.ones_like(kept))
    if method == "rescore" and noisy.any():
        judged = _mean_standardised(scores)
        values = np.where(noisy & np.isfinite(judged), judged, values)
    values = standardised(values, kept)
    return [
        {
            **rating,
            "score": float(value),
            "original_score": rating["score"],
            "rank_variance": float(variance),
            "noisy": bool(is_noisy),
        }
        if keep
        else None
        for rating, value, variance, is_noisy, keep in zip(ratings, values, variances, noisy, kept, strict=True)
    ]


def _mean_standardised(scores: Values) -> Values:
    rows = []
    for own in scores:
        known = np.isfinite(own)
        if not known.any():  # a file of scores may not have all years
            continue
        if np.ptp(own[known]) == 0:
            raise ValueError("a metric gives all ratings of a year the same score: it cannot re-score them")
        rows.append(standardised(own, known))
    return np.nanmean(rows, axis=0)


def standardised(values: Values, among: NDArray[np.bool_]) -> Values:
    """Bring values to mean 0 and standard deviation 1 among some of them; equal ones become 0."""
    deviation = values[among].std() if among.any() else 0.0
    centre = values[among].mean() if among.any() else 0.0
    return (values - centre) / (deviation or 1.0)


def denoise_file(
    ratings: str | Path,
    output: str | Path,
    *,
    checkpoints: Sequence[str] = (),
    score_files: Sequence[str] = (),
    share: float = SHARE,
    method: str = "rescore",
    years: Sequence[int] = (),
    device: str | None = None,
) -> Denoised:
    """Score a file of ratings with several metrics, denoise it, and write JSON lines and a record beside them.

    Args:
        ratings: as `rating_records` takes it.
        output: a .jsonl file; OUTPUT.json beside it says how it was made.
        checkpoints: as `BleurtScorer` takes them.
        score_files: `NAME=FILE`, scores worked out elsewhere, as `bleurt-repro experiment wmt` takes them.
        share, method, years: as in `denoise`.
        device: where to score.

    Raises:
        ValueError: if there are fewer than two metrics, or as `denoise`.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.writing import write_json_lines, write_text
    from bleurt_repro.training.results import fingerprint

    if len(checkpoints) + len(score_files) < 2:
        raise ValueError("denoising takes at least two metrics: name more --checkpoint or --scores")
    if Path(output).suffix != ".jsonl":
        raise ValueError(f"the output must be a .jsonl file, found {output}")
    rows = rating_records(ratings)
    metrics = _metrics(rows, checkpoints, score_files, device)
    done = denoise(rows, [metric.vectors[0] for metric in metrics], share=share, method=method, years=years)
    record = {
        "ratings": fingerprint([str(ratings)])[0],
        "metrics": [{"name": metric.name, "signature": metric.signature} for metric in metrics],
        "share": share,
        "method": method,
        "years": list(years) or "all",
        "counts": done.counts,
        "by_year": done.by_year,
    }
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    write_json_lines(Path(output), done.rows)
    write_text(Path(f"{output}.json"), json.dumps(record, indent=2) + "\n")
    return done


def _metrics(
    rows: Sequence[Mapping[str, Any]], checkpoints: Sequence[str], score_files: Sequence[str], device: str | None
) -> list[Any]:
    import tempfile

    import pandas

    from bleurt_repro.training.experiments.measure import rating_texts
    from bleurt_repro.training.experiments.metric_rows import all_rows
    from bleurt_repro.training.experiments.options import Cells, MetricOptions

    texts = rating_texts(pandas.DataFrame(rows))
    metrics = MetricOptions(checkpoint=[*checkpoints], score_files=[*score_files])
    options = {} if device is None else {"device": device}
    with tempfile.TemporaryDirectory() as folder:
        return all_rows(texts, Cells(folder), metrics, options)
