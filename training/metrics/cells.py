"""Cells: a folder of results that took long to compute, so that a killed run resumes where it was."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

CELLS = "cells"  # folder of the cells in an experiment's output
HASH_DIGITS = 12


class Cells:
    """A folder of JSON files. Each cell holds one metric's scores of one data set, or one trained model's scores.

    Args:
        folder: folder of the cells; it is made with the first cell.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, name: str, inputs: Any) -> Path:
        """Return the file of a cell.

        Args:
            name: name that people read.
            inputs: everything that the content of the cell follows from, fit for JSON; other inputs make another cell.
        """
        slug = re.sub(r"[^\w+.-]+", "-", name).strip("-.")[-60:]
        return self.folder / f"{slug}-{digest(inputs)}.json"

    def get(self, name: str, inputs: Any, compute: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Read a cell; if it does not exist yet, compute and write it.

        Args:
            name, inputs: identity of the cell, as in `path`.
            compute: function that returns the content of the cell, fit for JSON.
        """
        from bleurt_repro.metric.files.writing import write_text

        path = self.path(name, inputs)
        if path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
        content = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(path, json.dumps(content) + "\n")
        return content


def digest(inputs: Any) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of JSON data; the order of keys does not matter."""
    text = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]
