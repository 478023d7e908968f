"""Read parallel text: sources with their references and, where they are there, hypotheses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from bleurt_repro.datasets_builders.record_files import file_form, read_records, text_lines

Triple = dict[str, Any]


def read_pairs(path: str, with_candidates: bool, most: int | None) -> list[Triple]:
    """Read parallel text: records of source and reference, or a table of those two columns without names.

    Args:
        path: CSV, TSV, JSON lines or Parquet, as `read_records` takes them. A TSV whose first line does not name the
            columns is read as source and reference (and candidate).
        with_candidates: whether each record must have a candidate.
        most: how many records to read.

    Raises:
        ValueError: naming the line, if a text is missing.
    """
    names = ("source", "reference", *(("candidate",) if with_candidates else ()))
    needed = names[1:] if with_candidates else names  # without a translator, a source is for teachers that read one
    pairs: list[Triple] = []
    for place, record in islice(_records(path), most):
        if missing := [name for name in needed if not str(record.get(name) or "").strip()]:
            hint = "; hypotheses are either in the file or made with --translator" if "candidate" in missing else ""
            raise ValueError(f"{path}, {place}: no {', '.join(missing)}{hint}")
        pairs.append({name: record.get(name) or "" for name in names})
    if not pairs:
        raise ValueError(f"{path}: no records; expected source and reference")
    return pairs


def _records(path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if not Path(path).is_file() or file_form(path) != ".tsv":
        yield from read_records(path)
        return
    first = next(text_lines(Path(path)), "").rstrip("\r\n").split("\t")
    if {"source", "reference"} <= {name.strip() for name in first}:
        yield from read_records(path)
        return
    for number, line in enumerate(text_lines(Path(path)), start=1):
        yield (
            f"line {number}",
            dict(zip(("source", "reference", "candidate"), line.rstrip("\r\n").split("\t"), strict=False)),
        )
