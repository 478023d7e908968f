"""Read human ratings from files: the columns of a rating, and checks whose errors name file and line."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.metric.files.records import file_form, parse_number, read_records

if TYPE_CHECKING:
    from datasets import Dataset, Features

Rating = dict[str, Any]

# Columns of ratings and their Arrow types, in every builder and file.
RATING_COLUMNS = {
    "year": "int32",
    "lp": "string",
    "segment_id": "int64",
    "system": "string",
    "source": "string",
    "reference": "string",
    "candidate": "string",
    "score": "float64",
    "raw_score": "float64",
    "n_annotations": "int32",
}
# Columns that training reads as well: kind of judgement, and weight in the loss.
TRAINING_COLUMNS = {**RATING_COLUMNS, "kind": "string", "weight": "float64"}
REQUIRED_COLUMNS = ("reference", "candidate", "score")
FAULTS_SHOWN = 10
NUMBER = r"\d{1,18}"  # fits into 64 bits


def rating_records(
    path: str | Path, required: Sequence[str] = REQUIRED_COLUMNS, aliases: Mapping[str, str] | None = None
) -> list[Rating]:
    """Read and check a file of human ratings: CSV, TSV, JSON lines (each may be gzipped) or Parquet.

    Args:
        path: the file; `read_records` describes each format.
        required: columns that must have a value in each record; only a candidate may be empty text.
        aliases: other names of columns, each with the usual name.

    Returns: One dict per record with the columns `RATING_COLUMNS`, None where the file has no value. `segment_id` is a
        whole number if it is in all records, else text.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is malformed or has no records, a column or value is missing, or a score is not a
            finite number; the message names the file and the lines.
    """
    ratings = list(each_rating(path, required, aliases))
    _unify_segment_ids(ratings)
    return ratings


def each_rating(
    path: str | Path,
    required: Sequence[str] = REQUIRED_COLUMNS,
    aliases: Mapping[str, str] | None = None,
    columns: Iterable[str] = RATING_COLUMNS,
) -> Iterator[Rating]:
    """Yield the checked ratings of a file one by one, for files that are too long for a list.

    Arguments and errors are those of `rating_records`; errors are raised at the end, and `segment_id` is as in the
    file. Columns may be any of `TRAINING_COLUMNS`.
    """
    count, faults = 0, []
    for line, record in read_records(path):
        record.update({name: record[alias] for alias, name in (aliases or {}).items() if alias in record})
        missing = [name for name in required if name not in record]
        if missing and file_form(path) != ".jsonl":
            lower = {name.lower(): value for name, value in record.items()}  # a header may be in another case
            record = {**lower, **record}
            missing = [name for name in required if name not in record]
        if missing and file_form(path) != ".jsonl":  # the columns of a table are missing from all its records
            raise ValueError(f"{path}: no column {', '.join(missing)}; found {', '.join(record)}")
        try:
            rating = check_rating(record, required, columns)
        except ValueError as error:
            faults.append(f"{line}: {error}")
            continue
        count += 1
        yield rating
    if faults:
        omitted = f"; and {len(faults) - FAULTS_SHOWN} more" if len(faults) > FAULTS_SHOWN else ""
        raise ValueError(f"{path}: {len(faults)} bad record(s): {'; '.join(faults[:FAULTS_SHOWN])}{omitted}")
    if not count:
        raise ValueError(f"{path}: no records; expected at least one rating with {', '.join(required)}")


def read_ratings(path: str | Path) -> Dataset:
    """Return the ratings of a file, read as by `rating_records`, as a `Dataset` with the columns `RATING_COLUMNS`."""
    from datasets import Dataset

    ratings = rating_records(path)
    return Dataset.from_list(ratings, features=ratings_features(ratings))


def ratings_features(ratings: Sequence[Rating] = ()) -> Features:
    """Return the types of `RATING_COLUMNS`; `segment_id` is text if it is text in any of the ratings."""
    from datasets import Features, Value

    types = dict(RATING_COLUMNS)
    if any(isinstance(rating["segment_id"], str) for rating in ratings):
        types["segment_id"] = "string"
    return Features({name: Value(dtype) for name, dtype in types.items()})


def check_rating(
    record: Mapping[str, Any], required: Sequence[str] = REQUIRED_COLUMNS, columns: Iterable[str] = RATING_COLUMNS
) -> Rating:
    """Return a checked rating, as `rating_records` does.

    Args:
        record: values by column name; numbers may be text.
        required: columns that must have a value.
        columns: columns of the result, any of `TRAINING_COLUMNS`.

    Raises:
        ValueError: if a value is missing or malformed; the message does not name the line.
    """
    if missing := [name for name in required if name not in record]:
        raise ValueError(f"no {', '.join(missing)}; found {', '.join(record) or 'nothing'}")
    return {name: _value(name, record.get(name), name in required) for name in columns}


def _value(name: str, value: Any, required: bool) -> Any:
    blank = isinstance(value, str) and not value.strip()
    if value is None or (blank and name != "candidate"):
        if required:
            raise ValueError(f"{name} is {'missing' if value is None else 'blank'}")
        return None
    if TRAINING_COLUMNS[name].startswith("float"):
        return _real(name, value)
    if name == "segment_id":
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _bounded(name, value) if whole else _text(name, value)
    if TRAINING_COLUMNS[name].startswith("int"):
        return _whole(name, value)
    return _text(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be text, found {_excerpt(value)}")
    if re.search("[\ud800-\udfff]", value):
        raise ValueError(f"{name} has half of a surrogate pair, which is not a character: {_excerpt(value)}")
    return value


def _real(name: str, value: Any) -> float:
    try:
        number = parse_number(value)
    except ValueError:
        raise ValueError(f"{name} must be a number, found {_excerpt(value)}") from None
    if not math.isfinite(number):
        raise ValueError(f"{name} must be a finite number, found {_excerpt(value)}")
    return number


def _whole(name: str, value: Any) -> int:
    number = _real(name, value)
    if not number.is_integer():
        raise ValueError(f"{name} must be a whole number, found {_excerpt(value)}")
    return _bounded(name, int(number))


def _bounded(name: str, number: int) -> int:
    """Return a number, or raise ValueError if it does not fit into the Arrow type of its column."""
    bits = int(RATING_COLUMNS[name].removeprefix("int"))
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise ValueError(f"{name} must be a whole number of at most {bits} bits, found {_excerpt(number)}")
    return number


def _excerpt(value: Any) -> str:
    return repr(value)[:40]


def _unify_segment_ids(ratings: list[Rating]) -> None:
    """Convert the identifiers to numbers if all are numbers, else to text, since an Arrow column has one type."""
    with_id = [rating for rating in ratings if rating["segment_id"] is not None]
    numbers = all(re.fullmatch(NUMBER, str(rating["segment_id"])) for rating in with_id)
    convert = int if numbers else str
    for rating in with_id:
        rating["segment_id"] = convert(rating["segment_id"])
