"""Time scoring: ours and what the peers do, each as its own documentation runs it, in one interleaved run.

    taskset -c 0 python benchmarks/scoring.py --pairs wmt2018/test.jsonl --bertscore-layer 4 --large-peers --output speed-mini
    python benchmarks/scoring.py --pairs wmt2018/test.jsonl --checkpoint bleurt-repro-base --bertscore-layer 9 --output speed-base
    python benchmarks/scoring.py --pairs wmt2018/test.jsonl --size large --sample 1000 --slow-sample 64 --output speed-large
    python benchmarks/scoring.py --pairs wmt2018/test.jsonl --device cuda --rounds 3 --sample 100000 --large-peers \
        --bertscore-layer 4 --output speed-gpu

Pairs are lines of JSON with reference and candidate; a random sample of them is scored by each way in turn, `--rounds`
times, on `--threads` threads; the slow ways score the first of them. On a GPU, the share of time in which it computes
nothing is measured in one more round of ours. `--size large` takes a model of BERT-large size with
random weights, whose speed is that of any weights, of the architecture and with the tokenizer of `--checkpoint` (a scorer or
an encoder). It writes speed-mini.json, .md and .png.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SIZES = {"base": (12, 768), "large": (24, 1024)}
UNITS = {
    "seconds": "seconds of wall time for all pairs of the way, by round",
    "pairs_per_second": "pairs per second, of the median round",
    "share_of_matrix_rate": "useful operations over those of matrix products alone",
    "padded_over_real_tokens": "tokens",
    "largest_difference": "of scores, from the plain loop's",
    "idle_share": "share of wall time without a kernel on the GPU",
    "memory_mb": "megabytes (10^6 bytes) above the loaded model",
    "matrix_rate": "operations per second",
}


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", required=True, help="JSONL with reference and candidate")
    parser.add_argument("--output", required=True, help="files to write, without .json, .md, .png")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    parser.add_argument("--size", choices=sorted(SIZES), help="random weights of this size instead")
    parser.add_argument("--sample", type=int, default=10_000)
    parser.add_argument("--slow-sample", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--large-peers", action="store_true", help="models of COMET's and MetricX's size with random weights, too"
    )
    parser.add_argument("--bertscore-layer", type=int, help="that bert-score compares; by default the last")
    parser.add_argument("--only", nargs="*", help="names of ways; default: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--memory-of", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    """Run all ways in turn and write the figures."""
    options = parse()
    os.environ.update(OMP_NUM_THREADS=str(options.threads), TOKENIZERS_PARALLELISM="false")
    import torch

    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = random_checkpoint(options, Path(folder)) if options.size else options.checkpoint
        pairs = sample(options)
        if options.memory_of:
            print(json.dumps(memory(options, checkpoint, pairs)))
            return
        # of main memory, which is not what a way needs on a GPU
        measured = ways(options, checkpoint) if options.device == "cpu" else []
        taken = {way.name: memory_of(options, way.name) for way in measured}
        results = {**measure(options, checkpoint, pairs), "memory_mb": taken}
    write(results, Path(options.output))


def sample(options: argparse.Namespace) -> list[tuple[str, str]]:
    """Draw the pairs to score."""
    with open(options.pairs, encoding="utf-8") as lines:
        pairs = list(dict.fromkeys((row["reference"], row["candidate"]) for row in map(json.loads, lines)))
    return random.Random(options.seed).sample(pairs, min(options.sample, len(pairs)))


def random_checkpoint(options: argparse.Namespace, folder: Path) -> str:
    """Write a scorer of one of BERT's sizes with random weights, and the checkpoint's architecture and tokenizer."""
    import torch
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer

    from bleurt_repro.metric.layout import Layout, readable_tokens, separators_of
    from bleurt_repro.metric.loading.find import find_checkpoint
    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    layers, width = SIZES[options.size]
    torch.manual_seed(options.seed)
    source = find_checkpoint(options.checkpoint)
    config = AutoConfig.from_pretrained(
        source,
        num_labels=1,
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        intermediate_size=4 * width,
    )
    model, tokenizer = AutoModelForSequenceClassification.from_config(config), AutoTokenizer.from_pretrained(source)
    layout = Layout(max_length=readable_tokens(config, tokenizer), separators=separators_of(tokenizer))
    prepare_scorer(model, tokenizer, layout)
    save_scorer(model, tokenizer, folder)
    return str(folder)


def ways(options: argparse.Namespace, checkpoint: str) -> list[Any]:
    """Make every way that works here."""
    import importlib.util

    import torch
    from strategies import (
        BERT_SCORE,
        COMET,
        METRICX,
        PREPARATION,
        bert_score,
        comet,
        metricx,
        ours,
        peers,
        preparation,
    )

    from bleurt_repro import BleurtScorer

    def scorer(**settings: Any) -> BleurtScorer:
        return BleurtScorer(checkpoint, device=options.device, progress=False, **settings)

    exact, half = scorer(), scorer(dtype="bfloat16")
    makers: dict[str, Any] = {"ours, exact": lambda: ours("ours, exact", exact, "float32, no padding")}
    makers["ours, bfloat16"] = lambda: ours("ours, bfloat16", half, "bfloat16, no padding", torch.bfloat16)
    makers[PREPARATION] = lambda: preparation(scorer())
    if options.device == "cuda":
        name, compiled = "ours, float16", "ours, bfloat16, compiled"
        makers[name] = lambda: ours(name, scorer(dtype="float16"), "float16, no padding", torch.float16)
        makers[compiled] = lambda: ours(
            compiled, scorer(dtype="bfloat16", backend="compile"), "bfloat16, no padding, compiled", torch.bfloat16
        )
    if options.device == "cpu" and importlib.util.find_spec("onnxruntime"):
        makers["ours, ONNX"] = lambda: ours("ours, ONNX", scorer(backend="onnx"), "ONNX Runtime, float32")
        makers["ours, int8"] = lambda: ours("ours, int8", scorer(backend="onnx-int8"), "ONNX Runtime, int8")
    if importlib.util.find_spec("bert_score"):
        layers = options.bertscore_layer or exact.model.config.num_hidden_layers
        makers[BERT_SCORE] = lambda: bert_score(str(exact.folder), layers, options.device)
    if options.large_peers:
        makers[COMET] = lambda: comet(exact)
    if options.large_peers and options.device == "cpu":
        makers[METRICX] = lambda: metricx(exact)
    others = [*peers(exact), *(peers(half) if options.device == "cuda" else [])]
    makers = {**{way.name: lambda way=way: way for way in others}, **makers}
    return [make() for name, make in makers.items() if not options.only or name in options.only]


def measure(options: argparse.Namespace, checkpoint: str, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Time every way in every round, and the machine's matrix products between them."""
    import torch
    from machine import description, idle_share, matrix_rate, useful_operations
    from strategies import PLAIN, encode

    from bleurt_repro import BleurtScorer

    scorer = BleurtScorer(checkpoint, device=options.device, progress=False)
    lengths = [len(pair.ids) for pair in encode(scorer, pairs)]
    config, few = scorer.model.config, min(options.slow_sample, len(pairs))
    timed = ways(options, checkpoint)
    seconds: dict[str, list[float]] = {way.name: [] for way in timed}
    rates: dict[torch.dtype, list[float]] = {}
    scores = {}
    for way in timed:  # warm up
        way.score(pairs[: min(64, few)])
    # The ways take turns, so that changes in the machine's load meet all of them.
    for number in range(options.rounds):
        for way in timed:
            # A CPU's rate is that of float32; a GPU's depends on the arithmetic more than all else.
            dtype = torch.float32 if options.device == "cpu" else way.dtype
            products = matrix_rate(config.hidden_size, config.intermediate_size, options.device, dtype)
            rates.setdefault(dtype, []).append(products)
            start = time.perf_counter()
            scores[way.name] = way.score(pairs[:few] if way.slow else pairs)
            seconds[way.name].append(time.perf_counter() - start)
            print(f"round {number + 1}: {way.name} {seconds[way.name][-1]:.2f} s", file=sys.stderr, flush=True)
    # Rates and shares of each way, from the median of its rounds.
    rate = {dtype: statistics.median(measured) for dtype, measured in rates.items()}
    plain, rows = scores.get(PLAIN), []
    for way in timed:
        count = few if way.slow else len(pairs)
        way_lengths, middle = lengths[:count], statistics.median(seconds[way.name])
        differs = plain and [abs(a - b) for a, b in zip(scores[way.name], plain, strict=False)]
        rows.append(
            {
                "name": way.name,
                "how": way.how,
                "setting": way.setting,
                "pairs": count,
                "seconds": seconds[way.name],
                "pairs_per_second": count / middle,
                "share_of_matrix_rate": useful_operations(config, way_lengths)
                / middle
                / rate.get(way.dtype, rate.get(torch.float32)),
                "padded_over_real_tokens": way.padded_tokens(way_lengths) / sum(way_lengths),
                "largest_difference": max(differs) if differs and way.comparable else None,
                "idle_share": idle_share(lambda way=way: way.score(pairs))
                if options.device == "cuda" and way.name.startswith("ours")
                else None,
            }
        )
    exact_rates = rates.get(torch.float32) or next(iter(rates.values()))
    return {
        "machine": description(options.threads, options.device),
        "settings": {
            **vars(options),
            "pairs": Path(options.pairs).name,
            "checkpoint": Path(options.checkpoint).name,
            "output": None,
        },
        "model": {
            "architecture": type(scorer.model).__name__,
            "layers": config.num_hidden_layers,
            "width": config.hidden_size,
        },
        "tokens_per_pair": statistics.mean(lengths),
        "matrix_rate": {
            "median": statistics.median(exact_rates),
            "smallest": min(exact_rates),
            "largest": max(exact_rates),
            "by_dtype": {str(dtype).removeprefix("torch."): median for dtype, median in rate.items()},
        },
        "ways": rows,
    }


