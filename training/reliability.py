"""Fit and test how far a checkpoint's scores can be trusted, on human ratings it was not trained on.

    bleurt-repro calibrate FOLDER --reliability held-out.jsonl --report reliability.json

Three things are fitted, and written to the checkpoint's reliability.json: whether people would prefer one system to another,
between which values a candidate's rating lies, and whether a rater would find an error in it (`metric/calibration.py`). Each
is tested on ratings that its fit has not seen.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.metric.calibration import FEWEST_SEGMENTS, ErrorFree, Preference, RatingIntervals, Reliability
from bleurt_repro.metric.statistics import RESAMPLES
from bleurt_repro.training.calibrate import DECIMALS, Values, never_falling, opened

if TYPE_CHECKING:
    from bleurt_repro.metric.scorer import BleurtScorer
    from bleurt_repro.training.results import Result

# Sizes of the samples of segments on which systems are compared, and how many samples of each size.
SIZES = (20, 50, 100, 200, 400, 800, 1600)
DRAWS = 4
# Systems that share fewer segments are compared on different ones.
FEWEST_SHARED = 50
# What a fit needs.
LEAST_PAIRS = 10
LEAST_RATINGS = 500
LEAST_COPIES = 50
# Ratings in a band of scores; bands of scores at most, for intervals and for P(no error), and of lengths; ratings of a group
# that gets a shift and a factor of its own; probabilities at which quantiles are kept.
BAND = 150
MOST_BANDS = 12
MOST_STEPS = 100
LENGTHS = 6
LEAST_OF_GROUP = 100
PLACES = 201
# Share of the ratings of copies of a reference that are not counted as free of errors.
MISSED = 0.1
# What is reported: bins of probabilities, coverage of intervals, differences of systems, sizes of test sets, shares that
# agree, and least probabilities by which candidates are kept.
BINS = 10
COVERAGE = 0.9
FOLDS = 5
DIFFERENCES = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
TEST_SETS = (100, 500, 2000)
AGREEING = (0.7, 0.8, 0.9, 0.95)
KEPT = (0.0, 0.2, 0.4, 0.6, 0.8)


def measure_reliability(
    checkpoint: str | Path,
    ratings: str | Path,
    *,
    tests: Sequence[str | Path] = (),
    judgements: int | None = None,
    seed: int = 0,
    cache: str | os.PathLike[str] | None = None,
) -> Result:
    """Fit on ratings how far a checkpoint's scores can be trusted, test it, and write it to the checkpoint's folder.

    It is tested on the same file, each group (language pair and year) by fits on all others, and on further files.

    Args:
        checkpoint: a folder; it gets a reliability.json, which changes neither scores nor signature.
        ratings: file of reference, candidate, score (and source), best of texts that were not trained on; with lp, system
            and n_annotations where they are known.
        tests: further files of ratings, on which nothing is fitted.
        judgements: how many judgements a rating is the mean of where a file does not say.
        seed: of the samples of segments.
        cache: folder of scores of earlier runs.

    Returns:
        the figures.

    Raises:
        FileNotFoundError: if the checkpoint is no folder.
        ValueError: if nothing can be fitted, or as the ratings' reader.
    """
    from bleurt_repro.metric.loading.checksums import content_hash
    from bleurt_repro.training.results import Result, fingerprint

    scorer = opened(checkpoint, cache=cache)
    files = fingerprint([str(ratings), *map(str, tests)])
    rated = read_rated(ratings, scorer, judgements)
    comparisons = compare_systems(rated, seed)
    none = comparisons.of(np.array([], int))
    source = {**files[0], "ratings": len(rated.scores)}
    fitted, reasons = fit_reliability(rated, comparisons, content_hash(Path(checkpoint)), source)
    if fitted.preference is fitted.intervals is fitted.error_free is None:
        raise ValueError(f"{ratings}: nothing can be fitted: {'; '.join(reasons.values())}")
    found = {}
    if len(np.unique(rated.groups)) > 1:
        predicted = predict_left_out(rated, comparisons, fitted.error_free.rating if fitted.error_free else None)
        found[f"{files[0]['file']}, each group by fits on the others"] = measure(rated, comparisons, predicted)
    if fitted.intervals is not None:
        predicted = predict_known_groups(rated, seed)
        found[f"{files[0]['file']}, each fifth of the segments by fits on the others"] = measure(
            rated, none, predicted
        )
    for path, file in zip(tests, files[1:], strict=True):
        other = read_rated(path, scorer, judgements)
        compared = compare_systems(other, seed)
        found[file["file"]] = measure(other, compared, predict(fitted, other.ratings, other, compared))
    fitted.write(Path(checkpoint))
    options = [f"--test {' '.join(file['file'] for file in files[1:])}"] if tests else []
    options += [f"--judgements {judgements}"] if judgements else []
    name = Path(checkpoint).resolve().name
    words = [
        "bleurt-repro calibrate",
        name,
        "--reliability",
        files[0]["file"],
        *options,
        f"--seed {seed}",
        "--report OUT",
    ]
    return Result(
        kind="reliability",
        command=" ".join(words),
        seed=seed,
        signatures={name: scorer.signature},
        data=[source, *files[1:]],
        figures={"fitted": _fitted(fitted, comparisons), "not_fitted": reasons, "tests": found},
    )


def read_rated(path: str | Path, scorer: BleurtScorer, judgements: int | None = None) -> Rated:
    """Read ratings and score their candidates.

    Args:
        path: the file.
        scorer: of the checkpoint.
        judgements: how many a rating is the mean of where the file does not say.
    """
    from bleurt_repro.datasets_builders.ratings.rating_files import rating_records

    rows = rating_records(str(path), (*scorer.layout.inputs, "score"))
    scores = np.array(scorer.score_rows(rows), float)
    shown = ("lp", "year") if len({row["year"] for row in rows}) > 1 else ("lp",)
    groups = [" ".join(str(row[name]) for name in shown if row[name] is not None) or "all" for row in rows]
    number: dict[Any, int] = {}
    texts = [(group, row["source"], row["reference"]) for group, row in zip(groups, rows, strict=True)]
    return Rated(
        scores=scores,
        ratings=np.array([row["score"] for row in rows], float),
        judgements=np.array([row["n_annotations"] or judgements or math.nan for row in rows], float),
        groups=np.array(groups),
        segments=np.array([number.setdefault(text, len(number)) for text in texts]),
        systems=np.array([row["system"] or "" for row in rows]),
        words=np.array([len(row["candidate"].split()) for row in rows]),
        copies=np.array([row["candidate"] == row["reference"] for row in rows]),
    )


# The fits.


@dataclass(frozen=True)
class Rated:
    """Ratings of candidates with a checkpoint's scores, an array each; see `read_rated`.

    Attributes:
        scores, ratings: of each candidate.
        judgements: how many a rating is the mean of; NaN where it is not known.
        groups: such as the language pair.
        segments: number of each candidate's segment.
        systems: names; a candidate of several systems has them joined by "+", one of no system has "".
        words: of the candidate.
        copies: whether the candidate is equal to its reference.
    """

    scores: Values
    ratings: Values
    judgements: Values
    groups: NDArray[Any]
    segments: NDArray[np.intp]
    systems: NDArray[Any]
    words: NDArray[np.intp]
    copies: NDArray[np.bool_]

    def of(self, chosen: NDArray[Any]) -> Rated:
        """Return some of the ratings."""
        return Rated(*(getattr(self, field.name)[chosen] for field in fields(self)))


@dataclass(frozen=True)
class Comparisons:
    """Comparisons of two systems each, an array each.

    Attributes:
        groups: of the systems.
        pairs: number of the pair of systems; a pair is compared several times, on samples of its segments.
        sizes: how many segments were drawn; 0 for all.
        segments: how many there are.
        differences: the first system's mean score minus the second's.
        errors: standard errors of the differences.
        preferred: whether the first system's mean rating is higher, by all ratings of both.
        p_values: of the paired bootstrap, one-sided; of different segments, by normal approximation.
    """

    groups: NDArray[Any]
    pairs: NDArray[np.intp]
    sizes: NDArray[np.intp]
    segments: NDArray[np.intp]
    differences: Values
    errors: Values
    preferred: NDArray[np.bool_]
    p_values: Values

    def of(self, chosen: NDArray[Any]) -> Comparisons:
        """Return some of the comparisons."""
        return Comparisons(*(getattr(self, field.name)[chosen] for field in fields(self)))

    @property
    def weights(self) -> Values:
        """1 for each pair of systems and size, shared among the samples drawn."""
        _, place, counts = np.unique(
            np.stack([self.pairs, self.sizes]), axis=1, return_inverse=True, return_counts=True
        )
        return 1 / counts[place.reshape(-1)]


def compare_systems(rated: Rated, seed: int = 0) -> Comparisons:
    """Compare every two systems of a group on all segments that both were rated on, and on samples of them.

    Two systems with fewer than `FEWEST_SHARED` such segments are compared on different ones.

    Args:
        rated: candidates with their systems.
        seed: of the samples and the bootstrap.
    """
    generator = np.random.default_rng(seed)
    found: list[tuple[Any, ...]] = []
    number = 0
    for group in np.unique(rated.groups):
        tables = _by_system(rated.of(rated.groups == group))
        for one, other in itertools.combinations(sorted(tables), 2):
            (first, first_ratings), (second, second_ratings) = tables[one], tables[other]
            means = np.mean(list(first_ratings.values())), np.mean(list(second_ratings.values()))
            if means[0] == means[1]:
                continue
            number += 1
            preferred = means[0] > means[1]
            shared = sorted(set(first) & set(second))
            if len(shared) < FEWEST_SHARED:
                a, b = (np.array(list(own.values())) for own in (first, second))
                if min(len(a), len(b)) >= FEWEST_SEGMENTS:
                    error = math.sqrt(a.var(ddof=1) / len(a) + b.var(ddof=1) / len(b))
                    gap = a.mean() - b.mean()
                    p = 0.5 * math.erfc(abs(gap) / error / math.sqrt(2)) if error else 0.5
                    found.append((group, number, 0, min(len(a), len(b)), gap, error, preferred, p))
                continue
            gaps = np.array([first[segment] - second[segment] for segment in shared])
            for size in (0, *(size for size in SIZES if size < len(gaps))):
                for _ in range(DRAWS if size else 1):
                    drawn = generator.permutation(gaps)[:size] if size else gaps
                    error = drawn.std(ddof=1) / math.sqrt(len(drawn))
                    p = _bootstrap_p(drawn, generator)
                    found.append((group, number, size, len(drawn), drawn.mean(), error, preferred, p))
    if not found:
        return Comparisons(*(np.array([]) for _ in fields(Comparisons)))
    return Comparisons(*map(np.array, zip(*found, strict=True)))


def _by_system(rated: Rated) -> dict[str, tuple[dict[int, float], dict[int, float]]]:
    """Return the scores and the ratings of each system by segment."""
    tables: dict[str, tuple[dict[int, float], dict[int, float]]] = {}
    for name, segment, score, rating in zip(rated.systems, rated.segments, rated.scores, rated.ratings, strict=True):
        for system in filter(None, name.split("+")):
            scores, ratings = tables.setdefault(system, ({}, {}))
            scores[segment], ratings[segment] = score, rating
    return tables


def _bootstrap_p(gaps: Values, generator: np.random.Generator) -> float:
    """Return p of the paired bootstrap, as `metric.statistics.paired_difference` computes it."""
    drawn = generator.integers(0, len(gaps), (RESAMPLES, len(gaps)))
    not_ahead = np.count_nonzero(gaps[drawn].mean(axis=1) * np.sign(gaps.mean()) <= 0)
    return float((not_ahead + 1) / (RESAMPLES + 1))


def fit_preference(comparisons: Comparisons) -> Preference:
    """Fit P(raters prefer the first system) by maximum likelihood, each pair of systems and size weighing the same.

    Raises:
        ValueError: if there are fewer than `LEAST_PAIRS` pairs of systems.
    """
    from scipy.optimize import minimize

    if (count := len(np.unique(comparisons.pairs))) < LEAST_PAIRS:
        raise ValueError(f"a fit needs {LEAST_PAIRS} pairs of systems, found {count}")
    signs = np.where(comparisons.preferred, 1.0, -1.0)
    weights = comparisons.weights

    def loss(logs: Values) -> float:
        slope, metric_error = np.exp(logs)
        z = comparisons.differences / np.hypot(comparisons.errors, metric_error)
        return float((weights * np.logaddexp(0, -slope * signs * z)).sum() / weights.sum())

    scale = max(float(np.median(comparisons.errors)), 1e-3)
    bounds = [(math.log(1e-3), math.log(1e2)), (math.log(scale * 1e-2), math.log(scale * 1e3))]
    found = minimize(loss, np.log([1.0, scale]), method="L-BFGS-B", bounds=bounds)
    slope, metric_error = np.exp(found.x)
    return Preference(round(float(slope), DECIMALS), round(float(metric_error), 2 * DECIMALS))


def fit_intervals(rated: Rated, seed: int = 0) -> RatingIntervals:
    """Fit means and deviations of ratings, and the quantiles of residuals.

    Each half of the segments has its residuals from means and deviations of the other half (cross-conformal prediction: Vovk,
    2015, https://doi.org/10.1007/s10472-013-9368-4); those that are kept are fitted on all.

    Raises:
        ValueError: if there are fewer than `LEAST_RATINGS` ratings, or they do not vary.
    """
    if (count := len(rated.ratings)) < LEAST_RATINGS or np.ptp(rated.scores) == 0 or np.ptp(rated.ratings) == 0:
        raise ValueError(
            f"intervals need {LEAST_RATINGS} ratings that vary, of scores that vary; found {count} ratings"
        )
    segments = np.unique(rated.segments)
    half = np.isin(rated.segments, np.random.default_rng(seed).permutation(segments)[: len(segments) // 2])
    edges = _edges(rated.scores, MOST_BANDS)
    residuals = np.empty(len(rated.scores))
    for own in (half, ~half):
        residuals[own] = _residuals(_means_and_deviations(rated.of(~own), edges), rated.of(own))
    place = np.searchsorted(edges, rated.scores)
    # "weibull" takes the p (n + 1)-th of n residuals, as conformal prediction does
    quantiles = tuple(
        _rounded(np.quantile(residuals[place == band], np.linspace(0, 1, PLACES), method="weibull"))
        for band in range(len(edges) + 1)
    )
    return replace(_means_and_deviations(rated, edges), quantiles=quantiles)


def _means_and_deviations(rated: Rated, edges: Values) -> RatingIntervals:
    """Fit all of the intervals but the quantiles.

    Args:
        rated: candidates with scores and ratings.
        edges: of the bands of scores.
    """
    place = np.searchsorted(edges, rated.scores)
    counts = np.bincount(place, minlength=len(edges) + 1)
    if not counts.all():
        raise ValueError("intervals need ratings in each band of scores")
    centres = np.bincount(place, rated.scores) / counts
    means = never_falling(np.bincount(place, rated.ratings) / counts, counts)
    squares = (rated.ratings - np.interp(rated.scores, centres, means)) ** 2
    shares = 1 - 1 / np.where(np.isfinite(rated.judgements), rated.judgements, 1)
    noise, variances = (
        _noise(squares, shares, place) if np.ptp(shares) > 0 else (None, np.bincount(place, squares) / counts)
    )
    words, factors = _by_length(rated.words, squares / (variances[place] * (1 - (noise or 0.0) * shares)))
    none = ((0.0,) * 3,) * len(centres)
    fitted = RatingIntervals(
        _rounded(centres), _rounded(means), _rounded(np.sqrt(variances)), noise, none, words, factors
    )
    residuals = _residuals(fitted, rated)
    groups = {
        str(group): _rounded(np.array([own.mean(), own.std()]))
        for group in np.unique(rated.groups)
        if len(own := residuals[rated.groups == group]) >= LEAST_OF_GROUP
    }
    return replace(fitted, groups=groups)


def _residuals(fitted: RatingIntervals, rated: Rated) -> Values:
    """Return how many deviations ratings lie above what is predicted for their group, (n,)."""
    judgements = np.where(np.isfinite(rated.judgements), rated.judgements, 1)
    centre, spread = fitted.prediction(rated.scores, judgements, rated.words)
    shift, factor = np.array([fitted.groups.get(group, (0.0, 1.0)) for group in rated.groups]).T
    return ((rated.ratings - centre) / np.maximum(spread, 1e-9) - shift) / np.maximum(factor, 1e-9)


def _edges(values: Values, most: int) -> Values:
    """Cut values into bands of equal size, at least `BAND` in each and at most so many bands; return their inner edges."""
    bands = int(np.clip(len(values) // BAND, 1, most))
    return np.unique(np.quantile(values, np.linspace(0, 1, bands + 1)[1:-1]))


def _by_length(words: NDArray[np.intp], squares: Values) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return numbers of words and how much larger the deviation is there; its squares are 1 on average."""
    logs = np.log1p(words)
    place = np.searchsorted(_edges(logs, LENGTHS), logs)
    counts = np.bincount(place)
    return _rounded(np.expm1(np.bincount(place, logs) / counts)), _rounded(
        np.sqrt(np.bincount(place, squares) / counts)
    )


def _noise(squares: Values, shares: Values, place: NDArray[np.intp]) -> tuple[float, Values]:
    """Find which share of the variance of single judgements is raters' noise: the part that a mean of n divides by n.

    Args:
        squares: squared residuals of ratings.
        shares: of each, 1 - 1 / n.
        place: number of each one's band.

    Returns:
        the share, and the variance of single judgements in each band.
    """
    noise, counts = 0.5, np.bincount(place)
    for _ in range(20):
        variances = np.bincount(place, squares / (1 - noise * shares)) / counts
        lower = 1 - squares / variances[place]  # on average noise * shares
        noise = float(np.clip((lower * shares).sum() / (shares**2).sum(), 0, 0.95))
    return round(noise, DECIMALS), variances


def _rounded(values: Values) -> tuple[float, ...]:
    return tuple(np.round(values, DECIMALS).tolist())


def fit_error_free(rated: Rated, rating: float | None = None) -> ErrorFree:
    """Fit P(a rater sees no error) by isotonic regression, on single judgements where their number is known.

    Args:
        rated: candidates with their ratings.
        rating: from which on a rating counts as free of errors; by default that of copies of the reference.

    Raises:
        ValueError: if no rating is given, and fewer than `LEAST_COPIES` of the candidates are copies of their reference.
    """
    single = rated.of(~(rated.judgements > 1))
    rating = _level_of_copies(single) if rating is None else rating
    copies = single.ratings[single.copies]
    missed = float((copies < rating).mean()) if len(copies) else MISSED
    place = np.searchsorted(_edges(single.scores, MOST_STEPS), single.scores)
    counts = np.bincount(place)
    shares = never_falling(np.bincount(place, single.ratings >= rating) / counts, counts)
    return ErrorFree(
        _rounded(np.bincount(place, single.scores) / counts), _rounded(shares), rating, round(missed, DECIMALS)
    )


def _level_of_copies(single: Rated) -> float:
    if (count := int(single.copies.sum())) < LEAST_COPIES:
        raise ValueError(
            f"the level of ratings without errors is that of candidates equal to their reference: needed are {LEAST_COPIES} "
            f"with a single judgement, found {count}"
        )
    return round(float(np.quantile(single.ratings[single.copies], MISSED)), DECIMALS)


# What the fits are worth on ratings that they have not seen.


def fit_reliability(
    rated: Rated,
    comparisons: Comparisons,
    content: str = "",
    source: dict[str, Any] | None = None,
    rating: float | None = None,
) -> tuple[Reliability, dict[str, str]]:
    """Fit all that the ratings allow.

    Args:
        rated: candidates with scores and ratings.
        comparisons: of their systems.
        content: hash of the checkpoint's content.
        source: to record with it.
        rating: as in `fit_error_free`.

    Returns:
        the fits, and why each of those that are None could not be made.
    """
    fits: dict[str, Callable[[], Any]] = {
        "preference": lambda: fit_preference(comparisons),
        "intervals": lambda: fit_intervals(rated),
        "error_free": lambda: fit_error_free(rated, rating),
    }
    made: dict[str, Any] = {}
    reasons = {}
    for name, fit_part in fits.items():
        try:
            made[name] = fit_part()
        except ValueError as error:
            made[name], reasons[name] = None, str(error)
    return Reliability(content, made["preference"], made["intervals"], made["error_free"], source or {}), reasons


@dataclass(frozen=True)
class Predicted:
    """What fits say of ratings and comparisons that they have not seen, an array each; NaN where there is no fit.

    Attributes:
        preferred: P(raters prefer the first system) of each comparison.
        low, high: ends of the interval of each rating.
        naive_low, naive_high: quantiles of all ratings.
        error_free: P(a rater sees no error) of each candidate.
        faultless: whether the rating is one of candidates without errors, as the fit has it.
    """

    preferred: Values
    low: Values
    high: Values
    naive_low: Values
    naive_high: Values
    error_free: Values
    faultless: Values


def predict(fitted: Reliability, ratings: Values, rated: Rated, comparisons: Comparisons) -> Predicted:
    """Apply fits.

    Args:
        fitted: what is applied.
        ratings: those that it was fitted on or, where these are of another kind, those that it is tested on; of their
            quantiles.
        rated, comparisons: what it is applied to.
    """
    count = len(rated.scores)
    ends, free, faultless = np.full((2, count), np.nan), np.full(count, np.nan), np.full(count, np.nan)
    if fitted.intervals is not None:
        ends = predict_intervals(fitted.intervals, rated)
    if fitted.error_free is not None:
        free = np.array(fitted.error_free(rated.scores.tolist()))
        faultless = (rated.ratings >= fitted.error_free.rating).astype(float)
    preferred = np.full(len(comparisons.differences), np.nan)
    if fitted.preference is not None and len(preferred):
        preferred = fitted.preference(comparisons.differences, comparisons.errors)
    naive = np.quantile(ratings, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2])
    low, high = ends
    naive_low, naive_high = (np.full(count, end) for end in naive)
    return Predicted(preferred, low, high, naive_low, naive_high, free, faultless)


