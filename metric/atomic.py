"""Write a file whole or not at all: what is at its place is never half of something."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from bleurt_repro.metric.disk import naming_what_fails


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
