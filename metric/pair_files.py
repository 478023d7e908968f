"""Read the text to score: one segment a line, or JSON lines of pairs; faults are named by file and line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
    records = [
        _parsed(line, f"{_shown(path)}, line {number}") for number, line in _numbered_lines(path) if line.strip()
    ]
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


def _parsed(line: str, place: str) -> tuple[list[str], str, str | None]:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{place}: not JSON ({error}); each line is {FIELDS}") from error
    if not isinstance(record, dict):
        raise ValueError(f"{place}: found {type(record).__name__}; each line is {FIELDS}")
    if ("reference" in record) == ("references" in record):
        raise ValueError(f'{place}: needs one of "reference" and "references"; each line is {FIELDS}')
    references = record["references"] if "references" in record else [record["reference"]]
    if not isinstance(references, list) or not references:
        raise ValueError(f'{place}: "references" must be a list of at least one string')
    texts = {"candidate": record.get("candidate"), **{f"reference {i}": text for i, text in enumerate(references)}}
    if record.get("source") is not None:
        texts["source"] = record["source"]
    for name, text in texts.items():
        if not isinstance(text, str):
            raise ValueError(f"{place}: {name} must be a string, found {json.dumps(text)[:40]}; each line is {FIELDS}")
    return references, record["candidate"], record.get("source")


def _numbered_lines(path: str) -> Iterator[tuple[int, str]]:
    """Give (number, line); only line feeds end a line, since text may hold other separators."""
    content = sys.stdin.buffer.read() if path == STDIN else _bytes(path)
    lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, start=1):
        try:
            yield number, line.removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{_shown(path)}, line {number}: not UTF-8 ({error.reason} at byte {error.start})"
            ) from error


def _bytes(path: str) -> bytes:
    file = Path(path)
    if not file.exists():
        raise FileNotFoundError(f"no file {path}")
    if file.is_dir():
        raise ValueError(f"{path} is a folder: expected a text file")
    return file.read_bytes()


def _shown(path: str) -> str:
    return "standard input" if path == STDIN else path
