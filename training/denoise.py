r"""Find noisy ratings by how far several metrics disagree on an item's rank, and remove or re-score them.

    bleurt-repro data denoise --ratings train.jsonl --checkpoint A --checkpoint B --output denoised.jsonl
    bleurt-repro data denoise --ratings train.jsonl --checkpoint A --scores COMET=comet.txt --scores BLEURT=bleurt.txt \
        --year 2018 --year 2019 --output denoised.jsonl

RoBLEURT, section 2.3: a rating is noisy if the rank of its item within the whole data set varies much over several metrics.
A noisy rating is replaced by the judgement of these metrics, and every year is brought back to mean 0 and standard deviation
1. The paper's metrics are eight RoBLEURT checkpoints, COMET and BLEURT, and 237 thousand of its 247 thousand ratings count
as noisy, nearly all of 2018 and 2019 (section 4.3). That share is the default if scores of COMET and of BLEURT are among the
metrics. With other metrics, which are less reliable than most ratings, a fifth counts as noisy. The paper does not say how
scores of metrics become a rating: here it is the mean of their standardised scores.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.statistics import Values, standardise

if TYPE_CHECKING:
    from bleurt_repro.training.metrics.rows import Row

Rating = dict[str, Any]

METHODS = ("rescore", "remove", "mark")
WHOLE, YEAR = "dataset", "year"
PAPER_SHARE = 237 / 247  # RoBLEURT, section 4.3
SHARE = 0.2  # where the paper's metrics are not available
PAPER_METRICS = ("comet", "bleurt")  # metrics of the paper that are not trained here, by the names of their scores
# Patterns of the ratings and of the record that an earlier run wrote.
OUR_ROWS = re.compile(rb'\{.*"rank_variance": [^,]+, "noisy": (true|false)')
OUR_RECORD = re.compile(rb'\{\s*"kind": "denoise"')


@dataclass(frozen=True)
class Denoised:
    """Denoised ratings.

    Attributes:
        rows: ratings with original_score, rank_variance and noisy beside score.
        counts: number of "ratings", of "noisy" and of "kept" ones.
        by_year: the same counts for each year.
    """

    rows: list[Rating]
    counts: dict[str, int]
    by_year: dict[str, dict[str, int]]


def rank_variance(scores: Values) -> Values:
    """Compute the variance of each item's rank over metrics.

    Args:
        scores: scores, shape (metrics, items); NaN where a metric has none.

    Returns:
        variances, shape (items,). Ranks go from 0 to 1 among the items that a metric has scored; the variance is 0 for an
        item that fewer than two metrics have scored.
    """
    from scipy.stats import rankdata

    ranks = np.full_like(scores, np.nan)
    for i, values in enumerate(scores):
        is_scored = np.isfinite(values)
        ranks[i, is_scored] = (rankdata(values[is_scored]) - 1) / max(is_scored.sum() - 1, 1)
    counts = np.isfinite(ranks).sum(axis=0)
    return np.where(counts > 1, np.nanvar(ranks, axis=0), 0.0)


def denoise(
    ratings: Sequence[Rating],
    scores: Sequence[Sequence[float]] | Values,
    *,
    share: float = SHARE,
    method: str = "rescore",
    years: Sequence[int] = (),
    within: str = WHOLE,
) -> Denoised:
    """Mark the noisiest ratings, remove or re-score them, and standardise each year again.

    Args:
        ratings: ratings with score and year; those without a year form a group.
        scores: scores of the metrics, shape (metrics, ratings); NaN where a metric has none.
        share: share of the ratings that is noisy: of all ratings, or of those of each year if `within` is "year".
        method: "rescore" (replace noisy ratings by the mean of the metrics' standardised scores), "remove", or "mark" only.
        years: years in which to look for noise; all by default.
        within: "dataset" to rank an item among all ratings, "year" to rank it among those of its year.

    Raises:
        ValueError: if a setting is out of range, the scores do not fit, or a metric's scores of a year are all equal.
    """
    table = _check(ratings, scores, share, method, within)
    indices_by_year: dict[Any, list[int]] = defaultdict(list)
    for i, rating in enumerate(ratings):
        indices_by_year[rating.get("year")].append(i)
    variances, noisy = _find_noise(table, indices_by_year, share, years, within)
    rows: list[Rating | None] = [None] * len(ratings)
    by_year: dict[str, dict[str, int]] = {}
    for year, indices in sorted(indices_by_year.items(), key=lambda group: str(group[0])):
        year_ratings = [ratings[i] for i in indices]
        year_rows = _denoise_year(year_ratings, table[:, indices], variances[indices], noisy[indices], method)
        for i, row in zip(indices, year_rows, strict=True):
            rows[i] = row
        counts = {"ratings": len(year_rows), "noisy": int(noisy[indices].sum())}
        by_year[str(year)] = {**counts, "kept": len(year_rows) - year_rows.count(None)}
    counts = {name: sum(year[name] for year in by_year.values()) for name in ("ratings", "noisy", "kept")}
    return Denoised([row for row in rows if row is not None], counts, by_year)


def _check(ratings: Sequence[Rating], scores: Any, share: float, method: str, within: str) -> Values:
    table = np.asarray(scores, dtype=float)
    if not 0 < share < 1:
        raise ValueError(f"the noisy share must be above 0 and below 1, found {share}")
    if method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, found {method!r}")
    if within not in (WHOLE, YEAR):
        raise ValueError(f"ranks must be counted within {WHOLE} or {YEAR}, found {within!r}")
    if table.ndim != 2 or len(table) < 2 or table.shape[1] != len(ratings):
        raise ValueError(
            f"denoising takes scores of at least two metrics for each of the {len(ratings)} ratings, found {table.shape}"
        )
    return table


def _find_noise(
    table: Values, indices_by_year: Mapping[Any, list[int]], share: float, years: Sequence[int], within: str
) -> tuple[Values, NDArray[np.bool_]]:
    """Return the variance of each rating's rank, and whether it is among the largest."""
    count = table.shape[1]
    variances, noisy = np.zeros(count), np.zeros(count, dtype=bool)
    suspects = [indices for year, indices in indices_by_year.items() if not years or year in years]
    # Groups of ratings, and how many of each are noisy.
    if within == WHOLE:
        variances = rank_variance(table)
        groups = [(np.sort(np.concatenate([[], *suspects])).astype(int), round(share * count))]
    else:
        for indices in indices_by_year.values():
            variances[indices] = rank_variance(table[:, indices])
        groups = [(np.array(indices), round(share * len(indices))) for indices in suspects]
    for group, number in groups:
        noisy[group[np.argsort(-variances[group], kind="stable")][:number]] = True
    return variances, noisy


def _denoise_year(
    ratings: Sequence[Rating], scores: Values, variances: Values, noisy: NDArray[np.bool_], method: str
) -> list[Rating | None]:
    """Return the rows of a year, None for a removed rating."""
    is_kept = ~noisy if method == "remove" else np.ones(len(ratings), dtype=bool)
    # Human ratings and scores of metrics are brought to one scale, then what is kept is standardised.
    values = standardise(np.array([rating["score"] for rating in ratings], dtype=float), constant=1.0)
    if method == "rescore" and noisy.any():
        judgements = _mean_standardised(scores)
        values = np.where(noisy & np.isfinite(judgements), judgements, values)
    if is_kept.any():
        values = standardise(values, values[is_kept], constant=1.0)
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
        for rating, value, variance, is_noisy, keep in zip(ratings, values, variances, noisy, is_kept, strict=True)
    ]