def predict_intervals(fitted: RatingIntervals, rated: Rated) -> Values:
    """Return the ends of the interval of each rating, (2, n), by its number of judgements, its length, and its group if known."""
    ends = np.full((2, len(rated.scores)), np.nan)
    judgements = np.where(np.isfinite(rated.judgements), rated.judgements, 1).astype(int)
    judgements = judgements if fitted.noise is not None else np.ones_like(judgements)
    for group, number in {(str(group), int(n)) for group, n in zip(rated.groups, judgements, strict=True)}:
        own = (rated.groups == group) & (judgements == number)
        known = group if group in fitted.groups else None
        ends[:, own] = np.array(fitted(rated.scores[own], COVERAGE, number, rated.words[own], known)).T
    return ends


def predict_left_out(rated: Rated, comparisons: Comparisons, rating: float | None = None) -> Predicted:
    """Predict each group by fits on all the others.

    Args:
        rated, comparisons: what is predicted, and fitted on.
        rating: as in `fit_error_free`.
    """
    parts: dict[str, Values] = {}
    for group in np.unique(rated.groups):
        own, compared = rated.groups == group, comparisons.groups == group
        fitted, _ = fit_reliability(rated.of(~own), comparisons.of(~compared), rating=rating)
        found = predict(fitted, rated.ratings[~own], rated.of(own), comparisons.of(compared))
        for one in fields(Predicted):
            chosen = compared if one.name == "preferred" else own
            parts.setdefault(one.name, np.full(len(chosen), np.nan))[chosen] = getattr(found, one.name)
    return Predicted(**parts)


