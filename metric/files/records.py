"""Read files: lines of text, JSON lines, tables (CSV, TSV), Parquet and YAML; errors name the file and the line.

Text is UTF-8, and a file whose name ends in `.gz` is gzipped. Only line feeds end a line, since text may hold other
separators. All readers of the library use these functions.
"""

from __future__ import annotations

import csv
import gzip
import json
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from yaml import Event, Node

STDIN = "-"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
EXTENSIONS = (*DELIMITERS, ".jsonl", ".parquet")
# The longest field that Python's csv module reads is a setting of the process, 131,072 characters by default.
LONGEST_FIELD = 2**31 - 1
# Levels of nesting in YAML; settings have two. PyYAML's time grows with the square of the depth.
DEEPEST = 20

Record = dict[str, Any]


def file_form(path: str | Path) -> str:
    """Return the extension that says how to read a file, without `.gz`; "" if it is none of `EXTENSIONS`."""
    extension = Path(Path(path).name.lower().removesuffix(".gz")).suffix.replace(".ndjson", ".jsonl")
    return extension if extension in EXTENSIONS else ""


def read_records(path: str | Path) -> Iterator[tuple[str, Record]]:
    """Read the records of a file, each with its location, such as "line 3" or "row 3".

    CSV follows RFC 4180: text with commas, quotes or line breaks is in double quotes. TSV has one record per line and no
    quotes. Both begin with a line of column names. JSON lines hold one object each; blank lines are skipped. The three may be
    gzipped (`.gz`).

    Args:
        path: file; its extension says how to read it.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if the extension is unknown or, naming file and line, the file is malformed.
    """
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"no file {path}: expected records as {', '.join(EXTENSIONS)}")
    if file.is_dir() or not file_form(file):
        extension = "a folder" if file.is_dir() else f"{file.suffix or 'no extension'}"
        raise ValueError(f"{path}: expected a file ending in {', '.join(EXTENSIONS)} (or .gz), found {extension}")
    with open_input(file) as stream:
        yield from parse_records(stream, str(path))


def parse_records(file: BinaryIO, path: str, *, quoted_tsv: bool = False) -> Iterator[tuple[str, Record]]:
    """Read the records of an open file from its position; see `read_records`.

    Args:
        file: what `open_input` returns.
        path: its name, whose extension says how to read it; without a known extension it holds JSON lines.
        quoted_tsv: whether a TSV file may quote its fields, as CSV does.
    """
    form = file_form(path)
    if form == ".parquet":
        yield from parquet_records(file, path)
    elif form in DELIMITERS:
        rows = table_rows(file, path, quoted=form == ".csv" or quoted_tsv)
        for _, header in rows:
            if "" in header:
                raise ValueError(f"{display_name(path)}, line 1: the column names must not be blank, found {header}")
            for number, fields in rows:
                yield f"line {number}", dict(zip(header, fields, strict=True))
    else:
        for number, line in numbered_lines(file, path):
            if line.strip():
                location = f"line {number}"
                record = parse_json(line, f"{display_name(path)}, {location}")
                if not isinstance(record, dict):
                    raise ValueError(
                        f"{display_name(path)}, {location}: expected a JSON object, found {type(record).__name__}"
                    )
                check_column_names(record, f"{display_name(path)}, {location}")
                yield location, record


