"""Read one list of texts from a file of any usual kind: a line each, JSON lines, or a column of a CSV or TSV table."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

from bleurt_repro.metric.pair_files import read_lines

# What a text is called in a record: as elsewhere, or simply "text".
COLUMNS = {
    "references": ("reference", "references", "text"),
    "candidates": ("candidate", "text"),
    "sources": ("source", "text"),
}
TABLES = {".csv": ",", ".tsv": "\t"}
JSON_LINES = (".jsonl", ".ndjson")
SUFFIXES = (".txt", *TABLES, *JSON_LINES)


def read_segments(path: str, role: str) -> list[Any]:
    """Read the references, the candidates or the sources of a test set, one a segment.

    Args:
        path: a file; `.csv` and `.tsv` are tables with a header, `.jsonl` and `.ndjson` hold an object or a string a
            line, and anything else ("-", standard input, too) is text of one segment a line.
        role: "references", "candidates" or "sources"; it decides which column or field is read (`COLUMNS`).

    Returns:
        one string a segment; of references in JSON lines, also a list of strings.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if it is malformed or has no such column.
    """
    lines, suffix = read_lines(path), Path(path).suffix.lower()
    if suffix in TABLES:
        return _table_column(path, lines, COLUMNS[role], TABLES[suffix])
    if suffix in JSON_LINES:
        return [
            _field(line, COLUMNS[role], f"{path}, line {number}")
            for number, line in enumerate(lines, start=1)
            if line.strip()
        ]
    return lines


def _table_column(path: str, lines: list[str], names: tuple[str, ...], delimiter: str) -> list[str]:
    rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter, strict=True)
    texts: list[str] = []
    try:
        header = [name.strip() for name in next(rows, [])]
        column = _column(header, names, path)
        for row in rows:
            if not row:
                continue  # a blank line is no record
            if len(row) != len(header):
                raise ValueError(
                    f"{path}, line {rows.line_num}: expected {len(header)} columns as in the header, found {len(row)}"
                )
            texts.append(row[column])
    except csv.Error as error:
        raise ValueError(f"{path}, line {rows.line_num}: not a table of {_kind(delimiter)} ({error})") from error
    return texts


def _column(header: list[str], names: tuple[str, ...], path: str) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    found = ", ".join(repr(name[:30]) for name in header) or "nothing"
    raise ValueError(
        f"{path}, line 1: expected a header with a column {' or '.join(map(repr, names))}, found {found}; "
        "for text of one segment a line, name the file .txt"
    )


def _field(line: str, names: tuple[str, ...], place: str) -> Any:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: not JSON ({error}); each line is a string or an object") from error
    value = record
    if isinstance(record, dict):
        present = [name for name in names if name in record]
        if not present:
            raise ValueError(f"{place}: expected a field {' or '.join(map(repr, names))}, found {list(record)[:5]}")
        value = record[present[0]]
    if isinstance(value, str) or ("references" in names and _strings(value)):
        return value
    expected = "a string or a list of strings" if "references" in names else "a string"
    raise ValueError(f"{place}: expected {expected}, found {json.dumps(value)[:40]}")


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(text, str) for text in value)


def _kind(delimiter: str) -> str:
    return "tab-separated values" if delimiter == "\t" else "comma-separated values"