def predict_known_groups(rated: Rated, seed: int = 0) -> Predicted:
    """Predict the intervals of each fifth of the segments by fits on the others, which know its groups."""
    none = Comparisons(*(np.array([]) for _ in fields(Comparisons)))
    segments = np.unique(rated.segments)
    fold = dict(zip(np.random.default_rng(seed).permutation(segments), itertools.cycle(range(FOLDS)), strict=False))
    folds = np.array([fold[segment] for segment in rated.segments])
    parts: dict[str, Values] = {}
    for number in range(FOLDS):
        own = folds == number
        try:
            intervals = fit_intervals(rated.of(~own), seed)
        except ValueError:  # too few without them
            intervals = None
        fitted = Reliability("", None, intervals, None, {})
        found = predict(fitted, rated.ratings[~own], rated.of(own), none)
        for one in fields(Predicted):
            if one.name != "preferred":
                parts.setdefault(one.name, np.full(len(own), np.nan))[own] = getattr(found, one.name)
    return Predicted(preferred=np.array([]), **parts)


def measure(rated: Rated, comparisons: Comparisons, predicted: Predicted) -> dict[str, Any]:
    """Compare what was predicted with what people said.

    Returns:
        figures of "preference", "intervals" and "error_free", those that were predicted.
    """
    figures: dict[str, Any] = {"ratings": len(rated.ratings)}
    if (known := np.isfinite(predicted.preferred)).any():
        figures["preference"] = _preference_figures(comparisons.of(known), predicted.preferred[known])
    if (known := np.isfinite(predicted.low)).any():
        ends = (predicted.low, predicted.high, predicted.naive_low, predicted.naive_high)
        figures["intervals"] = _interval_figures(rated.of(known), *(end[known] for end in ends))
    if (single := np.isfinite(predicted.error_free) & ~(rated.judgements > 1)).any():
        p, outcomes = predicted.error_free[single], predicted.faultless[single]
        figures["error_free"] = {
            **_probability_figures(p, outcomes, np.ones(len(p))),
            "by_group": {
                str(group): _probability_figures(p[own], outcomes[own], np.ones(own.sum()), bins=False)
                for group in np.unique(rated.groups)
                if (own := rated.groups[single] == group).any()
            },
            "kept": [
                {"least": least, "share": float((p >= least).mean()), "error_free": float(outcomes[p >= least].mean())}
                for least in KEPT
                if (p >= least).any()
            ],
        }
    return figures


