"""Read one list of texts from a file of any usual kind: a line each, JSON lines, or a column of a CSV or TSV table.

Read the text to score: one segment a line, or JSON lines of pairs; faults are named by file and line.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

STDIN = "-"
FIELDS = (
    'an object with "candidate", "reference" (or "references", a list) and, where the checkpoint reads it, "source"'
)


def read_lines(path: str) -> list[str]:
    """Read a text file of one segment a line.

    Args:
        path: the file, or "-" for standard input.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is no UTF-8.
    """
    return [line for _, line in _numbered_lines(path)]


def read_pairs(path: str) -> dict[str, list[Any]]:
    """Read JSON lines with the fields reference or references, candidate and, in all lines or in none, source.

    Args:
        path: the file, or "-" for standard input. Other fields are left alone; blank lines are no records.

    Returns:
        the keyword arguments of `BleurtScorer.score`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a line is malformed.
    """
    with opened(path) as file:
        records = list(pair_records(file, path))
    texts: dict[str, list[Any]] = {
        "references": [references for references, _, _ in records],
        "candidates": [candidate for _, candidate, _ in records],
    }
    sources = [source for _, _, source in records]
    if any(source is not None for source in sources):
        if None in sources:
            raise ValueError(f'{_shown(path)}: record {sources.index(None) + 1} has no "source" but others have one')
        texts["sources"] = sources
    return texts


def pair_records(file: Iterable[bytes], path: str) -> Iterator[tuple[list[str], str, str | None]]:
    """Give (references, candidate, source) of each JSON line, one by one; see `read_pairs`."""
    for number, line in numbered_lines(file, path):
        if line.strip():
            yield _parsed(line, f"{_shown(path)}, line {number}")


def _parsed(line: str, place: str) -> tuple[list[str], str, str | None]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: not JSON ({error}); each line is {FIELDS}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{place}: found {type(record).__name__}; each line is {FIELDS}")
    # A checkpoint that reads no references takes records of source and candidate.
    without = not {"reference", "references"} & set(record) and record.get("source") is not None
    if ("reference" in record) == ("references" in record) and not without:
        raise ValueError(f'{place}: needs one of "reference" and "references"; each line is {FIELDS}')
    references = [] if without else record["references"] if "references" in record else [record["reference"]]
    if not isinstance(references, list) or not (references or without):
        raise ValueError(f'{place}: "references" must be a list of at least one string')
    texts = {"candidate": record.get("candidate"), **{f"reference {i}": text for i, text in enumerate(references)}}
    if record.get("source") is not None:
        texts["source"] = record["source"]
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{place}: {name} must be a string, found {json.dumps(text)[:40]}; each line is {FIELDS}")
    return references, record["candidate"], record.get("source")


def numbered_lines(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Give (number, line) one by one; only line feeds end a line, since text may hold other separators.

    Args:
        file: its lines as they are, which a file opened in binary mode gives.
        path: what to call it.

    Raises:
        ValueError: if a line is no UTF-8.
    """
    for number, line in enumerate(file, start=1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
            if not line:
                continue
        try:
            yield number, line.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{_shown(path)}, line {number}: not UTF-8 ({error.reason} at byte {error.start})"
            ) from error


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a file, or a copy of what is read only once (standard input, a pipe), so that it can be read again.

    Args:
        path: the file, or "-" for standard input.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is a folder.
    """
    if path != STDIN:
        if not Path(path).exists():
            raise FileNotFoundError(f"no file {path}")
        if Path(path).is_dir():
            raise ValueError(f"{path} is a folder: expected a text file")
        with open(path, "rb") as file:
            if file.seekable():
                yield file
            else:
                with _copied(file) as copy:
                    yield copy
        return
    with _copied(sys.stdin.buffer) as copy:
        yield copy


@contextmanager
def _copied(stream: BinaryIO) -> Iterator[BinaryIO]:
    with tempfile.TemporaryFile() as copy:
        shutil.copyfileobj(stream, copy)
        copy.seek(0)
        yield copy


def _numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    with opened(path) as file:
        yield from numbered_lines(file, path)


def _shown(path: str) -> str:
    return "standard input" if path == STDIN else path


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
