"""Where WMT ratings come from: a folder of rating files, the official archives, or the Hub."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path

from bleurt_repro.datasets_builders.fingerprints import fingerprint
from bleurt_repro.datasets_builders.rating_files import Rating, rating_records
from bleurt_repro.datasets_builders.record_files import EXTENSIONS, file_form, read_records
from bleurt_repro.datasets_builders.wmt_archives import (
    LAYOUT,
    RR_SEGLEVEL,
    rating_archives,
    read_archives,
)
from bleurt_repro.datasets_builders.wmt_hub import HUB_DATASET, hub_fingerprint, read_hub
from bleurt_repro.datasets_builders.wmt_texts import index_files

REQUIRED_COLUMNS = ("year", "lp", "segment_id", "reference", "candidate", "score")
# Names that are in use for the same things.
ALIASES = {"z_score": "score", "n_annot": "n_annotations"}

TO_ENGLISH = ("*-en",)


def matches(lp: str, language_pairs: Sequence[str]) -> bool:
    """Say whether a pair is one of some patterns, such as "de-en" or "*-en"."""
    return any(fnmatch(lp, pattern) for pattern in language_pairs)


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
        FileNotFoundError: saying what was looked for.
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
    """Tell a folder of rating files from one of archives; give the files that hold ratings."""
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
    """Say whether a file holds pairs of systems, one better than the other, in place of ratings."""
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
            "does a file stand there twice?",
            stacklevel=2,
        )
