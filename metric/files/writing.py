"""CSV that is safe to open in a spreadsheet: text that it would run as a formula is written so that it stays text.

Say which file could not be written, and why, whatever a library makes of it.

Write a file whole or not at all: what is at its place is never half of something.
"""

from __future__ import annotations

import contextlib
import csv
import errno
import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

# Bytes below which a disk counts as full when writing to it failed.
ROOM = 2**20


@contextlib.contextmanager
def naming_what_fails(path: Path) -> Iterator[None]:
    """Give the error of a write the name of what was written.

    Args:
        path: a file, or a folder that files are written to.

    Raises:
        OSError: with `path` in it, if the disk is full, or the system's own error names no file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    except Exception as error:  # safetensors and ONNX have errors of their own, torch's says nothing of space
        if not _is_full(path, error):
            raise
        raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error


def _is_full(path: Path, error: Exception) -> bool:
    if "No space left" in str(error):
        return True
    there = next((folder for folder in (path, *path.absolute().parents) if folder.is_dir()), Path.cwd())
    return shutil.disk_usage(there).free < ROOM


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path` in UTF-8; see `write_bytes`."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, on disk before it counts as written.

    Raises:
        OSError: if it cannot be written; what was at `path` before is then still there.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with naming_what_fails(path):
            unfinished.unlink(missing_ok=True)
            with unfinished.open("xb") as file:  # new, so that nobody's link at this place is written through
                file.write(content)
            put(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def put(unfinished: Path, path: Path) -> None:
    """Bring a finished file, or a folder of files, to disk and then, in one step, to its place on the same disk.

    Args:
        unfinished: what is there under another name.
        path: its place; a file there is replaced, a folder there must be empty.

    Raises:
        OSError: if it cannot be done; what was at `path` before is then still there.
    """
    for file in [unfinished, *unfinished.rglob("*")]:
        sync(file)
    os.replace(unfinished, path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, has reached the disk.

    Raises:
        OSError: if a file's cannot; not all systems let folders be opened, and those write their names at once.
    """
    with contextlib.suppress(OSError) if path.is_dir() else contextlib.nullcontext():
        opened = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


# https://owasp.org/www-community/attacks/CSV_Injection
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n")


def plain_cell(value: object) -> object:
    """Put an apostrophe before text that a spreadsheet would take for a formula; numbers stay numbers."""
    if isinstance(value, str) and sys.version_info < (3, 11):
        value = value.replace("\0", "\N{REPLACEMENT CHARACTER}")  # its csv module refuses to write NUL
    if isinstance(value, str) and value.startswith(FORMULA_STARTS):
        return f"'{value}"
    return value


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write a table as CSV, with every text cell and the header made plain by `plain_cell`.

    Args:
        header: names of the columns.
        rows: their cells; None leaves a cell empty.

    Returns:
        the file's text, with CRLF line ends (RFC 4180).
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in (header, *rows):
        writer.writerow([plain_cell(cell) for cell in row])
    return buffer.getvalue()
