"""Write a file whole or not at all: what is at its place is never half of something."""

from __future__ import annotations

import os
from pathlib import Path


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path` in one step, in UTF-8, on disk before it counts as written.

    Raises:
        OSError: if it cannot be written; what was at `path` before is then still there.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
