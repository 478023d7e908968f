"""Where WMT ratings come from: files of ratings, the official archives (`wmt_archives`), or a dataset on the Hub."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

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
# Names that are in use for the same things.
ALIASES = {"z_score": "score", "n_annot": "n_annotations"}

TO_ENGLISH = ("*-en",)

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


def read_wmt(
    data_dir: str | Path | None = None,
    hub_dataset: str | None = None,
    hub_revision: str | None = None,
    language_pairs: Sequence[str] = TO_ENGLISH,
) -> list[Rating]:
    """Read the direct assessments of some language pairs, of all the years there are.

    Args:
        data_dir: a file of ratings; a folder of such files; or a folder with the official archives, unpacked.
        hub_dataset: instead, a dataset on the Hub with the columns of `HUB_DATASET`.
        hub_revision: its branch, tag or commit.
        language_pairs: patterns such as "de-en" or "*-en".

    Returns:
        dicts with the columns of `rating_files.RATING_COLUMNS`.

    Raises:
        FileNotFoundError: with what was looked for.
        ValueError: naming file and line of a bad record, or if no rating is of those language pairs.
    """
    seen: set[str] = set()

    def wanted(lp: str) -> bool:
        seen.add(lp)
        return matches(lp, language_pairs)

    if hub_dataset:
        ratings = read_hub(hub_dataset, hub_revision, wanted)
    else:
        ratings = _read_local(data_dir, wanted)
    if not ratings:
        found = ", ".join(sorted(seen)) or "none"
        raise ValueError(f"no ratings of {', '.join(language_pairs)} in {hub_dataset or data_dir}; found {found}")
    return ratings


def source_fingerprint(
    data_dir: str | Path | None = None, hub_dataset: str | None = None, hub_revision: str | None = None
) -> str:
    """Hash what `read_wmt` would read, and the code that reads it; the arguments and errors are those of `read_wmt`."""
    if bool(data_dir) == bool(hub_dataset):
        raise ValueError(
            "needs either data_dir, a file or folder of ratings, or hub_dataset, such as "
            f'"{HUB_DATASET}"; found {"both" if data_dir else "neither"}'
        )
    if hub_dataset:
        return f"{hub_fingerprint(hub_dataset, hub_revision)}-{fingerprint([])}"
    kind, files = _local_files(data_dir)
    index = index_files(data_dir or ".")
    if kind == "archives":  # the texts stand in files of their own
        return fingerprint(path for paths in index.values() for path in paths)
    ranks = [path for path in _record_files(data_dir) if path not in files]
    return fingerprint([*files, *ranks, *index.get(RR_SEGLEVEL, [])])


def _read_local(data_dir: str | Path | None, wanted: Callable[[str], bool]) -> list[Rating]:
    kind, files = _local_files(data_dir)
    if kind == "archives":
        ratings = read_archives(data_dir or ".", wanted)
    else:
        ratings = [rating for file in files for rating in rating_records(file, REQUIRED_COLUMNS, ALIASES)]
        ratings = [rating for rating in ratings if wanted(rating["lp"])]
        _check_segment_ids(ratings, data_dir)
    _warn_of_repeats(ratings, data_dir)
    return ratings


def _local_files(data_dir: str | Path | None) -> tuple[str, list[Path]]:
    """Return whether a folder is one of "archives" or of rating "files", and the files that hold ratings."""
    path = Path(data_dir or ".")
    archives = rating_archives(index_files(path)) if path.is_dir() else []
    if archives:
        return "archives", archives
    files = [file for file in _record_files(data_dir) if not is_relative_ranks(file)]
    if not files:
        raise FileNotFoundError(
            f"no WMT ratings in {data_dir}: looked for files {', '.join('*' + form for form in EXTENSIONS)} (or .gz) "
            f"with the columns {', '.join(REQUIRED_COLUMNS)}, and for the official {LAYOUT} in any folder below"
        )
    return "files", files


def _record_files(data_dir: str | Path | None) -> list[Path]:
    path = Path(data_dir or ".")
    files = [path] if path.is_file() else sorted(path.iterdir()) if path.is_dir() else []
    return [file for file in files if file.is_file() and file_form(file) and file.name != RR_SEGLEVEL]


def is_relative_ranks(file: Path) -> bool:
    """Return whether a file holds pairs of systems, one better than the other, in place of ratings."""
    return any("better" in record and "worse" in record for _, record in [next(read_records(file), ("", {}))])


def _check_segment_ids(ratings: list[Rating], data_dir: str | Path | None) -> None:
    for rating in ratings:
        if not isinstance(rating["segment_id"], int):
            raise ValueError(f"{data_dir}: segment_id must be a whole number, found {rating['segment_id']!r}")


def _warn_of_repeats(ratings: list[Rating], data_dir: str | Path | None) -> None:
    keys = Counter(tuple(rating[name] for name in ("year", "lp", "segment_id", "system")) for rating in ratings)
    if repeats := len(ratings) - len(keys):
        example = " ".join(map(str, keys.most_common(1)[0][0]))
        warnings.warn(
            f"{data_dir}: {repeats} ratings are of an output that another one is of too (such as {example}); "
            "is a file there twice?",
            stacklevel=2,
        )


def matches(lp: str, language_pairs: Sequence[str]) -> bool:
    """Return whether a language pair matches a pattern, such as "de-en" or "*-en"."""
    return any(fnmatch(lp, pattern) for pattern in language_pairs)


def read_hub(
    dataset: str = HUB_DATASET, revision: str | None = None, wanted: Callable[[str], bool] = lambda lp: True
) -> list[Rating]:
    """Download the ratings of a dataset; see `from_hub_columns`.

    Args:
        dataset: its name on the Hub, or a local folder in its form.
        revision: branch, tag or commit.
        wanted: returns whether to read a language pair.

    Raises:
        FileNotFoundError: if it cannot be obtained.
        ValueError: if it has other columns, or a wrong value.
    """
    from datasets import load_dataset

    try:
        ratings = load_dataset(dataset, split=HUB_SPLIT, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    return from_hub_columns(ratings, wanted)


def hub_fingerprint(dataset: str = HUB_DATASET, revision: str | None = None) -> str:
    """Return a text that changes when the files of the dataset do; errors as in `read_hub`."""
    from datasets import load_dataset_builder

    try:
        builder = load_dataset_builder(dataset, revision=revision)
    except (OSError, ValueError) as error:
        raise _not_found(dataset, revision, error) from error
    return f"{builder.config_id}-{builder.hash}"


def from_hub_columns(dataset: Dataset, wanted: Callable[[str], bool] = lambda lp: True) -> list[Rating]:
    """Return the ratings of a dataset with the columns `HUB_COLUMNS`.

    It names neither systems nor segments: `system` is None, and `segment_id` counts the distinct pairs of source and
    reference of a year and language pair, from 1. Ratings without a reference are left out, with a warning.

    Args:
        dataset: one record a rating.
        wanted: returns whether to read a language pair.

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
