"""Run the commands of a page in order, and compare what they print with what the page shows.

A block that is not a command to run here has a comment before it: `<!-- file: NAME -->` or `<!-- not run: REASON -->`.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>file|not run): (?P<note>[^>]+?) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```", re.M | re.S
)
NUMBER = re.compile(r"-?\d+\.\d+")
# scores differ between processors by less than 1e-4
TOLERANCE = 0.011


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the output shown below it."""

    line: int
    kind: str
    note: str
    language: str
    body: str
    output: str = ""


def read_blocks(page: Path) -> list[Block]:
    """Return the blocks of a page."""
    text = page.read_text(encoding="utf-8")
    blocks: list[Block] = []
    for match in BLOCK.finditer(text):
        line = text[: match.start()].count("\n") + 1
        block = Block(line, match["kind"] or "", match["note"] or "", match["language"], match["body"])
        if block.language == "text" and not block.kind:
            assert blocks and blocks[-1].language in ("sh", "python"), f"{page.name}:{line}: output of what?"
            blocks[-1] = replace(blocks[-1], output=block.body)
        else:
            blocks.append(block)
    return blocks


def assert_printed(printed: str, expected: str, location: str) -> None:
    """Compare word by word, numbers with a tolerance; a line of three dots stands for any lines."""
    passages = [passage.split() for passage in re.split(r"^\.\.\.$", expected, flags=re.M)]
    words = printed.split()
    for number, passage in enumerate(passages):
        starts = range(len(words) - len(passage) + 1) if number else [0]
        start = next((i for i in starts if _is_equal(words[i : i + len(passage)], passage)), None)
        assert start is not None, f"{location} shows\n{expected}\nbut printed\n{printed}"
        words = words[start + len(passage) :]
    assert not words or not passages[-1], f"{location} prints more than it shows:\n{printed}"


def _is_equal(printed: list[str], expected: list[str]) -> bool:
    return len(printed) == len(expected) and all(
        NUMBER.sub("0", left) == NUMBER.sub("0", right)
        and all(
            abs(float(a) - float(b)) < TOLERANCE
            for a, b in zip(NUMBER.findall(left), NUMBER.findall(right), strict=True)
        )
        for left, right in zip(printed, expected, strict=True)
    )


def run_page(page: Path, folder: Path, python: Path, home: Path) -> None:
    """Write the files of a page and run its commands, each in the folder that the one before left.

    Args:
        page: Markdown file.
        folder: folder to run the commands in, with the files that they read.
        python: interpreter; the commands beside it are those that the page runs.
        home: empty folder, the home of the user.
    """
    inherited = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "TMPDIR", "LANG") if name in os.environ}
    offline = {"HF_HUB_OFFLINE": "1", "HF_EVALUATE_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TQDM_DISABLE": "1"}
    environment = {**inherited, **offline, "HOME": str(home), "PATH": f"{python.parent}:/usr/bin:/bin"}
    for block in read_blocks(page):
        location = f"{page.name}:{block.line}"
        if block.kind == "file":
            (folder / block.note).write_text(block.body, encoding="utf-8")
        if block.kind or block.language not in ("sh", "python"):
            continue
        if block.language == "sh":
            command = ["bash", "-euo", "pipefail", "-c", block.body]
        else:
            command = [str(python), "-c", block.body]
        result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=900)
        assert result.returncode == 0, f"{location} fails:\n{result.stdout[-2000:]}\n{result.stderr[-4000:]}"
        if block.output:
            assert_printed(result.stdout, block.output, location)
