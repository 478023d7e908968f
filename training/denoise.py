r"""Find noisy ratings by how far several metrics disagree on an item's rank, and remove or re-score them.

    bleurt-repro data denoise --ratings train.jsonl --checkpoint A --checkpoint B --output denoised.jsonl
    bleurt-repro data denoise --ratings train.jsonl --checkpoint A --scores COMET=comet.txt --scores BLEURT=bleurt.txt \
        --year 2018 --year 2019 --output denoised.jsonl

RoBLEURT, section 2.3: the variance of an item's rank within the whole data set over several metrics marks it noisy; its
rating is replaced by those metrics' own, and every year is brought back to mean 0 and standard deviation 1. The paper's
metrics are eight RoBLEURT checkpoints, COMET and BLEURT, and 237 thousand of its 247 thousand ratings count as noisy, nearly
all of 2018 and 2019 (section 4.3): that is the default where scores of COMET and of BLEURT are among the metrics. With other
metrics, which are worth less than most ratings, a fifth is. How metrics' scores become one rating the paper does not state:
here it is the mean of their standardised scores.
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
# The metrics from outside that the paper uses, by the name of their scores.
PAPER_METRICS = ("comet", "bleurt")
# How the last line of the ratings that an earlier run wrote looks, and how their record begins.
OUR_ROWS = re.compile(rb'\{.*"rank_variance": [^,]+, "noisy": (true|false)')
OUR_RECORD = re.compile(rb'\{\s*"kind": "denoise"')


@dataclass(frozen=True)
class Denoised:
    """Ratings, and which of them are noisy.

    Attributes:
        rows: with original_score, rank_variance and noisy beside score.
        counts: "ratings", "noisy" and "kept".
        by_year: the same for each year.
    """

    rows: list[Rating]
    counts: dict[str, int]
    by_year: dict[str, dict[str, int]]


def rank_variance(scores: Values) -> Values:
    """Compute the variance of an item's rank over metrics.

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
    within: str = WHOLE,
) -> Denoised:
    """Mark the noisiest ratings, remove or re-score them, and standardise each year anew.

    Args:
        ratings: with score and year; those without a year are a group of their own.
        scores: of each metric, (metrics, ratings); NaN where a metric has none.
        share: of the ratings that is noisy: of all of them, or, if `within` is "year", of each year's.
        method: "rescore" (the mean of the metrics' standardised scores), "remove", or "mark" alone.
        years: where to look for noise; everywhere by default.
        within: "dataset" ranks an item among all ratings, "year" among those of its year.

    Raises:
        ValueError: if a setting is out of range, scores do not fit, or a metric's of a year are all equal.
    """
    table = _checked(ratings, scores, share, method, within)
    groups: dict[Any, list[int]] = defaultdict(list)
    for place, rating in enumerate(ratings):
        groups[rating.get("year")].append(place)
    variances, noisy = _find_noise(table, groups, share, years, within)
    rows: list[Rating | None] = [None] * len(ratings)
    by_year: dict[str, dict[str, int]] = {}
    for year, places in sorted(groups.items(), key=lambda group: str(group[0])):
        own = [ratings[place] for place in places]
        done = _treat_year(own, table[:, places], variances[places], noisy[places], method)
        for place, row in zip(places, done, strict=True):
            rows[place] = row
        kept = len(done) - done.count(None)
        by_year[str(year)] = {"ratings": len(done), "noisy": int(noisy[places].sum()), "kept": kept}
    counts = {name: sum(year[name] for year in by_year.values()) for name in ("ratings", "noisy", "kept")}
    return Denoised([row for row in rows if row is not None], counts, by_year)


def _checked(ratings: Sequence[Rating], scores: Any, share: float, method: str, within: str) -> Values:
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
    table: Values, groups: Mapping[Any, list[int]], share: float, years: Sequence[int], within: str
) -> tuple[Values, NDArray[np.bool_]]:
    """Compute the variance of each rating's rank, and whether it is among the largest."""
    items = table.shape[1]
    variances, noisy = np.zeros(items), np.zeros(items, dtype=bool)
    suspect = {year: places for year, places in groups.items() if not years or year in years}
    if within == WHOLE:
        variances = rank_variance(table)
        parts = [(np.sort(np.concatenate([[], *suspect.values()])).astype(int), round(share * items))]
    else:
        for places in groups.values():
            variances[places] = rank_variance(table[:, places])
        parts = [(np.array(own), round(share * len(own))) for own in suspect.values()]
    for candidates, count in parts:
        noisy[candidates[np.argsort(-variances[candidates], kind="stable")][:count]] = True
    return variances, noisy


