"""Ratings to train on: read, checked, divided into training and validation, and standardised, as Arrow files on disk."""

from __future__ import annotations

import math
import warnings
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from bleurt_repro.datasets_builders.ratings.rating_files import REQUIRED_COLUMNS, TRAINING_COLUMNS, each_rating
from bleurt_repro.datasets_builders.ratings.relative_ranks import MIN_DIFFERENCE
from bleurt_repro.datasets_builders.ratings.splits import split_without_overlap
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.statistics import Indices, Values

if TYPE_CHECKING:
    from datasets import Dataset

# Ratings beyond these are far from standardised: 760 of 1 to 3 points took a trained scorer from tau 49 to 29, the
# same ones standardised to 53 (docs/reproduction.md, figure 3).
FARTHEST_MEAN, LEAST_DEVIATION, LARGEST_DEVIATION = 1.0, 0.1, 3.0
# Language pairs with fewer ratings are not standardised separately.
LEAST_OF_A_PAIR = 20
RankIndices = tuple[Indices, Indices]  # better and worse ratings
# What training takes of a rating.
COLUMNS = ("lp", "source", "reference", "candidate", "score", "raw_score", "n_annotations", "kind", "weight")
# Variance of one judgement divided by that of true quality. Of WMT's crowd it is 0.5 to 1.4 (the variance of ratings
# falls with the number of judgements), of MLQE-PE's translators 0.1 to 0.4, but 1.6 for one pair. Other kinds: 1.
NOISE = {"crowd": 1.0, "professional": 0.3, "expert": 0.3}
LARGEST_SCORE = 3.0  # standardised scores of mixed kinds are cut here: a few outliers lie at 12


@dataclass(frozen=True)
class TrainingRatings:
    """Ratings to train and to validate on.

    Attributes:
        sides: "train" and "validation", each with `COLUMNS`, but "weight" only if the ratings differ in weight.
        ranks: indices of better and of worse validation ratings, if they were asked for; see `rank_indices`.
        standardized: how scores were standardised, as `standardize_ratings` describes it; None if they were not.
    """

    sides: dict[str, Dataset]
    ranks: RankIndices | None = None
    standardized: dict[str, Any] | None = None


def read_training_ratings(
    train_file: str,
    validation_file: str | None,
    layout: Layout,
    *,
    hashes: Sequence[str],
    with_ranks: bool = False,
    validation_ratio: float = 0.1,
    standardize: bool = True,
    seed: int = 0,
) -> TrainingRatings:
    """Read the ratings to train and to validate on into Arrow files: millions of them do not fit into lists.

    Args:
        train_file: file of ratings, as `each_rating` takes it.
        validation_file: file of ratings to validate on; without one, a part of the training ratings is set apart.
        layout: texts that the model reads.
        hashes: SHA-256 of each file; a file is read again only when it has changed.
        with_ranks: whether to find better and worse validation ratings of the same segment.
        validation_ratio: share of the training ratings that is set apart.
        standardize: whether to standardise scores that are far from it.
        seed: seed of the choice of that part.

    Raises:
        ValueError: if a file is invalid, there are too few ratings, or their scores do not vary.
    """
    rows = _read_file(train_file, layout, hashes[0])
    if validation_file:
        sides = {"train": rows, "validation": _read_file(validation_file, layout, hashes[1])}
    else:
        sides = _split(rows, train_file, validation_ratio, seed)
    for name, side in sides.items():
        _check_side(name, side, validation_file if name == "validation" and validation_file else train_file, layout)
    ranks = rank_indices(sides["validation"], layout) if with_ranks else None
    if standardize and len(set(sides["train"]["kind"])) > 1:
        sides, scales = standardize_kinds(sides)
        return TrainingRatings(_scale_weights(sides, train_file), ranks, scales)
    sides = _scale_weights(sides, train_file)
    if not standardize:
        return TrainingRatings(sides, ranks)
    sides, standardized = standardize_ratings(sides)
    if standardized:
        warnings.warn(
            f"the scores of {train_file} are far from standardised and are standardised now (mean 0, deviation 1 by "
            f"{standardized['by']}); --no-standardize leaves them as they are",
            stacklevel=3,
        )
    return TrainingRatings(sides, ranks, standardized)


def _read_file(path: str, layout: Layout, sha256: str) -> Dataset:
    """Read a file of ratings into an Arrow file in the cache of `datasets`; once, until the file changes."""
    from datasets import Dataset, Features, Value
    from datasets.exceptions import DatasetGenerationError

    # A tuple, since `datasets` would take a list for shards.
    required = tuple(name for name in REQUIRED_COLUMNS if name != "reference" or name in layout.required)
    features = Features({name: Value(TRAINING_COLUMNS[name]) for name in COLUMNS})
    arguments = {"path": path, "required": required, "optional": layout.optional, "sha256": sha256}
    try:
        dataset = Dataset.from_generator(_training_rows, features=features, gen_kwargs=arguments)
    except DatasetGenerationError as error:
        raise error.__cause__ or error from None
    return cast("Dataset", dataset)


