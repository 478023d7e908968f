"""Trace the library's files on the way of one candidate through `bleurt-repro score`: how many, and how many moves.

    python benchmarks/call_path.py [--list]

Prints the number of files that `bleurt-repro score` runs code of, from the words of the command line to the number, and the
number of moves: calls in which a function of one file calls a function of another. Imports are done before, so that
only the work itself counts.
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


class Tracer:
    """Counts calls between files of the library, in all threads."""

    def __init__(self) -> None:
        self.moves: list[tuple[str, str]] = []
        self.files: dict[str, int] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        """Take one event of the interpreter's profiler."""
        if event != "call" or not (callee := library_file(frame.f_code)):
            return
        self.files[callee] = self.files.get(callee, 0) + 1
        caller: FrameType | None = frame.f_back
        while caller is not None and not library_file(caller.f_code):
            caller = caller.f_back
        source = library_file(caller.f_code) if caller is not None else "(start)"
        if source != callee:
            self.moves.append((source, callee))


def library_file(code: CodeType) -> str:
    """Return the file of a function of the library, relative to the repository; "" for any other code."""
    if code.co_filename.startswith(FOLDERS) and code.co_name != "<module>":
        return str(Path(code.co_filename).relative_to(ROOT))
    return ""


def score_once(folder: Path) -> None:
    """Score one candidate as the command line does."""
    from bleurt_repro.cli import app

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
        score_once(Path(name))  # imports everything
        tracer = Tracer()
        threading.setprofile(tracer)
        sys.setprofile(tracer)
        try:
            score_once(Path(name))
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    print(f"{len(tracer.files)} files, {len(tracer.moves)} moves")
    if options.list:
        for file, calls in tracer.files.items():
            print(f"{calls:6} calls  {file}")
        for source, callee in tracer.moves:
            print(f"  {source} -> {callee}")


if __name__ == "__main__":
    main()
