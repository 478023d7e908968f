"""Read the text to score: one segment a line, or JSON lines of pairs; faults are named by file and line."""

from __future__ import annotations

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