def _probability_figures(p: Values, outcomes: Values, weights: Values, bins: bool = True) -> dict[str, Any]:
    """Return expected calibration error, Brier score and the bins of probabilities against outcomes of 0 and 1."""
    place = np.minimum((p * BINS).astype(int), BINS - 1)
    rows = []
    for i in range(BINS):
        own = place == i
        if own.any():
            mean, share = (float(np.average(values[own], weights=weights[own])) for values in (p, outcomes))
            part = float(weights[own].sum() / weights.sum())
            rows.append(
                {
                    "from": i / BINS,
                    "to": (i + 1) / BINS,
                    "n": int(own.sum()),
                    "part": part,
                    "predicted": mean,
                    "observed": share,
                }
            )
    return {
        "n": len(p),
        "ece": sum(row["part"] * abs(row["predicted"] - row["observed"]) for row in rows),
        "brier": float(np.average((p - outcomes) ** 2, weights=weights)),
        "observed": float(np.average(outcomes, weights=weights)),
        **({"bins": rows} if bins else {}),
    }


def _preference_figures(comparisons: Comparisons, preferred: Values) -> dict[str, Any]:
    """Compare P with the preferences: each comparison from the side of the system that scores higher."""
    ahead = comparisons.differences >= 0
    p = np.where(ahead, preferred, 1 - preferred)
    outcomes = (ahead == comparisons.preferred).astype(float)
    of_test = 1 - comparisons.p_values
    weights = comparisons.weights

    def both(own: NDArray[np.bool_], bins: bool = False) -> dict[str, Any]:
        found = _probability_figures(p[own], outcomes[own], weights[own], bins)
        test = _probability_figures(of_test[own], outcomes[own], weights[own], bins=False)
        pairs = len(np.unique(comparisons.pairs[own]))
        return {"pairs": pairs, **found, "ece_of_test": test["ece"], "brier_of_test": test["brier"]}

    whole = comparisons.sizes == 0
    gaps = np.abs(comparisons.differences)
    rows = []
    for least, most in zip(DIFFERENCES, (*DIFFERENCES[1:], math.inf), strict=True):
        own = whole & (gaps >= least) & (gaps < most)
        agree = {"pairs": int(own.sum()), "agree": float(outcomes[own].mean()) if own.any() else None}
        rows.append({"from": least, **agree, "predicted": float(p[own].mean()) if own.any() else None})
    return {
        **both(np.ones(len(p), bool), bins=True),
        "all_segments": both(whole, bins=True),
        "fewest_segments": int(comparisons.segments.min()),
        "most_segments": int(comparisons.segments.max()),
        "by_size": {
            ("all" if size == 0 else str(size)): both(comparisons.sizes == size)
            for size in np.unique(comparisons.sizes)
        },
        "by_group": {str(group): both(comparisons.groups == group) for group in np.unique(comparisons.groups)},
        "by_difference": rows,
    }


