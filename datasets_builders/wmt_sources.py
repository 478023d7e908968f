"""Where WMT ratings are read from; each reader gives plain dicts with the columns of `RATING_COLUMNS`."""

from __future__ import annotations

from pathlib import Path

from bleurt_repro.datasets_builders.rating_files import EXTENSIONS, Rating, read_ratings, read_records

REQUIRED_COLUMNS = ("year", "lp", "segment_id", "reference", "candidate", "score")
# Names that are in use for the same things.
ALIASES = {"z_score": "score", "n_annot": "n_annotations"}


def read_wmt(data_dir: str | Path) -> list[Rating]:
    """Read all the direct assessments in a folder.

    Args:
        data_dir: a folder of rating files, or one such file.

    Raises:
        FileNotFoundError: saying what was looked for.
        ValueError: naming file and line of a bad record.
    """
    return [rating for file in rating_files(data_dir) for rating in read_ratings(file, REQUIRED_COLUMNS, ALIASES)]


def rating_files(data_dir: str | Path) -> list[Path]:
    """Find the files of direct assessments in a folder, by extension; files of relative ranks are left out.

    Args:
        data_dir: the folder, or one file.

    Raises:
        FileNotFoundError: if there is none.
    """
    folder = Path(data_dir)
    files = [folder] if folder.is_file() else sorted(folder.iterdir()) if folder.is_dir() else []
    files = [file for file in files if file.name.lower().removesuffix(".gz").endswith(EXTENSIONS)]
    files = [file for file in files if not _is_relative_ranks(file)]
    if not files:
        raise FileNotFoundError(
            f"no WMT ratings in {data_dir}: looked for files {', '.join('*' + e for e in EXTENSIONS)} (or .gz) "
            f"with the columns {', '.join(REQUIRED_COLUMNS)}"
        )
    return files


def _is_relative_ranks(file: Path) -> bool:
    return any("better" in record and "worse" in record for _, record in [next(read_records(file), ("", {}))])
