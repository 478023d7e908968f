"""Time the choice among samples on one core: ours, one call per pair, and MBR by chrF; and measure what is chosen.

    taskset -c 0 python benchmarks/choosing.py --samples samples.jsonl --output choosing-mini

Samples are lines of JSON with a list `candidates` and, to measure quality, a `reference`. One call per pair is timed on
the first `--slow-sample` segments. Times are seconds of this process's CPU time, which other programs do not change.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

UNITS = {
    "cpu_seconds": "seconds of CPU time per segment",
    "cpu_seconds_of_first": "the same of the first segments, which all ways choose from",
    "share_of_time": "CPU time for the first segments over that of one call per pair",
    "pairs": "pairs of two texts that were scored, per segment",
    "share_of_pairs": "of all pairs of two samples, each with itself included",
    "same_choice": "share of segments with the choice of all pairs",
    "loss": "expected score lost by the other choices, mean over all segments",
    "quality": "BLEU and chrF of sacreBLEU against the references, 0 to 100",
}
OURS, PRUNED, NAIVE, BY_CHRF = "choose", "choose, pruned", "one call per pair", "chrF (sacreBLEU), all pairs"


class Way(NamedTuple):
    """One way to choose: returns index and number of scored pairs per segment."""

    name: str
    choose: Callable[[Sequence[list[str]]], list[tuple[int, int]]]
    segments: int


def main() -> None:
    """Run all ways, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", required=True, help="JSONL with candidates and reference")
    parser.add_argument("--output", required=True, help="file to write, without .json")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    parser.add_argument("--segments", type=int, default=50)
    parser.add_argument("--slow-sample", type=int, default=5)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    import torch

    torch.set_num_threads(1)
    from machine import write_result

    from bleurt_repro import BleurtScorer
    from bleurt_repro.training.metrics.samples import data_record

    with open(options.samples, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][: options.segments]
    scorer = BleurtScorer(options.checkpoint, device="cpu", progress=False)
    results = measure(rows, scorer, options.slow_sample)
    settings = {**vars(options), "samples": Path(options.samples).name, "output": None}
    write_result(
        f"{options.output}.json",
        "choosing",
        UNITS,
        {"settings": settings, **results},
        signatures={options.checkpoint: scorer.signature},
        data=data_record(options.samples, len(rows)),
    )


def measure(rows: Sequence[dict[str, Any]], scorer: Any, slow_sample: int) -> dict[str, Any]:
    """Time each way, and compare what it chooses with the choice of all pairs."""
    samples = [row["candidates"] for row in rows]
    chosen: dict[str, list[int]] = {}
    table: list[dict[str, Any]] = []
    few = min(slow_sample, len(samples))
    for way in ways(scorer, len(samples), few):
        way.choose([samples[0][:2]])  # warm up
        start = time.process_time()
        choices = way.choose(samples[:few])
        first_seconds = time.process_time() - start
        if way.segments > few:
            choices += way.choose(samples[few : way.segments])
        seconds = (time.process_time() - start) / way.segments
        print(f"{way.name}: {seconds:.3f} s per segment", file=sys.stderr, flush=True)
        chosen[way.name] = [index for index, _ in choices]
        pairs = statistics.mean(count for _, count in choices)
        all_pairs = statistics.mean(len(texts) ** 2 for texts in samples[: way.segments])
        table.append(
            {
                "name": way.name,
                "segments": way.segments,
                "cpu_seconds": seconds,
                "cpu_seconds_of_first": first_seconds / few,
                "pairs": pairs,
                "share_of_pairs": pairs / all_pairs,
                **_agreement(samples, way, chosen, scorer),
            }
        )
    naive = next(row["cpu_seconds_of_first"] for row in table if row["name"] == NAIVE)
    for row in table:
        row["share_of_time"] = row["cpu_seconds_of_first"] / naive
    return {
        "segments": len(rows),
        "samples_per_segment": statistics.mean(map(len, samples)),
        "different_samples": statistics.mean(len(set(texts)) for texts in samples),
        "ways": table,
        "quality": quality(rows, chosen) if "reference" in rows[0] else None,
    }


def ways(scorer: Any, count: int, few: int) -> list[Way]:
    """Return the ways to choose; the exact one first, with which the others are compared."""
    from sacrebleu.metrics import CHRF

    from bleurt_repro import choose

    def ours(prune: bool) -> Callable[[Sequence[list[str]]], list[tuple[int, int]]]:
        return lambda samples: [(choice.index, choice.pairs) for choice in choose(scorer, samples, prune=prune)]

    def one_by_one(texts: list[str]) -> list[list[float]]:
        return [[scorer.score(candidates=[text], references=[other])[0] for other in texts] for text in texts]

    def by_chrf(texts: list[str]) -> list[list[float]]:
        chrf = CHRF()
        return [[chrf.sentence_score(text, [other]).score for other in texts] for text in texts]

    return [
        Way(OURS, ours(False), count),
        Way(PRUNED, ours(True), count),
        Way(NAIVE, lambda samples: [_best(texts, one_by_one(texts)) for texts in samples], few),
        Way(BY_CHRF, lambda samples: [_best(texts, by_chrf(texts)) for texts in samples], count),
    ]


def _best(texts: list[str], scores: list[list[float]]) -> tuple[int, int]:
    """Return the sample with the highest mean score over the other samples, and the number of all pairs."""
    means = [sum(row) - row[i] for i, row in enumerate(scores)]
    best = max(range(len(texts)), key=means.__getitem__)
    # equal samples are one choice, and rounding must not divide them
    return texts.index(texts[best]), len(texts) ** 2


def _agreement(samples: Sequence[list[str]], way: Way, chosen: dict[str, list[int]], scorer: Any) -> dict[str, Any]:
    """Return how often a way with our scores chooses as all pairs do, and what its other choices lose."""
    if way.name == BY_CHRF:
        return {"same_choice": None, "loss": None}
    pairs = zip(samples, chosen[way.name], chosen[OURS], strict=False)
    different = [(texts, index, best) for texts, index, best in pairs if index != best]
    losses = []
    for texts, index, best in different:
        matrix = scorer.matrix([texts[index], texts[best]], texts)
        sums = matrix.sum(axis=1) - [matrix[0, index], matrix[1, best]]
        losses.append(float(sums[1] - sums[0]) / (len(texts) - 1))
    return {"same_choice": 1 - len(different) / way.segments, "loss": sum(losses) / way.segments}


def quality(rows: Sequence[dict[str, Any]], chosen: dict[str, list[int]]) -> dict[str, dict[str, float]]:
    """Return BLEU and chrF of what each way chooses, and of the first sample."""
    from sacrebleu.metrics import BLEU, CHRF

    references = [row["reference"] for row in rows]
    outputs = {"the first sample": [0] * len(rows), **{name: chosen[name] for name in (OURS, PRUNED, BY_CHRF)}}
    figures = {}
    for name, indices in outputs.items():
        texts = [row["candidates"][index] for row, index in zip(rows, indices, strict=True)]
        scores = {
            metric.__class__.__name__: metric.corpus_score(texts, [references]).score for metric in (BLEU(), CHRF())
        }
        figures[name] = {"bleu": scores["BLEU"], "chrf": scores["CHRF"]}
    return figures


if __name__ == "__main__":
    main()
