"""What the recipes of the embedded checkpoint share: the form of pairs to learn from, and the bounds of their scores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from bleurt_repro.metric.files.records import read_table
from bleurt_repro.metric.files.writing import write_json_lines

COLUMNS = ("reference", "candidate", "score", "system")
LEAST, MOST = -2.0, 1.5  # scores beyond what people give are brought back
NLI_COLUMNS = ("source", "split", "label", "premise", "hypothesis")
# Sources of entailment pairs with a licence that allows commercial use, in natural sentences.
NLI_SOURCES = ("mnli-dev(m+mm)", "snli-dev", "cad-snli")


def write_pairs(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write pairs as JSON lines, with those of `COLUMNS` that they have."""
    write_json_lines(path, ({name: row[name] for name in COLUMNS if name in row} for row in rows))


def read_entailment(path: Path) -> list[dict[str, str]]:
    """Read the entailment pairs of `NLI_SOURCES`, as dicts of `NLI_COLUMNS`."""
    return [row for row in read_table(path, NLI_COLUMNS) if row["source"] in NLI_SOURCES]
