"""Write files whole or not at all, name what could not be written and why, and leave alone what others made.

A regular file is written under another name and put at its place in one step, so that what is there is never part of
something. A device, a named pipe or /dev/stdout is written to as is. CSV is made safe to open in a spreadsheet.
"""

from __future__ import annotations

import contextlib
import csv
import ctypes
import errno
import glob
import io
import json
import os
import platform
import re
import shutil
import sys
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

# Bytes below which a disk counts as full when writing to it failed.
ROOM = 2**20
# Bytes at the beginning of a file by which it is recognised as an output of the library.
HEAD = 4096
# Bytes at the end of a file in which its last line is looked for.
LONGEST_LINE = 2**20
# Folders in which names stand for what a process has open, not for files of their own.
OPEN_FILES = ("/proc/", "/dev/fd/")


@contextlib.contextmanager
def naming_what_fails(path: str | Path, advice: Callable[[], str] | None = None) -> Iterator[None]:
    """Add to the error of a write the name of what was written.

    Args:
        path: a file, or a folder that files are written to.
        advice: returns what to do when the disk is full.

    Raises:
        OSError: with `path` in it, if the disk is full, or the system's own error names no file.
    """
    try:
        yield
    except Exception as error:  # safetensors and ONNX have errors of their own, torch's says nothing of space
        code = error.errno if isinstance(error, OSError) else None
        full = code == errno.ENOSPC or (code is None and _is_full(Path(path), error))
        if full and advice is not None:
            raise OSError(errno.ENOSPC, f"the disk of {path} is full; {advice()}") from error
        if full and (code is None or error.filename is None):  # type: ignore[attr-defined]  # an OSError has it
            raise OSError(errno.ENOSPC, "No space left on device", str(path)) from error
        if isinstance(error, OSError) and code is not None and error.filename is None:
            raise OSError(code, error.strerror, str(path)) from error
        raise


def _is_full(path: Path, error: Exception) -> bool:
    if "No space left" in str(error):
        return True
    there = next((folder for folder in (path, *path.absolute().parents) if folder.is_dir()), Path.cwd())
    return shutil.disk_usage(there).free < ROOM


def write_text(path: Path, text: str) -> None:
    """Put `text` at `path` in UTF-8; see `write_bytes`."""
    write_bytes(path, text.encode())


