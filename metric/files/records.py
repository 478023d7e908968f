"""Read files: lines of text, JSON lines, tables (CSV, TSV), Parquet and YAML; each fault is named by file and line.

Text is UTF-8, and a name that ends in `.gz` is gzipped text. Only line feeds end a line, since text may hold other
separators. All readers of the library build on these.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

if TYPE_CHECKING:
    from yaml import Event, Node

STDIN = "-"
DELIMITERS = {".csv": ",", ".tsv": "\t"}
EXTENSIONS = (*DELIMITERS, ".jsonl", ".parquet")
# The longest field that Python's csv module reads is a setting of the process, 131,072 characters by default.
LONGEST_FIELD = 2**31 - 1
# Lists within lists in YAML; settings have two. The time that PyYAML takes grows with the square of the depth.
DEEPEST = 20

Record = dict[str, Any]


def file_form(path: str | Path) -> str:
    """Return the extension that names a file's form, without `.gz`; "" if it is none of `EXTENSIONS`."""
    extension = Path(Path(path).name.lower().removesuffix(".gz")).suffix.replace(".ndjson", ".jsonl")
    return extension if extension in EXTENSIONS else ""


def read_records(path: str | Path) -> Iterator[tuple[str, Record]]:
    """Read the records of a file, each with its place, such as "line 3" or "row 3".

    CSV follows RFC 4180: text with commas, quotes or line breaks stands in double quotes. TSV has one record a line
    and no quoting. Both begin with a line of column names. JSON lines hold one object each; blank lines are no
    records. The three may be gzipped (`.gz`).

    Args:
        path: the file; its extension names its form.

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
    with open_input(file) as opened:
        yield from records(opened, str(path))


def records(file: BinaryIO, path: str, *, quoted_tsv: bool = False) -> Iterator[tuple[str, Record]]:
    """Read the records of an open file, from where it stands; see `read_records`.

    Args:
        file: of `open_input`.
        path: its name, which names its form; without a known extension it holds JSON lines.
        quoted_tsv: whether a TSV file may quote its fields, as CSV does.
    """
    form = file_form(path)
    if form == ".parquet":
        yield from parquet_records(file, path)
    elif form in DELIMITERS:
        rows = table_rows(file, path, quoted=form == ".csv" or quoted_tsv)
        for _, header in rows:
            names = _column_names(header, path)
            for number, fields in rows:
                yield f"line {number}", dict(zip(names, fields, strict=True))
    else:
        for number, line in numbered_lines(file, path):
            if line.strip():
                record = parse_json(line, f"{shown(path)}, line {number}")
                if not isinstance(record, dict):
                    raise ValueError(
                        f"{shown(path)}, line {number}: expected a JSON object, found {type(record).__name__}"
                    )
                yield f"line {number}", record


def read_table(path: str | Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Read a TSV file of known columns, with or without a header.

    Args:
        path: the file; it may end in .gz.
        columns: the columns' names, in order. A first line of exactly these names is a header.

    Returns:
        a dict for each line, of stripped texts.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if a line has another number of columns, or if there is no line.
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
    """Read the lines of a text file, without their ends.

    Args:
        path: the file, or "-" for standard input.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: naming file and line, if it is not UTF-8.
    """
    return list(text_lines(path))


def text_lines(path: str | Path) -> Iterator[str]:
    """Read the lines of a text file one by one; see `read_lines`."""
    with open_input(path) as file:
        for _, line in numbered_lines(file, str(path)):
            yield line


def open_input(path: str | Path) -> BinaryIO:
    """Open a file to read its bytes, unzipped if it ends in `.gz`, so that it can be read more than once.

    Args:
        path: the file, or "-" for standard input. What can be read only once (standard input, a pipe) is copied.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is a folder.
    """
    if str(path) == STDIN:
        return _copied(sys.stdin.buffer)
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
        return _copied(file)


def _copied(stream: BinaryIO) -> BinaryIO:
    copy = cast("BinaryIO", tempfile.TemporaryFile())
    shutil.copyfileobj(stream, copy)
    copy.seek(0)
    return copy


def numbered_lines(file: Iterable[bytes], path: str) -> Iterator[tuple[int, str]]:
    """Read (number, line) one by one, without line ends.

    Args:
        file: its lines as bytes, as a file opened in binary mode has them.
        path: the file's name, for errors.

    Raises:
        ValueError: naming file and line, if it is not UTF-8, or damaged.
    """
    for number, line in numbered_bytes(file, path):
        yield number, _decoded(line.removesuffix(b"\n").removesuffix(b"\r"), number, path)


def _decoded(line: bytes, number: int, path: str) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{shown(path)}, line {number}: {not_utf8(error)}; save the file as UTF-8") from error


def numbered_bytes(file: Iterable[bytes], path: str) -> Iterator[tuple[int, bytes]]:
    """Read (number, line) one by one, as bytes with their ends; a byte order mark is left out.

    Raises:
        ValueError: naming the file, if it is UTF-16, or no whole gzip file.
    """
    number = 0
    try:
        for number, line in enumerate(file, start=1):
            if number == 1:
                if line.startswith((b"\xff\xfe", b"\xfe\xff")) or _is_utf16(line):
                    raise ValueError(f"{shown(path)} is UTF-16: save it as UTF-8")
                line = line.removeprefix(b"\xef\xbb\xbf")
                if not line:
                    continue
            yield number, line
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{shown(path)}, line {number + 1}: not a whole gzip file ({error})") from error


def _is_utf16(line: bytes) -> bool:
    """Return whether every other byte is zero, as in UTF-16 of Latin letters without a byte order mark."""
    halves = (line[::2], line[1::2])
    return len(line) >= 8 and any(not any(half) and all(other) for half, other in (halves, halves[::-1]))


def not_utf8(error: UnicodeDecodeError) -> str:
    """Describe where a line is not UTF-8."""
    return f"not UTF-8 (byte {error.start + 1})"


def shown(path: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if path == STDIN else path


def table_rows(file: Iterable[bytes], path: str, *, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    """Read the rows of a table with a header: first the header, then all rows, each with the line it begins on.

    Args:
        file: its lines as bytes.
        path: its name, which names its form.
        quoted: whether fields may stand in double quotes (RFC 4180); then a field may span lines.

    Raises:
        ValueError: naming file and line, if a row has more or fewer fields than the header, or is malformed.
    """
    delimiter, columns = DELIMITERS[file_form(path)], 0
    rows = _quoted_rows(file, path, delimiter) if quoted else _plain_rows(file, path, delimiter)
    for number, fields in rows:
        if not columns:
            columns = len(fields)
            _check_delimiter(fields, path, delimiter)
        elif len(fields) != columns:
            raise ValueError(
                f"{shown(path)}, line {number}: expected {columns} columns as in the header, found {len(fields)}"
            )
        yield number, fields


def _plain_rows(file: Iterable[bytes], path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    return ((number, line.split(delimiter)) for number, line in numbered_lines(file, path) if line)


def _quoted_rows(file: Iterable[bytes], path: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(LONGEST_FIELD)
    lines = (_decoded(line, number, path) for number, line in numbered_bytes(file, path))
    rows, number = csv.reader(lines, delimiter=delimiter, strict=True), 1
    try:
        for fields in rows:
            if fields:
                yield number, fields
            number = rows.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{shown(path)}, line {number}: malformed record ({error}); text with a {_named(delimiter)}, quotes or "
            "line breaks stands in double quotes, and a quote within is doubled"
        ) from error


def _check_delimiter(header: list[str], path: str, delimiter: str) -> None:
    for other in (";", "\t", ","):
        if len(header) == 1 and other != delimiter and other in header[0]:
            raise ValueError(
                f"{shown(path)}, line 1: expected columns separated by a {_named(delimiter)}, found a {_named(other)} "
                f"in {header[0][:60]!r}: save the table with a {_named(delimiter)} between columns"
            )


def _named(delimiter: str) -> str:
    return {",": "comma", "\t": "tab", ";": "semicolon"}[delimiter]


def _column_names(fields: list[str], path: str) -> list[str]:
    names = [field.strip() for field in fields]
    if len(set(names)) < len(names) or "" in names:
        raise ValueError(
            f"{shown(path)}, line 1: the column names must be distinct and not blank, found {', '.join(names)}"
        )
    return names


def parquet_records(file: str | Path | BinaryIO, path: str | Path) -> Iterator[tuple[str, Record]]:
    """Read the records of a Parquet file batch by batch, each with its place, such as "row 3".

    Args:
        file: the file, by name or open.
        path: its name, for errors.

    Raises:
        ValueError: naming the file, if it is damaged or holds a value that Python cannot represent.
    """
    import pyarrow.parquet

    number = 0
    try:
        for batch in pyarrow.parquet.ParquetFile(file).iter_batches():
            for record in batch.to_pylist():
                number += 1
                yield f"row {number}", record
    # Values that Python has no object for (an unknown time zone, the year 60,000, text that is not UTF-8) raise errors
    # of the libraries that convert them.
    except (OSError, ValueError, KeyError, ArithmeticError, TypeError, RuntimeError, NotImplementedError) as error:
        fault = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: not a Parquet file that can be read ({type(error).__name__}: {fault})") from error


def parse_json(text: str | bytes, place: str, expected: str = "") -> Any:
    """Parse a line of JSON.

    Args:
        text: the line.
        place: file and line, for errors.
        expected: what the line should be, for errors.

    Raises:
        ValueError: if it is not JSON, or an object has a key twice.
    """
    try:
        return json.loads(text, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: not JSON ({error}){expected and f'; {expected}'}") from error


def _object(pairs: list[tuple[str, Any]]) -> Record:
    record = dict(pairs)
    if len(record) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} occurs twice")
    return record


def parse_number(value: Any) -> float:
    """Return a value of a record as a number; text is read as `float` reads it, but for underscores.

    Raises:
        ValueError: if it is none; True and False are none.
    """
    if isinstance(value, bool) or value is None or (isinstance(value, str) and "_" in value):
        raise ValueError(f"expected a number, found {value!r}")
    try:
        return float(value)
    except (TypeError, OverflowError) as error:
        raise ValueError(f"expected a number, found {str(value)[:40]!r}") from error


def read_plain_yaml(path: Path) -> tuple[Node | None, Any]:
    """Read YAML that people write settings in: plain values without aliases, not deeply nested.

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
