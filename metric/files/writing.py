"""Write files whole or not at all, name the file when a write fails, and refuse to overwrite what is not ours.

A file is written to a temporary folder beside its path and renamed with `os.replace`, so that a reader sees the old file or
the new one. Of several files in a folder, the one that marks the folder as complete is replaced last. Devices, named pipes
and /dev/stdout are written to directly.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import gzip
import json
import os
import re
import shutil
import tempfile
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, cast

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# Free bytes below which a failed write is blamed on a full disk.
FULL_DISK = 2**20
# Bytes at the start of a file or line in which we look for the mark of an output of ours.
HEAD_BYTES = 4096
LONGEST_LINE = 2**20
# Folders whose names stand for what a process has open, not for files.
OPEN_FILES = ("/proc/", "/dev/fd/")


@contextlib.contextmanager
def error_context(path: str | Path, advice: Callable[[], str] | None = None) -> Iterator[None]:
    """Add the name of what is written to errors that lack it.

    Args:
        path: file, or folder of the files, that is written in the block.
        advice: returns what to do when the disk is full.

    Raises:
        OSError: with `path` in it, if the disk is full or the system's error names no file.
    """
    try:
        yield
    except Exception as error:  # safetensors and ONNX have their own error classes, and torch's do not mention space
        code = error.errno if isinstance(error, OSError) else None
        full = code == errno.ENOSPC or (code is None and _is_disk_full(Path(path), error))
        if full and advice is not None:
            raise OSError(errno.ENOSPC, f"the disk of {path} is full; {advice()}") from error
        if full and (code is None or error.filename is None):  # type: ignore[attr-defined]  # an OSError has it
            raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error
        if isinstance(error, OSError) and code is not None and error.filename is None:
            raise OSError(code, error.strerror, str(path)) from error
        raise


def _is_disk_full(path: Path, error: Exception) -> bool:
    if "No space left" in str(error):
        return True
    folder = next((folder for folder in (path, *path.absolute().parents) if folder.is_dir()), Path.cwd())
    return shutil.disk_usage(folder).free < FULL_DISK


def write_text(path: Path, text: str) -> None:
    """Write a UTF-8 text file in one step; see `write_bytes`."""
    write_bytes(path, text.encode())


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write one JSON object per line, in one step; see `write_bytes`."""
    with open_output(path) as file:
        file.writelines(line.encode() for line in json_lines(rows))


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Return each row as a line of JSON."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file in one step, compressed if its name ends in `.gz`; a device or pipe is appended to.

    Raises:
        OSError: if it cannot be written; the file that was at `path` before is still there.
    """
    with open_output(path) as file:
        file.write(content)


@contextlib.contextmanager
def open_output(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write its bytes in one step; see `write_bytes`."""
    with atomic_replace(path) as target, target.open("ab" if target == path else "xb") as file:
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as compressed:  # the same bytes at any time
                yield cast("BinaryIO", compressed)
        else:
            yield file


@contextlib.contextmanager
def atomic_replace(path: Path) -> Iterator[Path]:
    """Return a temporary path to write to, and rename it to `path` when the block ends without an error.

    Args:
        path: file to write. A device or pipe cannot be replaced: its own path is returned.

    Raises:
        OSError: if it cannot be written; the file that was at `path` before is still there.
    """
    with error_context(path):
        if is_stream(path):
            yield path
            return
        with temporary_folder(path) as folder:
            yield folder / path.name
            durable_replace(folder / path.name, path)


@contextlib.contextmanager
def atomic_folder(folder: Path, last: str, replaced: Sequence[str] = ()) -> Iterator[Path]:
    """Return a temporary folder to write files to, and move them to `folder` when the block ends without an error.

    The file `last` marks a complete folder: its old version is removed first, and its new version is moved last. A process
    that is killed between the two leaves a folder without it. Other files of the folder stay.

    Args:
        folder: where the files belong; made if it does not exist.
        last: name of the file that readers look for, such as a checkpoint's config.json.
        replaced: patterns of old files that are removed even if no new file has their name.

    Raises:
        OSError: if the files cannot be written; the old ones are then still there.
    """
    with error_context(folder):
        folder.mkdir(parents=True, exist_ok=True)
        name = folder.resolve().name
        with temporary_folder(folder / name) as temporary:
            unfinished = temporary / name  # a card that is drawn into it says the final name
            unfinished.mkdir()
            yield unfinished
            _sync(unfinished)
            (folder / last).unlink(missing_ok=True)
            for file in {file for pattern in replaced for file in folder.glob(pattern)}:
                file.unlink()
            for file in sorted(unfinished.iterdir(), key=lambda file: file.name == last):
                if file.is_dir():
                    shutil.rmtree(folder / file.name, ignore_errors=True)
                os.replace(file, folder / file.name)


@contextlib.contextmanager
def temporary_folder(path: Path) -> Iterator[Path]:
    """Make a hidden folder beside a path for its unfinished files, and remove it when the block ends.

    Folders that killed processes left for the same path are removed, too: a running process holds a lock on its own.

    Args:
        path: file or folder that will be written; its name is part of the folder's.
    """
    folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent))
    lock = _try_lock(folder)
    try:
        for leftover in path.parent.glob(_leftovers(path)):
            if leftover != folder and (owner := _try_lock(leftover)) is not None:
                shutil.rmtree(leftover, ignore_errors=True)
                os.close(owner)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        if lock is not None:
            os.close(lock)