def write_json_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Put one JSON object a line at `path`; see `write_bytes`."""
    with (
        written_whole(path) as unfinished,
        unfinished.open("a" if unfinished == path else "x", encoding="utf-8", newline="\n") as file,
    ):
        file.writelines(json_lines(rows))


def json_lines(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield each row as a line of JSON."""
    return (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` at `path` in one step, on disk before it counts as written; a device or pipe is written to.

    Raises:
        OSError: if it cannot be written; what was at `path` before is then still there.
    """
    with written_whole(path) as unfinished, unfinished.open("ab" if unfinished == path else "xb") as file:
        file.write(content)


@contextlib.contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Return another name to write a file under, and put it at its place when the block ends without an error.

    Args:
        path: the file's place. What is no regular file has no other name: it is written to as is.

    Raises:
        OSError: if it cannot be written; what was at `path` before is then still there.
    """
    if is_stream(path):
        with naming_what_fails(path):
            yield path
        return
    unfinished = unfinished_name(path)
    try:
        with naming_what_fails(path):
            remove_leftovers(path)
            remove(unfinished)  # so that nobody's link at this place is written through
            yield unfinished
            put(unfinished, path)
    finally:
        remove(unfinished)


@contextlib.contextmanager
def written_together(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Return other names to write files under, and let all take their places at one moment when the block ends.

    No system replaces several files in one step, but a link to a folder can be: for a moment the places are links through
    one that leads to the old files first and to the new ones then. Where there are no links, and on several disks, the
    files are put at their places one by one, without the last of them while some are old and some are new.

    Args:
        paths: the files' places. What is no regular file has no other name: it is written to as is.

    Raises:
        OSError: if they cannot be written; what was there before is then still there.
    """
    unfinished = {path: unfinished_name(path) / path.name for path in paths if not is_stream(path)}
    try:
        for path, new in unfinished.items():
            with naming_what_fails(path):
                remove_leftovers(path)
                remove(new.parent)
                new.parent.mkdir()
        yield [unfinished.get(path, path) for path in paths]
        for path in unfinished:
            with naming_what_fails(path):
                sync(unfinished[path])
        if len(unfinished) < 2 or not _switch(unfinished):
            for path in list(unfinished)[1:]:
                remove(path)
            for path in unfinished:
                with naming_what_fails(path):
                    put(unfinished[path], path)
    finally:
        for new in unfinished.values():
            remove(new.parent)


# Folders in that of a switch: old and new files, links to go to the places, and where these are; a link to the first two.
OLD, NEW, LINKS, PLACES, NOW = "old", "new", "links", "places", "now"
SWITCH = ".switch.tmp"


def _switch(unfinished: Mapping[Path, Path]) -> bool:
    """Let several files take their places at one moment; return whether the system can.

    Args:
        unfinished: the new files by their places.
    """
    folder = unfinished_name(next(iter(unfinished))).with_suffix(SWITCH).absolute()
    try:
        for name in (OLD, NEW, LINKS, PLACES):
            (folder / name).mkdir(parents=True)
        os.symlink(OLD, folder / NOW)
        for i, (path, new) in enumerate(unfinished.items()):
            os.link(new, folder / NEW / str(i))
            if path.exists():
                os.link(path, folder / OLD / str(i))
            os.symlink(folder / NOW / str(i), folder / LINKS / str(i))
            os.symlink(path.absolute(), folder / PLACES / str(i))
    except OSError:
        remove(folder)
        return False
    try:
        for i, path in enumerate(unfinished):
            os.replace(folder / LINKS / str(i), path)
        os.symlink(NEW, folder / LINKS / NOW)
        os.replace(folder / LINKS / NOW, folder / NOW)
    finally:
        _end_switch(folder)
    return True


def _end_switch(folder: Path) -> None:
    """Put files at the places that are links through the folder of a switch, and remove it."""
    for place in (folder / PLACES).glob("*"):
        path, link = Path(os.readlink(place)), folder / NOW / place.name
        if path.is_symlink() and os.readlink(path) == str(link):
            if link.exists():
                beside = unfinished_name(path)
                remove(beside)
                os.link(link.resolve(), beside)
                put(beside, path)
            else:  # there was no old file
                path.unlink()
    remove(folder)


def settle(path: Path) -> None:
    """Put a file at a place that a process which was killed in `written_together` has left as a link."""
    folder = Path(os.readlink(path)).parent.parent if path.is_symlink() else path
    if folder.name.endswith(SWITCH) and (folder / PLACES).is_dir():
        owner = folder.name.removesuffix(SWITCH).rpartition("-")[2]
        if owner.isdigit() and not _is_running(int(owner)):
            _end_switch(folder)


@contextlib.contextmanager
def written_folder(folder: Path, last: str, replaced: Sequence[str] = ()) -> Iterator[Path]:
    """Return another folder of the same name to write files to, and let them take their place when the block ends.

    They do so in one step, where the system can exchange two folders (Linux, macOS): at any moment the folder holds the
    old files or the new ones. Elsewhere, and where the folder is a mount point, the files are replaced one by one, without
    the file `last` while some are old and some are new. Other files of the folder stay.

    Args:
        folder: where the files belong; made if need be.
        last: name of the file that lists the others.
        replaced: patterns of old files that do not stay, whatever the new ones are called.

    Raises:
        OSError: if they cannot be written; what was there before is then still there.
    """
    place = Path(os.path.realpath(folder))
    is_mount = os.path.ismount(place)  # what is beside it is on another disk
    named = place / "folder" if is_mount else place
    workspace = unfinished_name(named)
    unfinished = workspace / place.name
    try:
        with naming_what_fails(folder):
            place.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(named)
            remove(workspace)
            unfinished.mkdir(parents=True)
            yield unfinished
            for file in [unfinished, *unfinished.rglob("*")]:
                sync(file)
            if is_mount:
                _one_by_one(unfinished, place, last, replaced)
            elif place.is_dir() and any(place.iterdir()):
                _exchange(unfinished, place, last, replaced)
            else:
                _into_empty(unfinished, place, last)
            sync(place.parent)
    finally:
        remove(workspace)


def _into_empty(unfinished: Path, place: Path, last: str) -> None:
    try:
        os.replace(unfinished, place)
    except OSError as error:
        if error.errno not in (errno.EBUSY, errno.EXDEV, errno.EACCES, errno.EEXIST):
            raise
        _one_by_one(unfinished, place, last)  # an empty mount point, or Windows


def _exchange(unfinished: Path, place: Path, last: str, replaced: Sequence[str]) -> None:
    """Exchange two folders, after what only the old one holds was linked into the new one."""
    if (exchange := _exchange_names()) is not None:
        new = {file.name for file in unfinished.iterdir()}
        old = {file for pattern in replaced for file in place.glob(pattern)}
        try:
            for kept in (file for file in place.iterdir() if file.name not in new and file not in old):
                if kept.is_dir() and not kept.is_symlink():
                    shutil.copytree(kept, unfinished / kept.name, symlinks=True, copy_function=os.link)
                else:
                    os.link(kept, unfinished / kept.name, follow_symlinks=False)
            shutil.copymode(place, unfinished)
            if exchange(os.fsencode(unfinished), os.fsencode(place)) == 0:
                return
        except OSError:  # a file system without links
            pass
        for name in {file.name for file in unfinished.iterdir()} - new:
            remove(unfinished / name)
    _one_by_one(unfinished, place, last, replaced)


def _one_by_one(unfinished: Path, place: Path, last: str, replaced: Sequence[str] = ()) -> None:
    (place / last).unlink(missing_ok=True)
    sync(place)
    for file in {file for pattern in replaced for file in place.glob(pattern)}:
        remove(file)
    for file in sorted(unfinished.iterdir(), key=lambda file: file.name == last):
        if file.is_dir():
            remove(place / file.name)
        os.replace(file, place / file.name)
        sync(place)


def _exchange_names() -> Callable[[bytes, bytes], int] | None:
    """Return the system's call that exchanges two names; it returns 0 on success."""
    library: Any = ctypes.CDLL(None) if os.name == "posix" else None
    if hasattr(library, "renameat2"):  # Linux, glibc 2.28: AT_FDCWD twice, RENAME_EXCHANGE
        return lambda one, two: library.renameat2(-100, one, -100, two, 2)
    if hasattr(library, "renamex_np"):  # macOS: RENAME_SWAP
        return lambda one, two: library.renamex_np(one, two, 2)
    return None


def unfinished_name(path: Path) -> Path:
    """Return the name beside a file or folder under which this process writes it: `.NAME.HOST-PROCESS.tmp`."""
    return path.with_name(f".{path.name}.{platform.node()}-{os.getpid()}.tmp")


def unfinished_folder(path: Path) -> Path:
    """Make a folder beside a file or folder for what becomes of it, another one in each call."""
    remove_leftovers(path)
    return Path(tempfile.mkdtemp(prefix=f"{unfinished_name(path).stem}.", suffix=".tmp", dir=path.parent))


def remove_leftovers(path: Path) -> None:
    """Remove what processes of this machine that are over have left unfinished beside a file or folder."""
    head = f".{path.name}.{platform.node()}-"
    for found in path.parent.glob(f"{glob.escape(head)}*.tmp"):
        number = found.name.removeprefix(head).partition(".")[0]
        if number.isdigit() and not _is_running(int(number)):
            if found.name.endswith(SWITCH):
                _end_switch(found)
            remove(found)


def _is_running(process: int) -> bool:
    if os.name != "posix":
        return True  # there is no way to ask that does not end it
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that it holds; nothing where there is none."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def is_stream(path: Path) -> bool:
    """Return whether what is written to a path is passed on to somebody else: a device, a named pipe, /dev/stdout."""
    if path.exists() and not path.is_file() and not path.is_dir():
        return True
    seen = 0
    while not (found := str(path.absolute())).startswith(OPEN_FILES):
        seen += 1
        if not path.is_symlink() or seen > 40:
            return False
        path = path.parent / os.readlink(path)
    return os.path.exists(found)


def chosen_output(
    path: str,
    inputs: Iterable[str | None],
    ours: re.Pattern[bytes],
    overwrite: bool = False,
    *,
    last_line: bool = False,
) -> Path:
    """Check a file that a user asks to be written, and return where to write: a link is followed.

    Args:
        path: the file to write.
        inputs: the files that are read; None stands for none, "-" for standard input.
        ours: how a file begins that an earlier run wrote.
        overwrite: replace a file of any other content, too.
        last_line: look at the file's last line instead: the first ones may be an input's.

    Raises:
        ValueError: if the output is one of the inputs, a folder, or a file that no run of the library wrote.
    """
    refuse_inputs(path, inputs)
    output = Path(path)
    settle(output)
    if is_stream(output):
        return output
    if output.is_dir():
        raise ValueError(f"the output {path} is a folder: name a file")
    if output.is_file() and not overwrite:
        with output.open("rb") as file:
            seen = file.read(HEAD)
            if last_line:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LONGEST_LINE))
                seen = file.read().rstrip(b"\r\n").rpartition(b"\n")[2] or seen
        if seen and not ours.match(seen):
            raise ValueError(
                f"the output {path} exists and bleurt-repro did not write it: name another file, or add --overwrite"
            )
    return Path(os.path.realpath(output)) if output.is_symlink() else output


def chosen_folder(
    path: str | Path, inputs: Iterable[str | None], marks: Sequence[str], overwrite: bool = False
) -> Path:
    """Check a folder that a user asks to be written.

    Args:
        path: the folder; it may be missing or empty.
        inputs: the files and folders that are read.
        marks: patterns of names, one of which a folder that an earlier run wrote has.
        overwrite: write to a folder of any other content, too.

    Raises:
        ValueError: if the folder is an input or holds one, or holds files and no run of the library wrote it.
    """
    folder = Path(path)
    for given in inputs:
        refuse_inputs(path, [given])
        if given is not None and folder.is_dir() and Path(given).parent.resolve() == folder.resolve():
            if Path(given).is_file() and not overwrite:
                raise ValueError(f"the input {given} lies in the output {path}: name another folder")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"the output {path} is a file: name a folder")
    if folder.is_dir() and not overwrite and any(folder.iterdir()):
        if not any(next(folder.glob(mark), None) for mark in marks):
            raise ValueError(
                f"the output {path} holds files that bleurt-repro did not write: name another folder, or add --overwrite"
            )
    return folder


def refuse_inputs(path: str | Path, inputs: Iterable[str | None]) -> None:
    """Refuse an output that is one of the inputs, by whatever name.

    Raises:
        ValueError: naming both.
    """
    for given in inputs:
        if given is not None and os.path.exists(path) and os.path.exists(given) and os.path.samefile(path, given):
            raise ValueError(f"the output {path} is the input {given}: name another one")


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
    if isinstance(value, str) and (value.startswith(FORMULA_STARTS) or _is_formula(value)):
        return f"'{value}"
    return value


def _is_formula(text: str) -> bool:
    """Return whether blanks or invisible characters, or full-width signs, hide the start of a formula."""
    seen = "".join(letter for letter in text[:HEAD] if unicodedata.category(letter)[0] not in "CZ")
    return unicodedata.normalize("NFKC", seen[:1]).startswith(FORMULA_STARTS)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]], delimiter: str = ",") -> str:
    """Write a table as CSV, with every text cell and the header made plain by `plain_cell`.

    Args:
        header: names of the columns.
        rows: their cells; None leaves a cell empty.
        delimiter: between cells.

    Returns:
        the file's text, with CRLF line ends (RFC 4180).
    """
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter)
    for row in (header, *rows):
        writer.writerow([plain_cell(cell) for cell in row])
    return buffer.getvalue()


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lay out rows as a Markdown table, without a line end after it; what stands in a cell cannot end the cell.

    Args:
        header: names of the columns.
        rows: their cells, written as they are.
    """
    from tabulate import tabulate

    head, *cells = ([str(cell).replace("|", "\\|").replace("\n", " ") for cell in row] for row in (header, *rows))
    return tabulate(cells, headers=head, tablefmt="github", disable_numparse=True)