def _training_rows(
    path: str, required: tuple[str, ...], optional: tuple[str, ...], sha256: str
) -> Iterator[dict[str, Any]]:
    """Yield the columns of each rating. The hash is an argument because `datasets` identifies the data by the arguments."""
    for number, row in enumerate(each_rating(path, required, columns=COLUMNS), start=1):
        texts = {role: row[role] or "" for role in optional}  # the model reads an empty text in place of a missing one
        if optional and not any(texts.values()):
            raise ValueError(f"{path}: rating {number} has neither source nor reference: give one of them, or both")
        yield {**row, **texts}


def _split(rows: Dataset, file: str, ratio: float, seed: int) -> dict[str, Dataset]:
    """Divide ratings into those to train and to validate on; no reference or source is on both sides."""
    # Each side needs two ratings at least.
    least = max(4, math.ceil(2 / ratio)) if 0 < ratio < 1 else 4
    if len(rows) < least:
        raise ValueError(
            f"{file} has {len(rows)} rating(s), too few to set any apart for validation: at least {least} are needed with "
            f"validation_ratio {ratio:g}, or a --validation-file"
        )
    train, validation = split_without_overlap(cast("Any", rows), ratio, seed)
    return {"train": rows.select(train), "validation": rows.select(validation)}


def _check_side(name: str, side: Dataset, file: str, layout: Layout) -> None:
    if "source" in layout.required and any(source is None for source in side["source"]):
        raise ValueError(f"the model reads sources, but {name} ratings of {file} have none")
    if len(side) < 2 or _scores(side).min() == _scores(side).max():
        raise ValueError(
            f"the {name} ratings ({len(side)} of {file}) must be at least two with different scores: nothing can be learnt or "
            "chosen from equal ones; give more ratings, or set more of them apart with --validation-ratio"
        )


def rank_indices(side: Dataset, layout: Layout) -> RankIndices:
    """Return the pairs of ratings of one segment whose raw scores differ enough (daRR).

    Args:
        side: ratings with raw_score.
        layout: texts that the model reads; ratings with the same texts apart from the candidate are of one segment.

    Returns:
        The indices of the better and of the worse rating of each pair.

    Raises:
        ValueError: if there are none.
    """
    segments: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    texts = zip(*(side[name] for name in layout.inputs if name != "candidate"), strict=True)
    for i, (segment, raw_score) in enumerate(zip(texts, side["raw_score"], strict=True)):
        if raw_score is not None:
            segments.setdefault(segment, []).append((i, raw_score))
    pairs = [pair for ratings in segments.values() for pair in combinations(ratings, 2)]
    ranked = [
        sorted(pair, key=lambda rating: -rating[1]) for pair in pairs if abs(pair[0][1] - pair[1][1]) >= MIN_DIFFERENCE
    ]
    if not ranked:
        raise ValueError(
            "metric_for_best_model darr needs validation ratings with a raw_score, of segments with two candidates "
            f"that differ by at least {MIN_DIFFERENCE:g} points of 100, found none: add them, or choose by kendall_tau"
        )
    better, worse = (np.array([pair[i][0] for pair in ranked]) for i in (0, 1))
    return better, worse


def standardize_ratings(sides: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], dict[str, Any] | None]:
    """Bring scores that are far from standardised to mean 0 and deviation 1, separately for each language pair.

    A new head predicts about 0, and a trained one standardised ratings (BLEURT, section 5.1): with other ratings the
    first steps teach little but the scale. Validation ratings are transformed by the mean and deviation of the
    *training* ratings of their language pair, as the predictions of the model are: so the validation loss is on the
    scale of the training loss, and nothing of the validation ratings enters training.

    Args:
        sides: "train" and "validation", each with "score" and "lp".

    Returns: the data sets with the new scores; and a record: "by" ("lp" or "file") and "groups", the "mean",
        "deviation" and number of "ratings" by language pair. The record is None if the training ratings are close to
        standardised, and all stay as they are.
    """
    scores, rows_by_pair = _scores(sides["train"]), _rows_by_language_pair(sides["train"])
    if abs(scores.mean()) <= FARTHEST_MEAN and LEAST_DEVIATION < scores.std() < LARGEST_DEVIATION:
        return dict(sides), None
    # Pairs with enough ratings that vary; all others share the mean and deviation of the whole file.
    by_pair = {name: scores[rows] for name, rows in rows_by_pair.items() if name and len(rows) >= LEAST_OF_A_PAIR}
    by_pair = {name: values for name, values in by_pair.items() if values.std() > 0}
    pooled = "all others" if by_pair else "all"
    groups = {
        name: {"mean": float(values.mean()), "deviation": float(values.std()), "ratings": len(values)}
        for name, values in {**by_pair, pooled: scores}.items()
    }
    standardized = {}
    for side_name, side in sides.items():
        values = _scores(side)
        for name, rows in _rows_by_language_pair(side).items():
            group = groups.get(name, groups[pooled])
            values[rows] = (values[rows] - group["mean"]) / group["deviation"]
        standardized[side_name] = side.remove_columns("score").add_column("score", cast("Any", values))
    if not set(rows_by_pair) - set(by_pair):
        del groups[pooled]
    return standardized, {"by": "lp" if by_pair else "file", "groups": groups}


