"""Read WMT ratings from files of ratings, the official archives (`wmt_archives`), or a dataset on the Hub."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.ratings.rating_files import Rating, check_rating, rating_records
from bleurt_repro.datasets_builders.ratings.wmt_archives import (
    LAYOUT,
    RR_SEGLEVEL,
    index_files,
    rating_archives,
    read_archives,
)
from bleurt_repro.metric.files.records import EXTENSIONS, file_form, read_records

if TYPE_CHECKING:
    from datasets import Dataset

REQUIRED_COLUMNS = ("year", "lp", "segment_id", "reference", "candidate", "score")
# Other names of these columns.
ALIASES = {"z_score": "score", "n_annot": "n_annotations"}

TO_ENGLISH = ("*-en",)

# Direct assessments of 2017 and later, into and out of English; `score` is standardised by annotator, `raw` is of
# 0..100 (https://huggingface.co/datasets/RicardoRei/wmt-da-human-evaluation).
HUB_DATASET = "RicardoRei/wmt-da-human-evaluation"
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


def read_wmt(
    data_dir: str | Path | Sequence[str | Path] | None = None,
    hub_dataset: str | None = None,
    hub_revision: str | None = None,
    language_pairs: Sequence[str] = TO_ENGLISH,
) -> list[Rating]:
    """Read the direct assessments of some language pairs, of all years that are there.

    Args:
        data_dir: file of ratings, folder of such files, or folder with the unpacked official archives; or a list of
            folders with archives.
        hub_dataset: dataset on the Hub to read instead, with the columns of `HUB_DATASET`, or with those of ratings,
            as `bleurt-repro publish dataset` writes it.
        hub_revision: branch, tag or commit of the dataset.
        language_pairs: patterns such as "de-en" or "*-en".

    Returns:
        Dicts with the columns of `rating_files.RATING_COLUMNS`.

    Raises:
        FileNotFoundError: if there are no ratings; the message says what was looked for.
        ValueError: if a record is malformed (the message names file and line), or no rating is of those language
            pairs.
    """
    available: set[str] = set()

    def select(lp: str) -> bool:
        available.add(lp)
        return matches(lp, language_pairs)

    if hub_dataset:
        ratings = read_hub(hub_dataset, hub_revision, select)
    else:
        ratings = _read_local(data_dir, select)
    if not ratings:
        pairs = ", ".join(sorted(available)) or "none"
        raise ValueError(f"no ratings of {', '.join(language_pairs)} in {hub_dataset or data_dir}; found {pairs}")
    return ratings


def source_fingerprint(
    data_dir: str | Path | None = None, hub_dataset: str | None = None, hub_revision: str | None = None
) -> str:
    """Return a hash of what `read_wmt` would read, and of the code that reads it.

    Args:
        data_dir: as in `read_wmt`; without it and `hub_dataset`, the official sources are downloaded.
        hub_dataset: as in `read_wmt`.
        hub_revision: as in `read_wmt`.

    Raises:
        FileNotFoundError: as in `read_wmt`.
        ValueError: if both sources are given.
    """
    if data_dir and hub_dataset:
        raise ValueError(
            f'give either data_dir, a file or folder of ratings, or hub_dataset, such as "{HUB_DATASET}"; found both'
        )
    if hub_dataset:
        return f"{hub_fingerprint(hub_dataset, hub_revision)}-{fingerprint([])}"
    if not data_dir:
        return fingerprint([])  # the addresses of the official sources are part of the code
    files = _local_files(data_dir)
    index = index_files(data_dir)
    if files is None:  # the texts are in separate files
        return fingerprint(path for paths in index.values() for path in paths)
    ranks = [path for path in _record_files(data_dir) if path not in files]
    return fingerprint([*files, *ranks, *index.get(RR_SEGLEVEL, [])])


def _read_local(data_dir: str | Path | Sequence[str | Path] | None, select: Callable[[str], bool]) -> list[Rating]:
    files = _local_files(data_dir) if data_dir is None or isinstance(data_dir, (str, Path)) else None
    if files is None:
        ratings = read_archives(data_dir or ".", select)
    else:
        ratings = [rating for file in files for rating in rating_records(file, REQUIRED_COLUMNS, ALIASES)]
        ratings = [rating for rating in ratings if select(rating["lp"])]
        _check_segment_ids(ratings, data_dir)
    _warn_of_repeats(ratings, data_dir)
    return ratings


def _local_files(data_dir: str | Path | None) -> list[Path] | None:
    """Return the files of ratings in a folder, or None if it has the official archives."""
    path = Path(data_dir or ".")
    if path.is_dir() and rating_archives(index_files(path)):
        return None
    files = [file for file in _record_files(data_dir) if not is_relative_ranks(file)]
    if not files:
        raise FileNotFoundError(
            f"no WMT ratings in {data_dir}: looked for files {', '.join('*' + form for form in EXTENSIONS)} (or .gz) "
            f"with the columns {', '.join(REQUIRED_COLUMNS)}, and for the official {LAYOUT} in any folder below"
        )
    return files


def _record_files(data_dir: str | Path | None) -> list[Path]:
    path = Path(data_dir or ".")
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [file for file in files if file.is_file() and file_form(file) and file.name != RR_SEGLEVEL]


def is_relative_ranks(file: Path) -> bool:
    """Return whether a file has pairs of systems, one better than the other, instead of ratings."""
    return any("better" in record and "worse" in record for _, record in [next(read_records(file), ("", {}))])


def _check_segment_ids(ratings: list[Rating], data_dir: Any) -> None:
    for rating in ratings:
        if not isinstance(rating["segment_id"], int):
            raise ValueError(f"{data_dir}: segment_id must be a whole number, found {rating['segment_id']!r}")


def _warn_of_repeats(ratings: list[Rating], data_dir: Any) -> None:
    keys = Counter(tuple(rating[name] for name in ("year", "lp", "segment_id", "system")) for rating in ratings)
    if repeats := len(ratings) - len(keys):
        example = " ".join(map(str, keys.most_common(1)[0][0]))
        warnings.warn(
            f"{data_dir}: {repeats} ratings are of an output that has another rating (such as {example}); is a file "
            "there twice?",
            stacklevel=2,
        )


def matches(lp: str, language_pairs: Sequence[str]) -> bool:
    """Return whether a language pair matches a pattern, such as "de-en" or "*-en"."""
    return any(fnmatch(lp, pattern) for pattern in language_pairs)


def read_hub(
    dataset: str = HUB_DATASET, revision: str | None = None, select: Callable[[str], bool] = lambda lp: True
) -> list[Rating]:
    """Read the ratings of all splits of a dataset on the Hub.

    Args:
        dataset: name on the Hub, or a local folder of the same layout.
        revision: branch, tag or commit.
        select: function that returns whether to read a language pair.

    Raises:
        FileNotFoundError: if it cannot be downloaded.
        ValueError: if it has other columns, or a malformed value.
    """
    from datasets import concatenate_datasets, load_dataset

    try:
        splits = load_dataset(dataset, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    ratings = concatenate_datasets(list(splits.values()))
    if set(REQUIRED_COLUMNS) <= set(ratings.column_names):
        return from_rating_columns(ratings, select)
    return from_hub_columns(ratings, select)


def hub_fingerprint(dataset: str = HUB_DATASET, revision: str | None = None) -> str:
    """Return a text that changes with the files of a dataset; errors are those of `read_hub`."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(dataset, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    return f"{builder.config_id}-{builder.hash}"


