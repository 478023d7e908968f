"""Read human ratings from CSV, TSV, JSON lines or Parquet; faults are named by file and line."""

from __future__ import annotations

import csv
import gzip
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RATING_COLUMNS = (
    "year",
    "lp",
    "segment_id",
    "system",
    "source",
    "reference",
    "candidate",
    "score",
    "raw_score",
    "n_annotations",
)
REQUIRED_COLUMNS = ("reference", "candidate", "score")
WHOLE_NUMBERS = ("year", "n_annotations")
REAL_NUMBERS = ("score", "raw_score")
EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")
FAULTS_SHOWN = 10

Rating = dict[str, Any]


def read_ratings(
    path: str | Path, required: Sequence[str] = REQUIRED_COLUMNS, aliases: Mapping[str, str] | None = None
) -> list[Rating]:
    """Read and check a file of human ratings.

    CSV follows RFC 4180: text with commas, quotes or line breaks stands in double quotes. TSV has one record a line
    and no quoting. Both begin with a line of column names. A text file may be gzipped (`.gz`). Columns other than
    `RATING_COLUMNS` are left out.

    Args:
        path: the file; its extension (.csv, .tsv, .jsonl, .parquet) says its form.
        required: columns that must be there and have a value in each record.
        aliases: other names of columns, each with the name it is given here.

    Returns:
        one dict a record, with all of `RATING_COLUMNS`; None where the file has no value. `segment_id` is a whole
        number if all are, else a string.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming the file and the lines at fault: a missing column, text that is no UTF-8, broken JSON, a
            quote never closed, a score that is no finite number, no records at all.
    """
    ratings, faults = [], []
    for place, record in read_records(path):
        for other, name in (aliases or {}).items():
            if other in record and name not in record:
                record[name] = record[other]
        try:
            ratings.append(_checked(record, required))
        except ValueError as error:
            faults.append(f"{place}: {error}")
    if faults:
        more = f"; and {len(faults) - FAULTS_SHOWN} more" if len(faults) > FAULTS_SHOWN else ""
        raise ValueError(f"{path}: {len(faults)} bad record(s): {'; '.join(faults[:FAULTS_SHOWN])}{more}")
    if not ratings:
        raise ValueError(f"{path}: no records; expected at least one rating with {', '.join(required)}")
    _unify_segment_ids(ratings)
    return ratings


def read_records(path: str | Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Give each record of a file with its place ("line 3", "row 3"), unchecked.

    Args:
        path: a .csv, .tsv, .jsonl (each also with .gz) or .parquet file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the form is unknown or the file is malformed.
    """
    file = Path(path)
    extension = Path(file.name.removesuffix(".gz")).suffix.lower()
    if not file.is_file():
        raise FileNotFoundError(f"no file {path}: expected ratings as {', '.join(EXTENSIONS)}")
    if extension not in EXTENSIONS:
        raise ValueError(f"{path}: the form is told by the extension, expected one of {', '.join(EXTENSIONS)}")
    if extension == ".parquet":
        yield from _parquet_records(file)
    elif extension == ".jsonl":
        yield from _json_records(file)
    else:
        yield from _table_records(file, extension)


def _parquet_records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise ValueError(f"{file}: not a Parquet file ({error})") from error
    for number, record in enumerate(table.to_pylist(), start=1):
        yield f"row {number}", record


def _json_records(file: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(_text(file).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: not JSON ({error})") from error
        if not isinstance(record, dict):
            raise ValueError(f"{file}, line {number}: expected a JSON object, found {type(record).__name__}")
        yield f"line {number}", record


def _table_records(file: Path, extension: str) -> Iterator[tuple[str, dict[str, Any]]]:
    text = io.StringIO(_text(file), newline="")
    if extension == ".tsv":
        reader = csv.reader(text, delimiter="\t", quoting=csv.QUOTE_NONE)
    else:
        reader = csv.reader(text, strict=True)
    names: list[str] | None = None
    number = 1
    try:
        for fields in reader:
            if names is None:
                names = [field.strip() for field in fields]
            elif fields:
                if len(fields) != len(names):
                    raise ValueError(f"{file}, line {number}: {len(fields)} fields under {len(names)} column names")
                yield f"line {number}", dict(zip(names, fields, strict=True))
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{file}, line {number}: not a valid {extension[1:].upper()} record ({error}); "
            'in CSV, text with quotes stands in quotes and each quote in it is doubled ("")'
        ) from error


def _text(file: Path) -> str:
    content = file.read_bytes()
    if file.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError) as error:
            raise ValueError(f"{file}: not a gzip file ({error})") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{file}, line {line}: not UTF-8 ({error.reason}); save the file as UTF-8") from error


def _checked(record: Mapping[str, Any], required: Sequence[str]) -> Rating:
    for name in required:
        if name not in record:
            raise ValueError(f"no {name}; found {', '.join(record) or 'nothing'}")
    return {name: _value(name, record.get(name), name in required) for name in RATING_COLUMNS}


def _value(name: str, value: Any, required: bool) -> Any:
    blank = value is None or (isinstance(value, str) and not value.strip())
    if blank and name != "candidate":
        if required:
            raise ValueError(f"{name} is {'missing' if value is None else 'blank'}")
        return None
    if name in REAL_NUMBERS:
        return _real(name, value)
    if name in WHOLE_NUMBERS:
        return _whole(name, value)
    if name == "segment_id" and isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, found {_shown(value)}")
    return value


def _real(name: str, value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise TypeError
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a number, found {_shown(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, found {_shown(value)}")
    return number


def _whole(name: str, value: Any) -> int:
    number = _real(name, value)
    if not number.is_integer():
        raise ValueError(f"{name} must be a whole number, found {_shown(value)}")
    return int(number)


def _shown(value: Any) -> str:
    return repr(value)[:40]


def _unify_segment_ids(ratings: list[Rating]) -> None:
    """Make the identifiers numbers if all are, else strings, since an Arrow column has one type."""
    identifiers = [rating["segment_id"] for rating in ratings if rating["segment_id"] is not None]
    convert = int if all(str(identifier).isdecimal() for identifier in identifiers) else str
    for rating in ratings:
        if rating["segment_id"] is not None:
            rating["segment_id"] = convert(rating["segment_id"])
