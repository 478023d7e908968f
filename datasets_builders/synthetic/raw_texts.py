"""Read raw texts from a file, a local dataset or a dataset of the Hub.

Files are text (one per line), TSV, CSV, JSON lines or Parquet; all but the last may be gzipped. A row that cannot be
read, such as a line that is not UTF-8 or not JSON, is reported and does not stop the reading.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bleurt_repro.metric.files.records import (
    file_form,
    not_utf8,
    numbered_bytes,
    open_input,
    parquet_records,
    parse_json,
)
from bleurt_repro.metric.loading.hub import describe, hub_request, transport_errors
from bleurt_repro.metric.loading.quiet import first_line

DEFAULT_COLUMN = "text"


class Row(NamedTuple):
    """A row of the input: its number from 1, its text, and the reason why it cannot be used, if any."""

    number: int
    text: str
    fault: str = ""


def read_rows(
    source: str, column: str | None = None, subset: str | None = None, split: str = "train"
) -> Iterator[Row]:
    """Read the rows of an input.

    Args:
        source: file, folder with a dataset, or Hub id of a dataset with an optional "@revision".
        column: column with the text: a name, or in TSV and CSV a number from 1; default: "text", or the only column.
        subset: subset ("configuration") of a dataset.
        split: split of a dataset.

    Raises:
        FileNotFoundError: if there is no such file, folder or dataset.
        ValueError: if the input is empty or has no such column; the message names its columns.
    """
    path = Path(source).expanduser()
    if path.is_file():
        rows = _read_file(path, column)
    else:
        rows = _read_dataset(source, column, subset, split)
    empty = True
    for row in rows:
        empty = False
        yield row
    if empty:
        raise ValueError(f"{source} is empty: expected one text per row")


def _read_file(path: Path, column: str | None) -> Iterable[Row]:
    form = file_form(path)
    if form == ".parquet":
        return _pick((record for _, record in parquet_records(path, path)), column, str(path))
    readers = {".tsv": _read_tsv, ".csv": _read_csv, ".jsonl": _read_jsonl}
    lines = _decode_lines(path)
    return readers[form](lines, column, path) if form in readers else lines


def _decode_lines(path: Path) -> Iterator[Row]:
    with open_input(path) as file:
        for number, line in numbered_bytes(file, str(path)):
            text, fault = line.decode("utf-8", "replace").rstrip("\r\n"), ""
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                fault = not_utf8(error)
            yield Row(number, text, fault)


def _read_tsv(lines: Iterator[Row], column: str | None, path: Path) -> Iterator[Row]:
    return _read_table(((line, line.text.split("\t")) for line in lines), column, path)


def _read_csv(lines: Iterator[Row], column: str | None, path: Path) -> Iterator[Row]:
    # One record per line: a broken quote then affects its own row only.
    return _read_table(map(_split_csv, lines), column, path)


def _split_csv(line: Row) -> tuple[Row, list[str]]:
    try:
        return line, next(csv.reader([line.text]), [])
    except csv.Error as error:
        return line._replace(fault=line.fault or f"not CSV ({error})"), []


def _read_table(records: Iterator[tuple[Row, list[str]]], column: str | None, path: Path) -> Iterator[Row]:
    index: int | None = None
    for line, cells in records:
        if index is None:
            index, is_header = _column_index(cells, column, path)
            if is_header:
                continue
        if line.fault or index < len(cells):
            yield Row(line.number, line.text if line.fault else cells[index], line.fault)
        else:
            yield Row(line.number, line.text, f"no column {column}")


def _column_index(first: list[str], column: str | None, path: Path) -> tuple[int, bool]:
    """Return the index of the column, and whether the first row of the file is a header."""
    if column is None and len(first) == 1:
        return 0, first[0].strip().lower() == DEFAULT_COLUMN
    name = column or DEFAULT_COLUMN
    if name in first:
        return first.index(name), True
    if name.isdigit() and 1 <= int(name) <= len(first):
        return int(name) - 1, False
    cells = ", ".join(repr(cell[:30]) for cell in first)
    raise ValueError(
        f"{path} has no column {name!r}: its first row is {cells}; give a name of its header or, without a header, a "
        f"number from 1 to {len(first)} (--column)"
    )


def _read_jsonl(lines: Iterator[Row], column: str | None, path: Path) -> Iterator[Row]:
    name, checked = column or DEFAULT_COLUMN, False
    for line in lines:
        if line.fault or not line.text.strip():
            yield line
            continue
        try:
            record = parse_json(line.text, str(path))
        except ValueError:
            yield Row(line.number, line.text, "not JSON")
            continue
        if not isinstance(record, dict):
            yield Row(line.number, line.text, "not a JSON object")
            continue
        if not checked:
            _check_column(name, list(record), str(path))
            checked = True
        yield _row_of(line.number, record, name)


def _read_dataset(source: str, column: str | None, subset: str | None, split: str) -> Iterator[Row]:
    from datasets import load_dataset, load_from_disk

    folder = Path(source).expanduser()
    try:
        if (folder / "state.json").is_file() or (folder / "dataset_dict.json").is_file():
            saved: Any = load_from_disk(str(folder))
            records = saved[split] if isinstance(saved, dict) else saved
        else:
            name, _, revision = (source, "", "") if folder.is_dir() else source.partition("@")
            records = hub_request(
                lambda: load_dataset(name, subset, split=split, streaming=True, revision=revision or None),
                source,
                "dataset",
                connections=False,
            )
    except (ConnectionError, FileNotFoundError, ValueError, KeyError) as error:
        raise FileNotFoundError(
            f"input {source}: no such file, and no dataset can be read there ({first_line(error)}): give a text, TSV, "
            "CSV, JSONL or Parquet file, a folder with a dataset, or a Hub id"
        ) from error
    try:
        yield from _pick(records, column, source)
    except transport_errors() as error:
        raise ValueError(f"reading {source} stopped: {describe(error)}; run the command again") from error


def _pick(records: Iterable[dict[str, Any]], column: str | None, source: str) -> Iterator[Row]:
    name = column or DEFAULT_COLUMN
    for number, record in enumerate(records, start=1):
        if number == 1:
            _check_column(name, list(record), source)
        yield _row_of(number, record, name)


def _row_of(number: int, record: dict[str, Any], name: str) -> Row:
    value = record.get(name)
    if isinstance(value, str):
        return Row(number, value)
    return Row(
        number,
        str(value),
        f"no text in column {name}" if value is None else f"{type(value).__name__} in column {name}",
    )


def _check_column(name: str, columns: list[str], source: str) -> None:
    if name not in columns:
        raise ValueError(
            f"{source} has no column {name!r}, found {', '.join(columns)}: give the column with the text (--column)"
        )
