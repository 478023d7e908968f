"""Read WMT ratings from the Hub."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING

from tqdm import tqdm

from bleurt_repro.datasets_builders.rating_files import Rating, check_rating

if TYPE_CHECKING:
    from datasets import Dataset

# Direct assessments of 2017 and later, into and out of English; `score` is standardised by annotator, `raw` is of
# 0..100 (https://huggingface.co/datasets/RicardoRei/wmt-da-human-evaluation).
HUB_DATASET = "RicardoRei/wmt-da-human-evaluation"
HUB_SPLIT = "train"
HUB_COLUMNS = {
    "lp": "lp",
    "src": "source",
    "mt": "candidate",
    "ref": "reference",
    "score": "score",
    "raw": "raw_score",
    "annotators": "n_annotations",
    "year": "year",
}


def read_hub(
    dataset: str = HUB_DATASET, revision: str | None = None, wanted: Callable[[str], bool] = lambda lp: True
) -> list[Rating]:
    """Download the ratings of a dataset; see `from_hub_columns`.

    Args:
        dataset: its name on the Hub, or a local folder in its form.
        revision: branch, tag or commit.
        wanted: says whether to read a language pair.

    Raises:
        FileNotFoundError: if it cannot be had.
        ValueError: if it has other columns, or a wrong value.
    """
    from datasets import load_dataset

    try:
        ratings = load_dataset(dataset, split=HUB_SPLIT, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    return from_hub_columns(ratings, wanted)


def hub_fingerprint(dataset: str = HUB_DATASET, revision: str | None = None) -> str:
    """Give a text that changes when the files of the dataset do; errors as in `read_hub`."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(dataset, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    return f"{builder.config_id}-{builder.hash}"


def from_hub_columns(dataset: Dataset, wanted: Callable[[str], bool] = lambda lp: True) -> list[Rating]:
    """Give the ratings of a dataset with the columns `HUB_COLUMNS`.

    It names neither systems nor segments: `system` is None, and `segment_id` counts the distinct pairs of source and
    reference of a year and language pair, from 1. Ratings without a reference are left out, with a warning.

    Args:
        dataset: one record a rating.
        wanted: says whether to read a language pair.

    Raises:
        ValueError: naming the row, if a column or a value is missing or wrong.
    """
    if missing := [name for name in HUB_COLUMNS if name not in dataset.column_names]:
        raise ValueError(
            f"no column {', '.join(missing)} in the dataset: looked for {', '.join(HUB_COLUMNS)}, "
            f"found {', '.join(dataset.column_names)}"
        )
    chosen = [i for i, lp in enumerate(dataset["lp"]) if wanted(lp)]
    rows = dataset.select_columns(list(HUB_COLUMNS)).rename_columns(HUB_COLUMNS).select(chosen)
    segments: dict[tuple[int, str], dict[tuple[str, str], int]] = {}
    ratings = []
    for index, row in zip(chosen, tqdm(rows, desc="ratings", unit="rating", disable=None), strict=True):
        if row["reference"]:
            numbers = segments.setdefault((row["year"], row["lp"]), {})
            row["segment_id"] = numbers.setdefault((row["source"], row["reference"]), len(numbers) + 1)
            row["candidate"] = row["candidate"] or ""  # CSV files write an empty output as they write a missing one
            ratings.append(_checked(row, index + 1))
    if len(ratings) < len(rows):
        warnings.warn(f"left out {len(rows) - len(ratings)} ratings without a reference", stacklevel=2)
    return ratings


def _checked(row: Rating, number: int) -> Rating:
    try:
        return check_rating(row, ("year", "lp", "reference", "candidate", "score"))
    except ValueError as error:
        raise ValueError(f"row {number} of the dataset: {error}") from error


def _not_found(dataset: str, revision: str | None, error: Exception) -> FileNotFoundError:
    return FileNotFoundError(
        f"no ratings from the Hub: looked for the dataset {dataset}, revision {revision or 'main'}, "
        f"split {HUB_SPLIT}, with the columns {', '.join(HUB_COLUMNS)} ({error})"
    )