def _interval_figures(
    rated: Rated, low: Values, high: Values, naive_low: Values, naive_high: Values
) -> dict[str, Any]:
    """Measure coverage and width of the intervals, and of the quantiles of all ratings, by kind of candidate."""
    inside = (rated.ratings >= low) & (rated.ratings <= high)
    naive = (rated.ratings >= naive_low) & (rated.ratings <= naive_high)
    width, naive_width = high - low, naive_high - naive_low

    def of(own: NDArray[np.bool_]) -> dict[str, Any]:
        found = {
            "coverage": inside[own],
            "width": width[own],
            "naive_coverage": naive[own],
            "naive_width": naive_width[own],
        }
        means = {name: float(values.mean()) for name, values in found.items()}
        return {"n": int(own.sum()), **means, "narrower": 1 - means["width"] / means["naive_width"]}

    judgements = np.where(np.isfinite(rated.judgements), rated.judgements, 1)
    return {
        "wanted": COVERAGE,
        **of(np.ones(len(inside), bool)),
        "by_group": {str(group): of(rated.groups == group) for group in np.unique(rated.groups)},
        "by_score": _by_quantiles(rated.scores, 5, "{:.2f}", of),
        "by_words": _by_quantiles(rated.words, 4, "{:.0f}", of),
        "by_judgements": {
            f"{n:.0f}": of(judgements == n) for n in np.unique(judgements) if (judgements == n).sum() >= 50
        },
    }