def _mean_standardised(scores: Values) -> Values:
    """Return the mean of the metrics' standardised scores, shape (ratings,); NaN where no metric has a score."""
    standardised = []
    for values in scores:
        is_scored = np.isfinite(values)
        if not is_scored.any():  # a file of scores may not have all years
            continue
        if np.ptp(values[is_scored]) == 0:
            raise ValueError("a metric gives all ratings of a year the same score: it cannot re-score them")
        standardised.append(standardise(values, values[is_scored]))
    return np.nanmean(standardised, axis=0)


def default_share(names: Sequence[str]) -> float:
    """Return the share of ratings that counts as noisy by default: the paper's if `PAPER_METRICS` are among the metrics.

    Args:
        names: names of the metrics.
    """
    has_all = all(any(metric in name.lower() for name in names) for metric in PAPER_METRICS)
    return PAPER_SHARE if has_all else SHARE


def denoise_file(
    ratings: str | Path,
    output: str | Path,
    *,
    checkpoints: Sequence[str] = (),
    score_files: Sequence[str] = (),
    share: float | None = None,
    method: str = "rescore",
    years: Sequence[int] = (),
    within: str = WHOLE,
    device: str | None = None,
    overwrite: bool = False,
) -> Denoised:
    """Score a file of ratings with several metrics, denoise it, and write JSON lines and a record beside them.

    Args:
        ratings: file of ratings, as `rating_records` takes it.
        output: .jsonl file to write; OUTPUT.json beside it records how it was made.
        checkpoints: folders, embedded names or Hub ids.
        score_files: scores of other metrics, each as `NAME=FILE`; see `read_score_file`.
        share: share of noisy ratings, as `denoise` takes it; by default `default_share` of the names in `score_files`.
        method, years, within: settings, as `denoise` takes them.
        device: device to score on; the best available by default.
        overwrite: whether to replace files that this package did not write.

    Raises:
        ValueError: if there are fewer than two metrics, an output is an input or was not written by this package, or as
            `denoise` does.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.writing import validate_output, write_json_lines
    from bleurt_repro.metric.loading.checksums import file_records
    from bleurt_repro.training.results import Result

    if len(checkpoints) + len(score_files) < 2:
        raise ValueError("denoising needs at least two metrics: name more with --checkpoint or --scores")
    if Path(output).suffix != ".jsonl":
        raise ValueError(f"the output must be a .jsonl file, found {output}")
    inputs = [str(ratings), *(argument.partition("=")[2] for argument in score_files)]
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    path = validate_output(str(output), inputs, OUR_ROWS, overwrite)
    record_path = validate_output(f"{output}.json", inputs, OUR_RECORD, overwrite)
    if share is None:
        share = default_share([argument.partition("=")[0] for argument in score_files])
    settings = {"share": share, "method": method, "years": list(years), "within": within}
    rows = rating_records(ratings)
    metrics = _score(rows, checkpoints, score_files, device)
    vectors = [metric.vectors[0] for metric in metrics]
    denoised = denoise(rows, np.array(vectors), share=share, method=method, years=years, within=within)
    record = Result(
        kind="denoise",
        command=_command(ratings, checkpoints, score_files, settings),
        signatures={metric.name: metric.signature for metric in metrics},
        data=file_records([ratings])[0],
        figures={**settings, "counts": denoised.counts, "by_year": denoised.by_year},
    )
    record_path.unlink(missing_ok=True)  # so that a stop between the two writes leaves no record of other rows
    write_json_lines(path, denoised.rows)
    record.write(record_path)
    return denoised


def _command(
    ratings: str | Path, checkpoints: Sequence[str], score_files: Sequence[str], settings: Mapping[str, Any]
) -> str:
    from bleurt_repro.training.metrics.options import shorten

    """Return the command that makes the file again, with paths without their folders."""
    arguments = [f"bleurt-repro data denoise --ratings {shorten(ratings)}"]
    arguments += [f"--checkpoint {shorten(name)}" for name in checkpoints]
    arguments += [f"--scores {shorten(argument)}" for argument in score_files]
    arguments += [f"--year {year}" for year in settings["years"]]
    arguments += [f"--{name} {settings[name]}" for name in ("share", "method", "within")]
    return " ".join([*arguments, "--output OUT.jsonl"])


def _score(
    rows: Sequence[Mapping[str, Any]], checkpoints: Sequence[str], score_files: Sequence[str], device: str | None
) -> list[Row]:
    import tempfile

    import pandas

    from bleurt_repro.training.metrics.cells import Cells
    from bleurt_repro.training.metrics.options import MetricOptions
    from bleurt_repro.training.metrics.rows import score_metrics
    from bleurt_repro.training.metrics.samples import rating_texts

    texts = rating_texts(pandas.DataFrame(rows))
    metrics = MetricOptions(checkpoint=[*checkpoints], score_files=[*score_files])
    options = {} if device is None else {"device": device}
    with tempfile.TemporaryDirectory() as folder:
        return score_metrics(texts, Cells(folder), metrics, options)