def standardize_kinds(sides: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], dict[str, Any]]:
    """Put ratings of several kinds on one scale, and weight them.

    Scores get mean 0 and deviation 1 by kind and language pair, as of the training ratings, and are cut at 3. With few
    ratings of a language pair, those of the kind count together. The weight of a rating is multiplied by n / (n + k)
    for n judgements, the share of its variance that is not noise, where k is the `NOISE` of its kind.

    Args:
        sides: "train" and "validation", each with `COLUMNS`.

    Returns: the data sets with new scores and weights; and a record as of `standardize_ratings`, "by" "kind and lp".

    Raises:
        ValueError: if there are too few training ratings of a kind, or they do not vary.
    """
    scores, rows_by_group = _scores(sides["train"]), defaultdict(list)
    for row, names in enumerate(_kind_groups(sides["train"])):
        for name in dict.fromkeys(names):  # the two are the same without a language pair
            rows_by_group[name].append(row)
    groups = {
        name: {"mean": float(scores[rows].mean()), "deviation": float(scores[rows].std()), "ratings": len(rows)}
        for name, rows in rows_by_group.items()
        if len(rows) >= LEAST_OF_A_PAIR and scores[rows].std() > 0
    }
    standardized, used = {}, set()
    for side_name, side in sides.items():
        values = _scores(side)
        for row, names in enumerate(_kind_groups(side)):
            group = next((name for name in names if name in groups), None)
            if group is None:
                raise ValueError(
                    f"ratings of kind {names[-1]!r} cannot be standardised: expected at least {LEAST_OF_A_PAIR} with "
                    "different scores to train on; leave them out, or add more"
                )
            used.add(group)
            values[row] = (values[row] - groups[group]["mean"]) / groups[group]["deviation"]
        judgements = np.array([n or 1 for n in side["n_annotations"]], dtype=np.float64)
        noise = np.array([NOISE.get(kind, 1.0) for kind in side["kind"]])
        columns = {
            "score": values.clip(-LARGEST_SCORE, LARGEST_SCORE),
            "weight": _weights(side) * judgements / (judgements + noise),
        }
        standardized[side_name] = _replace_columns(side, columns)
    return standardized, {"by": "kind and lp", "groups": {name: groups[name] for name in groups if name in used}}


def _kind_groups(side: Dataset) -> Iterator[tuple[str, str]]:
    """Yield the names of the groups of each rating, the smaller one first."""
    for kind, lp in zip(side["kind"], side["lp"], strict=True):
        yield f"{kind or ''} {lp or ''}".strip(), kind or ""


def _scale_weights(sides: Mapping[str, Dataset], file: str) -> dict[str, Dataset]:
    """Scale the weights of training ratings to mean 1; without weights, remove the column."""
    weights = _weights(sides["train"])
    if weights.min() < 0 or not weights.any():
        raise ValueError(
            f"the weights of {file} must be 0 or more, and some above 0, found {weights.min():g} to {weights.max():g}"
        )
    if np.ptp(weights) == 0:
        return {name: side.remove_columns("weight") for name, side in sides.items()}
    return {name: _replace_columns(side, {"weight": _weights(side) / weights.mean()}) for name, side in sides.items()}


def _weights(side: Dataset) -> Values:
    return np.array([1.0 if weight is None else weight for weight in side["weight"]])


def _replace_columns(side: Dataset, columns: Mapping[str, Values]) -> Dataset:
    for name, values in columns.items():
        side = side.remove_columns(name).add_column(name, cast("Any", values))
    return side


def _scores(side: Dataset) -> Values:
    return np.array(side["score"][:], dtype=np.float64)


def _rows_by_language_pair(side: Dataset) -> dict[str, NDArray[np.int64]]:
    """Return the indices of the ratings of each language pair; those without one are under ""."""
    names, inverse = np.unique([name or "" for name in side["lp"]], return_inverse=True)
    return {str(name): np.flatnonzero(inverse == i) for i, name in enumerate(names)}
