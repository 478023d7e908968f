"""An output that grows beside its place and is resumed after a kill: lines in one file, a journal in another."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from bleurt_repro.metric.files.writing import durable_replace, error_context, open_output, write_text

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None


class PartialOutput:
    """Lines written so far, each window of them on disk before it counts.

    Args:
        output: where the finished file will be; the unfinished one lies beside it as .NAME.partial.
        identity: what the lines depend on; an unfinished output of another identity is started again, with a warning.

    Attributes:
        counts: what the journal has counted: records, and whatever `add` was given.

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
            if path.is_symlink():  # in a folder that others may write to, it may lead to any file of the user's
                raise ValueError(f"{path} is a link, where an unfinished output is kept: remove it")
        self._file: BinaryIO = self._path.open("ab+")
        self._lock()
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
        written = {
            "identity": self._identity,
            "bytes": self._file.tell(),
            "sha256": self._digest.hexdigest(),
            "counts": self.counts,
        }
        write_text(self._journal, json.dumps({**written, "check": _check(written)}))

    def lines(self) -> Iterator[str]:
        """Read all lines written so far, one by one."""
        self._file.seek(0)
        return (line.decode() for line in self._file)

    def finish(self, content: str | None = None) -> None:
        """Put the output at its place in one step: the lines, or `content` instead of them."""
        if content is None and self._output.suffix.lower() != ".gz":
            durable_replace(self._path, self._output)
        else:
            with open_output(self._output) as file:
                file.writelines(line.encode() for line in (self.lines() if content is None else [content]))
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

    def _lock(self) -> None:
        if fcntl is None:
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._file.close()
            raise ValueError(
                f"another process is writing {self._output}: wait for it, or name another output"
            ) from error
        except OSError:  # a file system without locks
            pass

    def _resume(self) -> None:
        size = 0
        if self._journal.exists():
            found: dict[str, Any] = {}
            with contextlib.suppress(ValueError, TypeError):
                found = dict(json.loads(self._journal.read_text(encoding="utf-8")))
            whole = found.pop("check", None) == _check(found)
            same = found.get("identity") == self._identity
            if same and whole and self._is_whole(found):
                size, self.counts = found["bytes"], found["counts"]
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

    def _is_whole(self, found: dict[str, Any]) -> bool:
        """Return whether the lines that the journal counts are those that were written."""
        self._file.seek(0)
        left = found["bytes"]
        while left and (piece := self._file.read(min(left, 1 << 20))):
            self._digest.update(piece)
            left -= len(piece)
        return not left and self._digest.hexdigest() == found.get("sha256")


def _check(journal: dict[str, Any]) -> str:
    """Hash the content of a journal."""
    return hashlib.sha256(json.dumps(journal, sort_keys=True).encode()).hexdigest()