def memory(options: argparse.Namespace, checkpoint: str, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Measure the memory that one way needs in addition to loading it; run in a new process."""
    from machine import peak_memory

    options.only = [options.memory_of]
    (way,) = ways(options, checkpoint)
    loaded = peak_memory()
    way.score(pairs)
    return {"loaded": loaded / 1e6, "scoring": (peak_memory() - loaded) / 1e6}


def memory_of(options: argparse.Namespace, name: str) -> dict[str, float]:
    """Run this file again for one way's memory, on as many pairs as the slow ways score."""
    command = [sys.executable, __file__, "--memory-of", name, "--pairs", options.pairs, "--output", options.output]
    command += ["--sample", str(min(options.slow_sample, 256)), "--checkpoint", options.checkpoint]
    command += ["--threads", str(options.threads), "--device", options.device]
    command += ["--size", options.size] if options.size else []
    command += ["--bertscore-layer", str(options.bertscore_layer)] if options.bertscore_layer else []
    command += ["--large-peers"] if options.large_peers else []
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(process.stdout.splitlines()[-1])


def write(results: dict[str, Any], output: Path) -> None:
    """Write the figures, a table and a plot."""
    from machine import write_result
    from report import plot, table

    results = write_result(output.with_suffix(".json"), "scoring", UNITS, results, seed=results["settings"]["seed"])
    text = table(results)
    output.with_suffix(".md").write_text(text)
    plot(results, output.with_suffix(".png"))
    print(text)


if __name__ == "__main__":
    main()