def _by_quantiles(values: Any, parts: int, form: str, of: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Measure each of so many parts of equal size, named by its lowest and its highest value."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, parts + 1)[1:-1]))
    place = np.searchsorted(edges, values, side="right")
    found = {}
    for part in np.unique(place):
        own = place == part
        found[f"{form.format(values[own].min())} to {form.format(values[own].max())}"] = of(own)
    return found


def _fitted(fitted: Reliability, comparisons: Comparisons) -> dict[str, Any]:
    """Return the numbers that were fitted, and what they say of differences of systems."""
    found: dict[str, Any] = {}
    if (preference := fitted.preference) is not None:
        whole = comparisons.sizes == 0
        deviation = float(np.median(comparisons.errors[whole] * np.sqrt(comparisons.segments[whole])))
        found["preference"] = {
            **asdict(preference),
            "deviation": deviation,
            "agree": [
                {
                    "difference": difference,
                    **{str(n): float(preference(difference, deviation / math.sqrt(n))) for n in TEST_SETS},
                }
                for difference in DIFFERENCES
            ],
            "needed": {str(p): _needed(preference, p, deviation) for p in AGREEING},
        }
    if fitted.intervals is not None:
        found["intervals"] = {
            "noise": fitted.intervals.noise,
            "at": [
                {"score": score, "mean": mean, **{str(n): fitted.intervals([score], COVERAGE, n)[0] for n in numbers}}
                for numbers in [(1,) if fitted.intervals.noise is None else (1, 3, 15)]
                for score, mean in zip(fitted.intervals.scores, fitted.intervals.means, strict=True)
            ],
        }
    if fitted.error_free is not None:
        found["error_free"] = {"rating": fitted.error_free.rating, "missed": fitted.error_free.missed}
    return found


def _needed(preference: Preference, p: float, deviation: float) -> dict[str, float]:
    """Return the difference of two systems from which on P is at least p, by size of the test set."""
    z = math.log(p / (1 - p)) / preference.slope
    return {str(n): z * math.hypot(deviation / math.sqrt(n), preference.metric_error) for n in TEST_SETS}


# Drawn from the results alone.


def draw_reliability(results: Mapping[str, Any]) -> str:
    """Draw the tables of results of kind "reliability"."""
    from bleurt_repro.metric.files.writing import markdown_table

    parts = [f"`{results['command']}`"]
    fitted = results["fitted"]
    if "preference" in fitted:
        parts += ["## P(raters prefer the system that scores higher)", _draw_agree(fitted["preference"])]
    for name, found in results["tests"].items():
        parts.append(f"## Tested on {name} ({found['ratings']:,} ratings)")
        if "preference" in found:
            parts += _draw_preference(found["preference"])
        if "intervals" in found:
            parts += _draw_intervals(found["intervals"])
        if "error_free" in found:
            parts += _draw_error_free(found["error_free"])
    for name, reason in results["not_fitted"].items():
        parts.append(f"Not fitted, {name.replace('_', ' ')}: {reason}.")
    parts.append(
        markdown_table(["checkpoint", "signature"], [[k, f"`{v}`"] for k, v in results["signatures"].items()])
    )
    return "\n\n".join(parts) + "\n"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def draw_needed(found: Mapping[str, Any]) -> str:
    """Draw the differences of two systems that people agree with in so many percent, by size of the test set."""
    from bleurt_repro.metric.files.writing import markdown_table

    rows = [[_percent(float(p)), *(f"{sizes[str(n)]:.3f}" for n in TEST_SETS)] for p, sizes in found["needed"].items()]
    return markdown_table(["percent", *(f"{n:,} segments" for n in TEST_SETS)], rows)


def _draw_agree(found: Mapping[str, Any]) -> str:
    from bleurt_repro.metric.files.writing import markdown_table

    rows = [[f"{row['difference']:g}", *(_percent(row[str(n)]) for n in TEST_SETS)] for row in found["agree"]]
    sizes = [f"{n:,} segments" for n in TEST_SETS]
    return "\n\n".join(
        [
            "A difference of two systems' mean scores agrees with people in so many percent:",
            markdown_table(["difference", *sizes], rows),
            "The difference that is needed:",
            draw_needed(found),
        ]
    )


def draw_bins(found: Mapping[str, Any], wanted: str) -> str:
    """Draw a reliability diagram as a table: predicted and observed shares in each bin of probabilities."""
    from bleurt_repro.metric.files.writing import markdown_table

    rows = [
        [
            f"{row['from']:.1f} to {row['to']:.1f}",
            f"{row['n']:,}",
            _percent(row["predicted"]),
            _percent(row["observed"]),
        ]
        for row in found["bins"]
    ]
    return markdown_table(["P", wanted, "predicted, %", "observed, %"], rows)


def _draw_preference(found: Mapping[str, Any]) -> list[str]:
    from bleurt_repro.metric.files.writing import markdown_table

    header = ["", "pairs", "agree, %", "ECE", "Brier", "ECE of 1 - p", "Brier of 1 - p"]
    named = {"all": found, **{f"{size} segments": one for size, one in found["by_size"].items()}, **found["by_group"]}
    names = ("ece", "brier", "ece_of_test", "brier_of_test")
    rows = [
        [name, str(one["pairs"]), _percent(one["observed"]), *(f"{one[key]:.3f}" for key in names)]
        for name, one in named.items()
    ]
    steps = [
        [f"{row['from']:g}", str(row["pairs"]), _percent(row["predicted"]), _percent(row["agree"])]
        for row in found["by_difference"]
    ]
    return [
        f"**Preferences**: {found['pairs']} pairs of systems, on {found['fewest_segments']} to {found['most_segments']:,} segments",
        markdown_table(header, rows),
        "Reliability diagram, all sizes:",
        draw_bins(found, "comparisons"),
        "On all segments of each pair:",
        draw_bins(found["all_segments"], "pairs"),
        "By difference, on all segments:",
        markdown_table(["difference from", "pairs", "predicted, %", "agree, %"], steps),
    ]


def _draw_intervals(found: Mapping[str, Any]) -> list[str]:
    from bleurt_repro.metric.files.writing import markdown_table

    header = ["", "ratings", "within, %", "width", "narrower than naive, %", "within naive, %"]
    named = {"all": found, **found["by_group"]}
    named |= {f"score {name}": one for name, one in found["by_score"].items()}
    named |= {f"{name} words": one for name, one in found["by_words"].items()}
    named |= {f"{name} judgements": one for name, one in found["by_judgements"].items()}
    rows = [
        [
            name,
            f"{one['n']:,}",
            _percent(one["coverage"]),
            f"{one['width']:.2f}",
            _percent(one["narrower"]),
            _percent(one["naive_coverage"]),
        ]
        for name, one in named.items()
    ]
    return [
        f"**Intervals** of {_percent(found['wanted'])} %; naive: quantiles of all ratings",
        markdown_table(header, rows),
    ]


def _draw_error_free(found: Mapping[str, Any]) -> list[str]:
    from bleurt_repro.metric.files.writing import markdown_table

    rows = [["all", f"{found['n']:,}", _percent(found["observed"]), f"{found['ece']:.3f}", f"{found['brier']:.3f}"]]
    rows += [
        [name, f"{one['n']:,}", _percent(one["observed"]), f"{one['ece']:.3f}", f"{one['brier']:.3f}"]
        for name, one in found["by_group"].items()
    ]
    kept = [[f"{row['least']:g}", _percent(row["share"]), _percent(row["error_free"])] for row in found["kept"]]
    return [
        "**No error**: single judgements",
        markdown_table(["", "ratings", "no error, %", "ECE", "Brier"], rows),
        draw_bins(found, "ratings"),
        "Candidates kept that reach a probability:",
        markdown_table(["P at least", "kept, %", "no error, %"], kept),
    ]


def summary(results: Mapping[str, Any]) -> str:
    """Return what was found, a line each."""
    lines = []
    for name, found in results["tests"].items():
        if "preference" in found:
            one = found["preference"]
            lines.append(
                f"{name}: P(raters prefer a system) of {one['pairs']} pairs: calibration error {one['ece']:.3f}, Brier score "
                f"{one['brier']:.3f} (of 1 - p: {one['brier_of_test']:.3f})"
            )
        if "intervals" in found:
            one = found["intervals"]
            lines.append(
                f"{name}: {_percent(one['coverage'])} % of {one['n']} ratings within their {_percent(one['wanted'])} % interval, "
                f"{_percent(one['narrower'])} % narrower than quantiles of all ratings"
            )
        if "error_free" in found:
            one = found["error_free"]
            lines.append(f"{name}: P(no error) of {one['n']} ratings: calibration error {one['ece']:.3f}")
    lines += [f"not fitted: {name.replace('_', ' ')}: {reason}" for name, reason in results["not_fitted"].items()]
    return "\n".join(lines or ["fitted; nothing to test on: name other ratings with --test"])


def write_report(result: Result, path: str | Path) -> None:
    """Write results as JSON and, beside them, their tables as Markdown."""
    from bleurt_repro.metric.files.writing import write_text

    result.write(path)
    write_text(Path(path).with_suffix(".md"), draw_reliability(result))
