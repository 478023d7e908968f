"""Cells: what an experiment has worked out so far, each in a file of its own, so that a killed run goes on."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

HASH_DIGITS = 12


class Cells:
    """A folder of cells: a cell is one metric's scores of one data set, or one trained model and its scores.

    Args:
        folder: where; made with the first cell.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str, inputs: Any) -> Path:
        """Give the file of a cell.

        Args:
            name: for people.
            inputs: all that the cell's content follows from, fit for JSON; other inputs make another cell.
        """
        words = re.sub(r"[^\w+.-]+", "-", name).strip("-.")[-60:]
        return self.folder / f"{words}-{digest(inputs)}.json"

    def get(self, name: str, inputs: Any, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Read a cell, or compute and keep it.

        Args:
            name, inputs: of the cell, as in `path`.
            compute: gives what is kept, fit for JSON.
        """
        from bleurt_repro.metric.atomic import write_text

        path = self.path(name, inputs)
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        content = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content) + "\n")
        return content


def digest(inputs: Any) -> str:
    """Hash what is fit for JSON, whatever the order of its keys: 12 hexadecimal digits of a SHA-256."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
