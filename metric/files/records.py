"""Read YAML that people write settings in: plain values, no aliases, whatever its depth.

Read records from CSV, TSV, JSON lines or Parquet, each with the place it stands at.

Read tables of text: tab-separated, with or without a header, gzipped or not.
"""

from __future__ import annotations

import csv
import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import Event, Node

EXTENSIONS = (".csv", ".tsv", ".jsonl", ".parquet")

Record = dict[str, Any]


def file_form(path: str | Path) -> str:
    """Give the extension that says a file's form, `.gz` left aside; "" if it is none of `EXTENSIONS`."""
    extension = Path(Path(path).name.lower().removesuffix(".gz")).suffix
    return extension if extension in EXTENSIONS else ""


def read_records(path: str | Path) -> Iterator[tuple[str, Record]]:
    """Give each record of a file with its place, such as "line 3" or "row 3".

    CSV follows RFC 4180: text with commas, quotes or line breaks stands in double quotes. TSV has one record a line
    and no quoting. Both begin with a line of column names. JSON lines hold one object each; blank lines are no
    records. The three may be gzipped (`.gz`). Text is UTF-8.

    Args:
        path: the file; its extension says its form.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the form is unknown, or, naming file and line, if the file is malformed.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"no file {path}: expected records as {', '.join(EXTENSIONS)}")
    if file.is_dir() or not file_form(file):
        found = "a folder" if file.is_dir() else f"{file.suffix or 'no extension'}"
        raise ValueError(f"{path}: expected a file ending in {', '.join(EXTENSIONS)} (or .gz), found {found}")
    yield from _READERS[file_form(file)](file)


def _parquet_records(file: Path) -> Iterator[tuple[str, Record]]:
    import pyarrow
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(file)
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{file}: not a Parquet file ({error})") from error
    for number, record in enumerate(table.to_pylist(), start=1):
        yield f"row {number}", record


def _json_records(file: Path) -> Iterator[tuple[str, Record]]:
    for number, line in enumerate(text_lines(file), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{file}, line {number}: not JSON ({error})") from error
        if not isinstance(record, dict):
            raise ValueError(f"{file}, line {number}: expected a JSON object, found {type(record).__name__}")
        yield f"line {number}", record


def _csv_records(file: Path) -> Iterator[tuple[str, Record]]:
    return _table_records(file, csv.reader(text_lines(file), strict=True))


def _tsv_records(file: Path) -> Iterator[tuple[str, Record]]:
    return _table_records(file, csv.reader(text_lines(file), delimiter="\t", quoting=csv.QUOTE_NONE))


def _table_records(file: Path, reader: Any) -> Iterator[tuple[str, Record]]:
    names: list[str] = []
    for number, fields in _numbered(file, reader):
        if not names:
            names = _column_names(file, fields)
        elif len(fields) != len(names):
            raise ValueError(f"{file}, line {number}: {len(fields)} fields under {len(names)} column names")
        else:
            yield f"line {number}", dict(zip(names, fields, strict=True))


def _numbered(file: Path, reader: Any) -> Iterator[tuple[int, list[str]]]:
    """Give each row with the line it begins on, since quoted text may span lines."""
    number = 1
    try:
        for fields in reader:
            if fields:
                yield number, fields
            number = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{file}, line {number}: malformed record ({error}); in CSV, text with commas, quotes or line breaks "
            "stands in double quotes, and a quote within is doubled"
        ) from error


def _column_names(file: Path, fields: list[str]) -> list[str]:
    names = [field.strip() for field in fields]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(f"{file}, line 1: the column names must be distinct and not blank, found {', '.join(names)}")
    return names


def text_lines(file: Path) -> Iterator[str]:
    """Give the lines of a text file, ends included; only line feeds end a line, since text may hold other breaks."""
    number = 0
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                yield (line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}, line {number}: not UTF-8 ({error.reason}); save the file as UTF-8") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{file}, line {number + 1}: not a whole gzip file ({error})") from error


_READERS = {".csv": _csv_records, ".tsv": _tsv_records, ".jsonl": _json_records, ".parquet": _parquet_records}


def read_table(path: str | Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a TSV file.

    Args:
        path: the file; it may end in .gz.
        columns: the columns' names, in order. A first line of exactly these names is a header.

    Returns:
        a dict for each line, of stripped texts.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a line has other than so many columns, or is not UTF-8; or if there is none.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: expected a TSV file with the columns {', '.join(columns)}")
    rows = []
    for number, line in _lines(Path(path)):
        cells = [cell.strip() for cell in line.rstrip("\r\n").split("\t")]
        if number == 1 and cells == list(columns):
            continue
        if len(cells) != len(columns):
            raise ValueError(
                f"{path}, line {number}: expected {len(columns)} columns ({', '.join(columns)}), found {len(cells)}: "
                "part them by tabs, and leave none out"
            )
        rows.append(dict(zip(columns, cells, strict=True)))
    if not rows:
        raise ValueError(f"{path} is empty: expected lines of {', '.join(columns)}, parted by tabs")
    return rows


def parse_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` words, such as the weights of sources.

    Raises:
        ValueError: if a word is not of that form, or a name stands twice.
    """
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"--{option} {word}: expected NAME=VALUE")
        if name in pairs:
            raise ValueError(f"--{option} names {name} twice")
        pairs[name] = value
    return pairs


def parse_weights(words: Sequence[str], option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` words; no number is negative.

    Raises:
        ValueError: as `parse_pairs`, and for a value that is no such number.
    """
    weights = {}
    for name, value in parse_pairs(words, option).items():
        try:
            weights[name] = float(value)
        except ValueError:
            raise ValueError(f"--{option} {name}={value}: expected a number") from None
        if not 0 <= weights[name] < float("inf"):
            raise ValueError(f"--{option} {name}={value}: expected a number that is not negative")
    return weights


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: not UTF-8 (byte {error.start + 1})") from error
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no complete gzip file ({error})") from error


# Lists within lists; settings have two. The time that PyYAML takes grows with the square of the depth.
DEEPEST = 20


def read_plain_yaml(path: Path) -> tuple[Node | None, Any]:
    """Read a YAML file.

    Args:
        path: the file, UTF-8.

    Returns:
        the nodes, which know their lines, and the values; None and None for an empty file.

    Raises:
        ValueError: naming the file, if it is no YAML, is nested too deeply (`DEEPEST`), or has aliases ("*name"): no settings need
            them, and a few lines of them stand for gigabytes.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    # Some values that look like numbers or dates and are none make PyYAML raise these errors of Python's own.
    except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}") from error


def _check_events(events: Iterable[Event]) -> None:
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            raise ValueError(f"line {event.start_mark.line + 1} has an alias (*{event.anchor}): write values out")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ValueError(f"line {event.start_mark.line + 1} is nested more than {DEEPEST} deep")
