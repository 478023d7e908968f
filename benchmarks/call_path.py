"""Trace the way of one candidate through the files of the library, as `bleurt-repro score` takes it.

    python benchmarks/call_path.py [--list]

Prints three figures, from the words of the command line to the number in the output:

files     the files of which code is run;
moves     calls in which a function of one file calls a function of another;
changes   how often the file changes from one event to the next in the sequence of all calls and returns, so that a call
          into another file and the return from it are two changes.

Imports are done before, so that only the work itself counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = tuple(str(ROOT / name) + "/" for name in ("bleurt_repro", "metric"))
OUTSIDE = "(start)"  # of a thread, or of the program


class Tracer:
    """Counts calls between files of the library, in all threads.

    Attributes:
        files: calls of functions of each file.
        moves: (caller's file, called file).
        changes: how often the file changes between two events of a thread.
    """

    def __init__(self) -> None:
        self.files: dict[str, int] = {}
        self.moves: list[tuple[str, str]] = []
        self.changes = 0
        self._here: dict[int, str] = {}  # the file of the last event, by thread

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take one event of the interpreter's profiler."""
        if event not in ("call", "return") or not (file := library_file(frame.f_code)):
            return
        caller = calling_file(frame)
        if event == "call":
            self.files[file] = self.files.get(file, 0) + 1
            if caller != file:
                self.moves.append((caller, file))
        self._arrive(file if event == "call" else caller)

    def _arrive(self, file: str) -> None:
        """Take note of the file in which a thread now is."""
        thread = threading.get_ident()
        if file != OUTSIDE and self._here.get(thread, file) != file:
            self.changes += 1
        if file != OUTSIDE:
            self._here[thread] = file


def calling_file(frame: FrameType) -> str:
    """Return the file of the nearest caller that is code of the library."""
    caller = frame.f_back
    while caller is not None:
        if file := library_file(caller.f_code):
            return file
        caller = caller.f_back
    return OUTSIDE


def library_file(code: CodeType) -> str:
    """Return the file of a function of the library, relative to the repository; "" for any other code."""
    if code.co_filename.startswith(FOLDERS) and code.co_name != "<module>":
        return str(Path(code.co_filename).relative_to(ROOT))
    return ""


def score_once(folder: Path) -> None:
    """Score one candidate as the command line does."""
    from bleurt_repro.cli import app

    folder.mkdir()
    for name, text in (("references", "The cat sat on the mat."), ("candidates", "A cat was sitting on the mat.")):
        (folder / f"{name}.txt").write_text(text + "\n", encoding="utf-8")
    words = ["--references", str(folder / "references.txt"), "--candidates", str(folder / "candidates.txt")]
    app(["score", *words, "--output", str(folder / "scores.txt")], standalone_mode=False)


def main() -> None:
    """Run as the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print the files and the moves, too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        score_once(Path(name) / "imports")
        tracer = Tracer()
        threading.setprofile(tracer)
        sys.setprofile(tracer)
        try:
            score_once(Path(name) / "traced")
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    print(f"{len(tracer.files)} files, {len(tracer.moves)} moves, {tracer.changes} changes")
    if options.list:
        for file, calls in tracer.files.items():
            print(f"{calls:6} calls  {file}")
        for source, callee in tracer.moves:
            print(f"  {source} -> {callee}")


if __name__ == "__main__":
    main()