def from_rating_columns(dataset: Dataset, select: Callable[[str], bool] = lambda lp: True) -> list[Rating]:
    """Return the ratings of a dataset with the columns of ratings, as `bleurt-repro publish dataset` writes it.

    Args:
        dataset: one row per rating.
        select: function that returns whether to read a language pair.

    Raises:
        ValueError: if a value is missing or malformed; the message names the row.
    """
    rows = [(index, row) for index, row in enumerate(dataset) if select(row["lp"])]
    return [_checked(row, index + 1, REQUIRED_COLUMNS) for index, row in rows]


def from_hub_columns(dataset: Dataset, select: Callable[[str], bool] = lambda lp: True) -> list[Rating]:
    """Return the ratings of a dataset with the columns `HUB_COLUMNS`.

    It names neither systems nor segments: `system` is None, and `segment_id` counts the different pairs of source and
    reference of a year and language pair, from 1. Ratings without a reference are left out, with a warning.

    Args:
        dataset: one row per rating.
        select: function that returns whether to read a language pair.

    Raises:
        ValueError: if a column is missing, or a value is missing or malformed; the message names the row.
    """
    if missing := [name for name in HUB_COLUMNS if name not in dataset.column_names]:
        raise ValueError(
            f"no column {', '.join(missing)} in the dataset: looked for {', '.join(HUB_COLUMNS)}, "
            f"found {', '.join(dataset.column_names)}"
        )
    indices = [i for i, lp in enumerate(dataset["lp"]) if select(lp)]
    rows = dataset.select_columns(list(HUB_COLUMNS)).rename_columns(HUB_COLUMNS).select(indices)
    segments: dict[tuple[int, str], dict[tuple[str, str], int]] = {}
    ratings = []
    for index, row in zip(indices, tqdm(rows, desc="ratings", unit="rating", disable=None), strict=True):
        if row["reference"]:
            numbers = segments.setdefault((row["year"], row["lp"]), {})
            row["segment_id"] = numbers.setdefault((row["source"], row["reference"]), len(numbers) + 1)
            row["candidate"] = row["candidate"] or ""  # CSV files write an empty output as they write a missing one
            ratings.append(_checked(row, index + 1, ("year", "lp", "reference", "candidate", "score")))
    if len(ratings) < len(rows):
        warnings.warn(f"left out {len(rows) - len(ratings)} ratings without a reference", stacklevel=2)
    return ratings


def _checked(row: Mapping[str, Any], number: int, required: Iterable[str]) -> Rating:
    try:
        return check_rating(row, tuple(required))
    except ValueError as error:
        raise ValueError(f"row {number} of the dataset: {error}") from error


def _not_found(dataset: str, revision: str | None, error: Exception) -> FileNotFoundError:
    return FileNotFoundError(
        f"no ratings from the Hub: looked for the dataset {dataset}, revision {revision or 'main'}, "
        f"with the columns {', '.join(HUB_COLUMNS)} or {', '.join(REQUIRED_COLUMNS)} ({error})"
    )
