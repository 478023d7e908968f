"""Time the choice among samples on one core: ours, one call per pair, and MBR by chrF; and measure what is chosen.

    taskset -c 0 python benchmarks/choosing.py --samples samples.jsonl --judge bertscore@9:ENCODER --output choosing-mini

Samples are lines of JSON with a list `candidates` and, to measure quality, a `reference`. All ways are timed on the first
`--slow-sample` segments; the choice of all pairs by our scores, which takes longest, is made for the first `--exact-sample`.
Times are seconds of CPU time of this process.
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
    "cpu_seconds": "seconds of CPU time per segment, of the first segments",
    "share_of_time": "of the CPU time of one call per pair",
    "pairs": "pairs of two texts that were scored, per segment",
    "share_of_pairs": "of all pairs of two samples, each with itself included",
    "same_choice": "share of segments with the choice of all pairs",
    "loss": "expected score lost by the other choices, mean over segments",
    "quality": "BLEU and chrF of sacreBLEU and mean scores of the judge, against the references, 0 to 100",
}
OURS, PRUNED, NAIVE, BY_CHRF = "choose", "choose, pruned", "one call per pair", "chrF (sacreBLEU), all pairs"


class Way(NamedTuple):
    """One way to choose from a number of segments; returns index and number of scored pairs of each."""

    name: str
    choose: Callable[[Sequence[list[str]]], list[tuple[int, int]]]
    segments: int


def main() -> None:
    """Run all ways, and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", required=True, help="JSONL with candidates and reference")
    parser.add_argument("--output", required=True, help="file to write, without .json")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    parser.add_argument("--segments", type=int, default=1000)
    parser.add_argument("--exact-sample", type=int, default=100)
    parser.add_argument("--slow-sample", type=int, default=5)
    parser.add_argument(
        "--judge", help="baseline that judges what was chosen, as in `experiment agreement --baselines`"
    )
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    import torch

    torch.set_num_threads(1)
    from machine import by_name, write_result

    from bleurt_repro import BleurtScorer
    from bleurt_repro.training.metrics.samples import data_record

    with open(options.samples, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][: options.segments]
    scorer = BleurtScorer(options.checkpoint, device="cpu", progress=False)
    results, signatures = measure(rows, scorer, options.exact_sample, options.slow_sample, options.judge)
    judge = options.judge and by_name(options.judge)
    settings = {**vars(options), "samples": Path(options.samples).name, "output": None, "judge": judge}
    write_result(
        f"{options.output}.json",
        "choosing",
        UNITS,
        {"settings": settings, **results},
        signatures={options.checkpoint: scorer.signature, **signatures},
        data=data_record(options.samples, len(rows)),
    )


def measure(
    rows: Sequence[dict[str, Any]], scorer: Any, exact_sample: int, slow_sample: int, judge: str | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Time each way, compare what it chooses with the choice of all pairs, and let the judge score it.

    Returns:
        figures, and the signature of the judge.
    """
    samples = [row["candidates"] for row in rows]
    few = min(slow_sample, len(samples))
    all_ways = ways(scorer, len(samples), min(exact_sample, len(samples)), few)
    # times, of all ways one after the other: what else the machine does has less time to change
    choices, seconds = {}, {}
    for way in all_ways:
        way.choose([samples[0][:2]])  # warm up
        start = time.process_time()
        choices[way.name] = way.choose(samples[:few])
        seconds[way.name] = (time.process_time() - start) / few
        print(f"{way.name}: {seconds[way.name]:.3f} s per segment", file=sys.stderr, flush=True)
    # choices of the other segments
    for way in all_ways:
        if way.segments > few:
            choices[way.name] += way.choose(samples[few : way.segments])
        print(f"{way.name}: {way.segments} segments", file=sys.stderr, flush=True)
    chosen = {name: [index for index, _ in pairs] for name, pairs in choices.items()}
    table: list[dict[str, Any]] = []
    for way in all_ways:
        pairs = statistics.mean(count for _, count in choices[way.name])
        all_pairs = statistics.mean(len(texts) ** 2 for texts in samples[: way.segments])
        table.append(
            {
                "name": way.name,
                "segments": way.segments,
                "cpu_seconds": seconds[way.name],
                "share_of_time": seconds[way.name] / seconds[NAIVE],
                "pairs": pairs,
                "share_of_pairs": pairs / all_pairs,
                **_agreement(samples, way, chosen, scorer),
            }
        )
    judged, signatures = quality(rows, chosen, judge) if "reference" in rows[0] else (None, {})
    figures = {
        "segments": len(rows),
        "samples_per_segment": statistics.mean(map(len, samples)),
        "different_samples": statistics.mean(len(set(texts)) for texts in samples),
        "ways": table,
        "quality": judged,
    }
    return figures, signatures


def ways(scorer: Any, count: int, exact: int, few: int) -> list[Way]:
    """Return the ways to choose, with their numbers of segments; first the exact one, with which others are compared."""
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
        Way(OURS, ours(False), exact),
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
        return {"same_choice": None, "loss": None, "compared": 0}
    pairs = list(zip(samples, chosen[way.name], chosen[OURS], strict=False))
    different = [(texts, index, best) for texts, index, best in pairs if index != best]
    losses = []
    for texts, index, best in different:
        matrix = scorer.matrix([texts[index], texts[best]], texts)
        sums = matrix.sum(axis=1) - [matrix[0, index], matrix[1, best]]
        losses.append(float(sums[1] - sums[0]) / (len(texts) - 1))
    compared = min(len(chosen[way.name]), len(chosen[OURS]))
    return {"same_choice": 1 - len(different) / compared, "loss": sum(losses) / compared, "compared": compared}


def quality(
    rows: Sequence[dict[str, Any]], chosen: dict[str, list[int]], judge: str | None
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return BLEU, chrF and the judge's mean score of what each way chooses from all segments, and of the first sample."""
    from sacrebleu.metrics import BLEU, CHRF

    from bleurt_repro.training.metrics.baselines import find_baseline

    references = [row["reference"] for row in rows]
    outputs = {"the first sample": [0] * len(rows), **{name: chosen[name] for name in (PRUNED, BY_CHRF)}}
    figures, signatures = {}, {}
    for name, indices in outputs.items():
        texts = [row["candidates"][index] for row, index in zip(rows, indices, strict=True)]
        scores = {
            metric.__class__.__name__: metric.corpus_score(texts, [references]).score for metric in (BLEU(), CHRF())
        }
        figures[name] = {"bleu": scores["BLEU"], "chrf": scores["CHRF"]}
        if judge:
            judged = find_baseline(judge)(references, texts)
            figures[name]["judge"] = 100 * statistics.mean(judged.scores)
            signatures["judge"] = judged.signature
    return figures, signatures


if __name__ == "__main__":
    main()
