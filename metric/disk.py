"""Say which file could not be written, and why, whatever a library makes of it."""

from __future__ import annotations

import contextlib
import errno
import shutil
from collections.abc import Iterator
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