def _leftovers(path: Path) -> str:
    return f".{glob.escape(path.name)}.????????.tmp"


def _try_lock(folder: Path) -> int | None:
    """Return the descriptor of a folder with a lock on it, or None if another process has the lock or there are no locks."""
    if fcntl is None:
        return None
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if descriptor is not None:
            os.close(descriptor)
        return None
    return descriptor


def was_interrupted(folder: Path) -> bool:
    """Return whether a folder holds the unfinished files of a process that was killed in `atomic_folder`."""
    return any(folder.glob(_leftovers(folder / folder.resolve().name)))


def durable_replace(source: Path, target: Path) -> None:
    """Rename a file or folder on the same disk, after all of it has reached the disk.

    Args:
        source: file or folder.
        target: its new path; a file there is replaced, a folder there must be empty.

    Raises:
        OSError: if it fails; what was at `target` before is still there.
    """
    _sync(source)
    os.replace(source, target)


def _sync(path: Path) -> None:
    """Wait until the content of a file, or of all files in a folder, has reached the disk."""
    for file in (path, *path.rglob("*")):
        if file.is_file():
            with file.open("rb" if os.name == "posix" else "r+b") as stream:
                os.fsync(stream.fileno())


def is_stream(path: Path) -> bool:
    """Return whether what is written to a path is passed on: a device, a named pipe, /dev/stdout."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return True
    # a chain of links may end at an open file of a process, as /dev/stdout does
    for _ in range(40):
        if str(path.absolute()).startswith(OPEN_FILES):
            return path.exists()
        if not path.is_symlink():
            return False
        path = path.parent / os.readlink(path)
    return False


def validate_output(
    path: str,
    inputs: Iterable[str | None],
    ours: re.Pattern[bytes],
    overwrite: bool = False,
    *,
    last_line: bool = False,
) -> Path:
    """Check a file that a user wants to write, and return its path with links followed.

    Args:
        path: file to write.
        inputs: files that are read; None for no file, "-" for standard input.
        ours: pattern of the first bytes of files that we write.
        overwrite: whether to replace any other file, too.
        last_line: whether to match the file's last line instead: the first lines may be an input's.

    Raises:
        ValueError: if the output is one of the inputs, a folder, or a file that we did not write.
        FileNotFoundError: if its folder does not exist.
    """
    refuse_inputs(path, inputs)
    output = Path(path)
    if is_stream(output):
        return output
    if output.is_dir():
        raise ValueError(f"the output {path} is a folder: name a file")
    if output.is_symlink():
        output = Path(os.path.realpath(output))
    if not output.parent.is_dir():
        raise FileNotFoundError(f"the output {path} is in a folder that does not exist: make {output.parent} first")
    if output.is_file() and not overwrite:
        mark = _read_mark(output, last_line)
        if mark and not ours.match(mark):
            raise ValueError(
                f"the output {path} exists and bleurt-repro did not write it: name another file, or add --overwrite"
            )
    return output


def _read_mark(path: Path, last_line: bool) -> bytes:
    """Return the start of a file, or of its last line, by which outputs of ours are recognised."""
    try:
        with gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb") as file:
            lines = iter(lambda: file.readline(LONGEST_LINE), b"")
            return deque(lines, maxlen=1).pop() if last_line else file.read(HEAD_BYTES)
    except IndexError:
        return b""
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return b"not gzip"


def validate_output_folder(
    path: str | Path, inputs: Iterable[str | None], marks: Sequence[str], overwrite: bool = False
) -> Path:
    """Check a folder that a user wants to write to.

    Args:
        path: folder; it may be missing or empty.
        inputs: files and folders that are read.
        marks: patterns of file names; a folder that we wrote has a file of one of them.
        overwrite: whether to write to any other folder, too.

    Raises:
        ValueError: if the folder is an input or holds one, or holds files and we did not write it.
    """
    folder = Path(path)
    for name in inputs:
        refuse_inputs(path, [name])
        if name is not None and folder.is_dir() and Path(name).parent.resolve() == folder.resolve():
            if Path(name).is_file() and not overwrite:
                raise ValueError(f"the input {name} lies in the output {path}: name another folder")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"the output {path} is a file: name a folder")
    if folder.is_dir() and not overwrite and any(folder.iterdir()):
        if not any(any(folder.glob(mark)) for mark in marks) and not was_interrupted(folder):
            raise ValueError(
                f"the output {path} holds files that bleurt-repro did not write: name another folder, or add --overwrite"
            )
    return folder


def refuse_inputs(path: str | Path, inputs: Iterable[str | None]) -> None:
    """Raise an error if an output is one of the inputs, by whatever name.

    Raises:
        ValueError: naming both.
    """
    for name in inputs:
        if name is not None and os.path.exists(path) and os.path.exists(name) and os.path.samefile(path, name):
            raise ValueError(f"the output {path} is the input {name}: name another one")
