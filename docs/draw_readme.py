"""Draw the table of README.md from results files.

    python docs/draw_readme.py README.md

The table stands between `<!-- begin table -->` and `<!-- end table -->`. A figure that no results file holds is left empty.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from bleurt_repro.metric.files.tables import markdown_table

RESULTS = Path(__file__).resolve().parent / "results"
HEADINGS = (
    "metric",
    "experts: tau",
    "experts, same sentence: acc_eq",
    "crowd: tau",
    "pairs per second",
    "download, MB",
)
# Each row: its heading, its name in the results of agreement, its speed (file and name there), its size in MB.
MINI, BASE = "all-MiniLM-L6-v2, layer 4", "all-mpnet-base-v2, layer 9"
OURS, PEER = "ours, exact", "bert-score, the same encoder"
ROWS: tuple[tuple[str, str, tuple[str, str] | None, int | None], ...] = (
    ("**bleurt-repro-base**", "bleurt-repro-base", ("speed-base-xeon", OURS), 110),
    ("**bleurt-repro-mini**", "bleurt-repro-mini", ("speed-mini-xeon", OURS), 23),
    ("**bleurt-repro-multi**", "bleurt-repro-multi (reference)", ("speed-multi-xeon", OURS), 59),
    ("the same, with sources", "bleurt-repro-multi", None, None),
    ("BERTScore with mpnet-base", f"bertscore ({BASE})", ("speed-base-xeon", PEER), 438),
    ("BERTScore with MiniLM", f"bertscore ({MINI})", ("speed-mini-xeon", PEER), 91),
    ("BERTScore with multilingual-e5-small", "bertscore (e5-small, layer 9)", ("speed-multi-xeon", PEER), 471),
    ("chrF++", "chrf++", None, None),
    ("sentence BLEU", "sentbleu", None, None),
)


def read(name: str) -> dict[str, Any]:
    """Read a results file of docs/results."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def averages(measure: str, *names: str) -> dict[str, float | None]:
    """Return the average of a measure, if measured, for each metric in results files on the same ratings."""
    return {row["name"]: row["average"].get(measure) for name in names for row in read(name)["rows"]}


def draw_table() -> str:
    """Return the table as Markdown."""
    columns = (
        averages("kendall_by_length", "mqm21", "multi-mqm21"),
        averages("acc_eq", "mqm21", "multi-mqm21"),
        averages("kendall_by_length", "wmt22", "multi-wmt22"),
    )
    cells = []
    for heading, name, speed, size in ROWS:
        rate = None if speed is None else _pairs_per_second(*speed)
        numbers = [_percent(column.get(name)) for column in columns]
        cells.append([heading, *numbers, "" if rate is None else f"{rate:.0f}", size or ""])
    return markdown_table(HEADINGS, cells) + "\n"


def _pairs_per_second(file: str, name: str) -> float:
    return next(way["pairs_per_second"] for way in read(file)["ways"] if way["name"] == name)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}"


def with_table(page: str) -> str:
    """Return the page with the table drawn anew between its markers."""
    begin, end = "<!-- begin table -->\n", "<!-- end table -->"
    return re.sub(f"{begin}.*?{end}", lambda _: f"{begin}{draw_table()}{end}", page, flags=re.DOTALL)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(with_table(path.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