def read_table(path: str | Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a TSV file whose columns are known, with or without a header.

    Args:
        path: file; it may end in .gz.
        columns: names of the columns, in order. A first line of exactly these names is a header.

    Returns:
        one dict of stripped texts per line.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: naming file and line, if a line has another number of columns, or the file has no lines.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no file {path}: expected a TSV file with the columns {', '.join(columns)}")
    rows = []
    with open_input(path) as file:
        for number, line in numbered_lines(file, str(path)):
            cells = [cell.strip() for cell in line.split("\t")]
            if number == 1 and cells == list(columns):
                continue
            if len(cells) != len(columns):
                raise ValueError(
                    f"{path}, line {number}: expected {len(columns)} columns ({', '.join(columns)}), "
                    f"found {len(cells)}: separate them by tabs, and leave none out"
                )
            rows.append(dict(zip(columns, cells, strict=True)))
    if not rows:
        raise ValueError(f"{path} is empty: expected lines of {', '.join(columns)}, separated by tabs")
    return rows


def read_lines(path: str | Path) -> list[str]:
    """Read the lines of a text file, without line ends.

    Args:
        path: file, or "-" for standard input.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: naming file and line, if it is not UTF-8.
    """
    return list(text_lines(path))


def text_lines(path: str | Path) -> Iterator[str]:
    """Read the lines of a text file one by one; see `read_lines`."""
    with open_input(path) as file:
        for _, line in numbered_lines(file, str(path)):
            yield line


def open_input(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes, decompressed if its name ends in `.gz`, so that it can be read more than once.

    Args:
        path: file, or "-" for standard input. Streams (standard input, a pipe) are copied to a temporary file.

    Raises:
        FileNotFoundError: if the file does not exist.
        ValueError: if it is a folder.
    """
    if str(path) == STDIN:
        return _copy_stream(sys.stdin.buffer)
    if not Path(path).exists():
        raise FileNotFoundError(f"no file {path}")
    if Path(path).is_dir():
        raise ValueError(f"{path} is a folder: expected a file")
    if Path(path).suffix.lower() == ".gz":
        return cast("BinaryIO", gzip.open(path))
    file = Path(path).open("rb")
    if file.seekable():
        return file
    with file:
        return _copy_stream(file)


def _copy_stream(stream: BinaryIO) -> BinaryIO:
    copy = cast("BinaryIO", tempfile.TemporaryFile())
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def numbered_lines(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Read (number, line) one by one, without line ends.

    Args:
        file: lines as bytes, such as a file opened in binary mode.
        path: name of the file, for errors.

    Raises:
        ValueError: naming file and line, if it is not UTF-8, or damaged.
    """
    for number, line in numbered_bytes(file, path):
        yield number, _decode(line.removesuffix(b"\n").removesuffix(b"\r"), number, path)


def _decode(line: bytes, number: int, path: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{display_name(path)}, line {number}: {not_utf8(error)}; save the file as UTF-8") from error


def numbered_bytes(file: Iterable[bytes], path: str) -> Iterator[tuple[int, bytes]]:
    """Read (number, line) one by one, as bytes with line ends; a byte order mark is left out.

    Raises:
        ValueError: naming the file, if it is UTF-16, has no line ends but carriage returns, or is not a whole gzip file.
    """
    number = 0
    try:
        lines = iter(file)
        head = list(islice(lines, 2))
        if len(head) == 1 and b"\r" in head[0].rstrip(b"\r\n"):
            raise ValueError(
                f"{display_name(path)}: expected lines that end in line feeds, found carriage returns alone (classic Mac): "
                "save the file with Unix or Windows line ends"
            )
        for number, line in enumerate(chain(head, lines), start=1):
            if number == 1:
                if line.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_utf16(line):
                    raise ValueError(f"{display_name(path)} is UTF-16: save it as UTF-8")
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not line:
                    continue
            yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{display_name(path)}, line {number + 1}: not a whole gzip file ({error})") from error


def _is_utf16(line: bytes) -> bool:
    """Return whether every second byte is zero, as in UTF-16 of Latin letters without a byte order mark."""
    even, odd = line[::2], line[1::2]
    return len(line) >= 8 and ((not any(even) and all(odd)) or (not any(odd) and all(even)))


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return where a line is not UTF-8, for messages."""
    return f"not UTF-8 (byte {error.start + 1})"


def display_name(path: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if path == STDIN else path


def table_rows(file: Iterable[bytes], path: str, *, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Read the header of a table, then its rows, each with the number of the line it begins on.

    A blank line is a row with an empty cell if the table has one column, and is skipped otherwise.

    Args:
        file: lines as bytes.
        path: name of the file, whose extension says which delimiter it has.
        quoted: whether fields may be in double quotes (RFC 4180) and then span lines.

    Raises:
        ValueError: naming file and line, if two columns have the same name, a row has more or fewer fields than the header, or
            is malformed.
    """
    delimiter, columns = DELIMITERS[file_form(path)], 0
    rows = _quoted_rows(file, path, delimiter) if quoted else _plain_rows(file, path, delimiter)
    for number, fields in rows:
        if not fields and columns != 1:
            continue
        if not columns:
            _check_delimiter(fields, path, delimiter)
            fields = [name.strip() for name in fields]
            check_column_names(fields, f"{display_name(path)}, line {number}")
            columns = len(fields)
        elif len(fields or [""]) != columns:
            raise ValueError(
                f"{display_name(path)}, line {number}: expected {columns} columns as in the header, found {len(fields)}"
            )
        yield number, fields or [""]


def _plain_rows(file: Iterable[bytes], path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split(delimiter) if line else []) for number, line in numbered_lines(file, path))


def _quoted_rows(file: Iterable[bytes], path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_FIELD)
    lines = (_decode(line, number, path) for number, line in numbered_bytes(file, path))
    rows, number = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for fields in rows:
            yield number, fields
            number = rows.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{display_name(path)}, line {number}: malformed record ({error}); put text with a {_delimiter_name(delimiter)}, "
            "quotes or line breaks in double quotes, and double the quotes in it"
        ) from error


def _check_delimiter(header: list[str], path: str, delimiter: str) -> None:
    for wrong in (";", "\t", ","):
        if len(header) == 1 and wrong != delimiter and wrong in header[0]:
            expected = _delimiter_name(delimiter)
            raise ValueError(
                f"{display_name(path)}, line 1: expected columns separated by a {expected}, found a "
                f"{_delimiter_name(wrong)} in {header[0][:60]!r}: save the table with a {expected} between columns"
            )


def _delimiter_name(delimiter: str) -> str:
    return {",": "comma", "\t": "tab", ";": "semicolon"}[delimiter]


def check_column_names(names: Iterable[str], location: str) -> None:
    """Check that no two columns have the same name, apart from upper and lower case; blank names may be several.

    Args:
        names: names of the columns, or keys of a JSON object.
        location: file and line, for the error.

    Raises:
        ValueError: naming the two.
    """
    seen: dict[str, str] = {}
    for name in names:
        key = name.casefold()
        if name and key in seen:
            raise ValueError(
                f"{location}: expected different column names, found {seen[key]!r} and {name!r}: rename one"
            )
        seen[key] = name


def parquet_records(file: str | Path | BinaryIO, path: str | Path) -> Iterator[tuple[str, Record]]:
    """Read the records of a Parquet file batch by batch, each with its location, such as "row 3".

    Args:
        file: name of the file, or the open file.
        path: name of the file, for errors.

    Raises:
        ValueError: naming the file, if it is damaged, has two columns of the same name, or holds a value that Python cannot
            represent.
    """
    import pyarrow.parquet

    number, names = 0, []
    try:
        table = pyarrow.parquet.ParquetFile(file)
        names = table.schema_arrow.names
        if len({name.casefold() for name in names}) == len(names):
            for batch in table.iter_batches():
                for record in batch.to_pylist():
                    number += 1
                    yield f"row {number}", record
    # Values that Python has no object for (an unknown time zone, the year 60,000, text that is not UTF-8) raise errors
    # of the libraries that convert them.
    except (OSError, ValueError, KeyError, ArithmeticError, TypeError, RuntimeError, NotImplementedError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: not a Parquet file that can be read ({type(error).__name__}: {reason})") from error
    check_column_names(names, str(path))


def parse_json(text: str | bytes, location: str, expected: str = "") -> Any:
    """Parse a line of JSON.

    Args:
        text: line.
        location: file and line, for errors.
        expected: what the line should be, for errors.

    Raises:
        ValueError: if it is not JSON, or an object has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_json_object)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{location}: not JSON ({error}){expected and f'; {expected}'}") from error


def _json_object(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice")
    return record


def parse_number(value: Any) -> float:
    """Return a value of a record as a number; text is read as `float` reads it, but without underscores.

    Raises:
        ValueError: if it is not a number; True and False are not.
    """
    if isinstance(value, bool) or value is None or (isinstance(value, str) and "_" in value):
        raise ValueError(f"expected a number, found {value!r}")
    try:
        return float(value)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"expected a number, found {str(value)[:40]!r}") from error


def read_plain_yaml(path: Path) -> tuple[Node | None, Any]:
    """Read a YAML file of settings: plain values without aliases, not deeply nested.

    Args:
        path: UTF-8 file.

    Returns:
        the nodes, which know their lines, and the values; None and None for an empty file.

    Raises:
        ValueError: naming the file, if it is not YAML, is nested more than `DEEPEST` levels, or has aliases ("*name"): no
            settings need them, and a few lines of them can stand for gigabytes.
    """
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader))
        return yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    # Values that look like numbers or dates, and are not, make PyYAML raise these errors of Python.
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