def _treat_year(
    ratings: Sequence[Rating], scores: Values, variances: Values, noisy: NDArray[np.bool_], method: str
) -> list[Rating | None]:
    """Return the year's rows, None for those removed."""
    kept = ~noisy if method == "remove" else np.ones(len(ratings), dtype=bool)
    values = standardise(np.array([rating["score"] for rating in ratings], dtype=float), constant=1.0)
    if method == "rescore" and noisy.any():
        judged = _mean_standardised(scores)
        values = np.where(noisy & np.isfinite(judged), judged, values)
    if kept.any():
        values = standardise(values, values[kept], constant=1.0)
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
        rows.append(standardise(own, own[known]))
    return np.nanmean(rows, axis=0)


def default_share(names: Sequence[str]) -> float:
    """Return the share of ratings that counts as noisy: the paper's where its metrics from outside are there.

    Args:
        names: of the metrics.
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
        ratings: as `rating_records` takes it.
        output: a .jsonl file; OUTPUT.json beside it records how it was made.
        checkpoints: as `BleurtScorer` takes them.
        score_files: `NAME=FILE`, scores computed elsewhere, as `bleurt-repro experiment wmt` takes them.
        share: as in `denoise`; by default that of `default_share` of the names in `score_files`.
        method, years, within: as in `denoise`.
        device: where to score.
        overwrite: replace files that no run of the library wrote, too.

    Raises:
        ValueError: if there are fewer than two metrics, an output is an input or a file of others, or as `denoise`.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records
    from bleurt_repro.metric.files.writing import validate_output, write_json_lines
    from bleurt_repro.metric.loading.checksums import file_records
    from bleurt_repro.training.results import Result

    if len(checkpoints) + len(score_files) < 2:
        raise ValueError("denoising takes at least two metrics: name more --checkpoint or --scores")
    if Path(output).suffix != ".jsonl":
        raise ValueError(f"the output must be a .jsonl file, found {output}")
    inputs = [str(ratings), *(item.partition("=")[2] for item in score_files)]
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    path = validate_output(str(output), inputs, OUR_ROWS, overwrite)
    record_path = validate_output(f"{output}.json", inputs, OUR_RECORD, overwrite)
    if share is None:
        share = default_share([item.partition("=")[0] for item in score_files])
    settings = {"share": share, "method": method, "years": list(years), "within": within}
    rows = rating_records(ratings)
    metrics = _metrics(rows, checkpoints, score_files, device)
    vectors = [metric.vectors[0] for metric in metrics]
    done = denoise(rows, np.array(vectors), share=share, method=method, years=years, within=within)
    record = Result(
        kind="denoise",
        command=_command(ratings, checkpoints, score_files, settings),
        signatures={metric.name: metric.signature for metric in metrics},
        data=file_records([ratings])[0],
        figures={**settings, "counts": done.counts, "by_year": done.by_year},
    )
    record_path.unlink(missing_ok=True)  # so that a stop between the two writes leaves no record of other rows
    write_json_lines(path, done.rows)
    record.write(record_path)
    return done


def _command(
    ratings: str | Path, checkpoints: Sequence[str], score_files: Sequence[str], settings: Mapping[str, Any]
) -> str:
    from bleurt_repro.training.metrics.options import shorten

    words = [f"bleurt-repro data denoise --ratings {shorten(ratings)}"]
    words += [f"--checkpoint {shorten(name)}" for name in checkpoints]
    words += [f"--scores {shorten(item)}" for item in score_files]
    words += [f"--year {year}" for year in settings["years"]]
    words += [f"--{name} {settings[name]}" for name in ("share", "method", "within")]
    return " ".join([*words, "--output OUT.jsonl"])


def _metrics(
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
