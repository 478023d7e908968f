"""An output that grows in a hidden file beside its path, and is resumed after a kill: lines in one file, a journal in another."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bleurt_repro.metric.files.writing import durable_replace, error_context, open_output, write_text

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None


class PartialOutput:
    """Lines of an unfinished output; the journal counts lines only once they are on disk.

    Args:
        output: path of the finished file; the unfinished one is beside it, .NAME.partial.
        identity: everything the lines depend on; an unfinished output with another identity is started again, with a warning.

    Attributes:
        counts: sums of the counts that `add` was given, such as records.

    Raises:
        ValueError: if another process is writing this output.
    """

    def __init__(self, output: Path, identity: dict[str, Any]) -> None:
        self._output, self._identity = output, identity
        self._path = output.with_name(f".{output.name}.partial")
        self._journal = output.with_name(f".{output.name}.partial.json")
        self.counts: dict[str, int] = {}
        self._digest = hashlib.sha256()
        for path in (self._path, self._journal):
            if path.is_symlink():  # in a shared folder, somebody's link may lead to any file of the user
                raise ValueError(f"{path} is a link, expected a file of an unfinished output: remove it")
        self._file = self._open_locked()
        self._resume()

    def add(self, lines: str, **counts: int) -> None:
        """Append lines and add to the counts."""
        content = lines.encode()
        with error_context(self._path):
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
        self._digest.update(content)
        for name, count in counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        journal = {
            "identity": self._identity,
            "bytes": self._file.tell(),
            "sha256": self._digest.hexdigest(),
            "counts": self.counts,
        }
        write_text(self._journal, json.dumps({**journal, "check": _hash_journal(journal)}))

    def lines(self) -> Iterator[str]:
        """Read all lines written so far, one by one."""
        self._file.seek(0)
        return (line.decode() for line in self._file)

    def finish(self, write: Callable[[BinaryIO], object] | None = None) -> None:
        """Write the output to its path in one step: the lines, or what `write` writes instead of them."""
        if write is None and self._output.suffix.lower() != ".gz":
            durable_replace(self._path, self._output)
        else:
            with open_output(self._output) as file:
                if write is None:
                    file.writelines(line.encode() for line in self.lines())
                else:
                    write(file)
            self._path.unlink()
        self._journal.unlink(missing_ok=True)
        self._file.close()

    def close(self) -> None:
        """Leave the unfinished output for a later run, unless nothing was written."""
        if self._file.closed:
            return
        try:
            with error_context(self._output):  # after a failed write, closing tries it again
                self._file.close()
        finally:
            if not self._journal.exists():
                self._path.unlink(missing_ok=True)

    def _open_locked(self) -> BinaryIO:
        """Open the unfinished output for this process alone.

        Raises:
            ValueError: if another process is writing it.
        """
        while True:
            file: BinaryIO = self._path.open("ab+")
            try:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                file.close()
                raise ValueError(
                    f"another process is writing {self._output}: wait for it, or name another output"
                ) from error
            except OSError:  # a file system without locks
                pass
            # Between opening and locking, another process may have renamed this file to be its finished output.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.stat(self._path)):
                    return file
            file.close()

    def _resume(self) -> None:
        """Continue after the lines that the journal counts; start again if it does not fit the lines or the identity."""
        size = 0
        if self._journal.exists():
            journal: dict[str, Any] = {}
            with contextlib.suppress(ValueError, TypeError):
                journal = dict(json.loads(self._journal.read_text(encoding="utf-8")))
            whole = journal.pop("check", None) == _hash_journal(journal)
            same = journal.get("identity") == self._identity
            if same and whole and self._has_lines(journal):
                size, self.counts = journal["bytes"], journal["counts"]
                warnings.warn(
                    f"resuming the unfinished {self._output.name} after {self.counts.get('records', 0)} records",
                    stacklevel=4,
                )
            else:
                reason = "damaged" if same or not whole else "of another input or other settings"
                warnings.warn(f"the unfinished {self._output.name} is {reason}: started again", stacklevel=4)
                self._journal.unlink()
                self._digest = hashlib.sha256()
        self._file.truncate(size)
        self._file.seek(0, os.SEEK_END)

    def _has_lines(self, journal: dict[str, Any]) -> bool:
        """Return whether the file has the lines that the journal counts, by their hash."""
        self._file.seek(0)
        left = journal["bytes"]
        while left and (piece := self._file.read(min(left, 1 << 20))):
            self._digest.update(piece)
            left -= len(piece)
        return not left and self._digest.hexdigest() == journal.get("sha256")


def _hash_journal(journal: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()
