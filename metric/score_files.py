"""Score files: what `bleurt-repro score` does between reading its input and writing its output."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

from bleurt_repro.metric.atomic import write_text
from bleurt_repro.metric.pair_files import read_lines, read_pairs
from bleurt_repro.metric.texts import check_same_length

# Seven decimals: a float32 score is known no better.
DECIMALS = 7


def score_files(
    *,
    references: str | None,
    candidates: str | None,
    sources: str | None,
    pairs: str | None,
    output: str,
    as_json: bool,
    aggregate: str,
    scorer_options: dict[str, Any],
    calibrated: bool = False,
) -> None:
    """Read texts, score them, and write one score a line or one JSON object.

    Args:
        references, candidates, sources: text files of one segment a line, or "-" for standard input.
        pairs: a JSONL file instead of them.
        output: the file to write, or "-" for standard output.
        as_json: write scores, mean_score, signature and truncated as one object.
        aggregate: as in `BleurtScorer.score`.
        scorer_options: arguments of `BleurtScorer`.
        calibrated: as in `BleurtScorer.score`.

    Raises:
        ValueError: if the input is incomplete or malformed, naming file and line.
    """
    texts = _read(references, candidates, sources, pairs)
    from bleurt_repro.metric.scorer import BleurtScorer  # after the input is known to be good: it loads torch

    result = BleurtScorer(**scorer_options).compute(**texts, aggregate=aggregate, calibrated=calibrated)
    scores = [round(score, DECIMALS) for score in result.scores]
    if as_json:
        written = json.dumps({**dataclasses.asdict(result), "scores": scores}) + "\n"
    else:
        written = "".join(f"{score:.{DECIMALS}f}\n" for score in scores)
    _write(output, written)


def _read(references: str | None, candidates: str | None, sources: str | None, pairs: str | None) -> dict[str, Any]:
    if pairs is not None:
        if references or candidates or sources:
            raise ValueError("give either --pairs or --references and --candidates, not both")
        return read_pairs(pairs)
    if references is None or candidates is None:
        raise ValueError("nothing to score: give --references and --candidates, or --pairs")
    given = {"references": references, "candidates": candidates, "sources": sources}
    if list(given.values()).count("-") > 1:
        raise ValueError("only one file can be standard input ('-')")
    texts: dict[str, Any] = {name: read_lines(path) for name, path in given.items() if path is not None}
    check_same_length({f"lines in {given[name]}": len(lines) for name, lines in texts.items()})
    return texts


def _write(output: str, text: str) -> None:
    if output == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_text(Path(output), text)
