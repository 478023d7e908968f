"""Measure what a faster backend costs in agreement with human ratings, and what it gains in speed.

    python benchmarks/backends.py --ratings wmt2017/test.jsonl --output backends

Ratings are lines of JSON with reference, candidate, score and lp; Kendall's tau is taken for each language pair and
averaged. It writes backends.json and backends.md.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

BACKENDS: dict[str, dict[str, str]] = {
    "torch (exact)": {},
    "torch, bfloat16": {"dtype": "bfloat16"},
    "onnx": {"backend": "onnx"},
    "onnx-int8": {"backend": "onnx-int8"},
}


UNITS = {
    "pairs_per_second": "pairs a second",
    "tau": "Kendall's tau, mean of the language pairs",
    "largest_difference": "of scores, from the exact ones",
}


def main() -> None:
    """Score all ratings with every backend and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", required=True)
    parser.add_argument("--output", required=True, help="files to write, without .json and .md")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=int, help="only the first so many ratings")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS=str(options.threads), TOKENIZERS_PARALLELISM="false")
    import torch
    from machine import write_result

    torch.set_num_threads(options.threads)
    with open(options.ratings, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][: options.limit]
    results: dict[str, Any] = {"settings": {**vars(options), "ratings": Path(options.ratings).name, "output": None}}
    results["backends"] = measure(options.checkpoint, rows)
    output = Path(options.output)
    results = write_result(output.with_suffix(".json"), "backends", UNITS, results)
    output.with_suffix(".md").write_text(f"`{results['command']}`\n\n{table(results['backends'])}")
    print(table(results["backends"]))


def measure(checkpoint: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return speed, tau and the difference from the exact scores for each backend."""
    from bleurt_repro import BleurtScorer

    references, candidates = [row["reference"] for row in rows], [row["candidate"] for row in rows]
    exact: list[float] = []
    measured = []
    for name, settings in BACKENDS.items():
        scorer = BleurtScorer(checkpoint, device="cpu", **settings)  # type: ignore[arg-type]
        scorer.score(references=references[:64], candidates=candidates[:64])
        start = time.perf_counter()
        scores = scorer.score(references=references, candidates=candidates)
        seconds = time.perf_counter() - start
        exact = exact or scores
        measured.append(
            {
                "name": name,
                "pairs_per_second": len(rows) / seconds,
                "tau": mean_tau(scores, rows),
                "largest_difference": max(abs(a - b) for a, b in zip(scores, exact, strict=True)),
                "signature": scorer.signature,
            }
        )
    return measured


def mean_tau(scores: Sequence[float], rows: list[dict[str, Any]]) -> float:
    """Return Kendall's tau of the segments of each language pair, averaged."""
    from bleurt_repro.metric.statistics import kendall_tau

    pairs = sorted({row["lp"] for row in rows})
    chosen = [[i for i, row in enumerate(rows) if row["lp"] == lp] for lp in pairs]
    return statistics.mean(kendall_tau([scores[i] for i in own], [rows[i]["score"] for i in own]) for own in chosen)


def table(rows: list[dict[str, Any]]) -> str:
    """Return the figures as Markdown; tau times 100."""
    lines = [
        "| backend | pairs/s | over exact | tau x 100 | change | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        lines.append(
            f"| {row['name']} | {row['pairs_per_second']:.1f} "
            f"| {row['pairs_per_second'] / rows[0]['pairs_per_second']:.2f} | {100 * row['tau']:.2f} "
            f"| {100 * (row['tau'] - rows[0]['tau']):+.2f} | {row['largest_difference']:.1e} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
