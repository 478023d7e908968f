"""Measure how scoring a file grows: time and memory with its length, two processes against one, and a kill in the middle.

    python benchmarks/scaling.py --output scaling
    python benchmarks/scaling.py --output scaling --checkpoint bleurt-repro-mini --counts 1000 3000 10000 --shard-count 4000

By default it scores with a narrow model of random weights, made on the spot, so that a million pairs take minutes: what
is measured is what grows with the file, not the model. Every figure is measured in a new process, `bleurt-repro score`.
It writes scaling.json, .md and .png.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WORDS = (
    "the a cat dog bird house river city mayor council said that it will rain tomorrow and nobody knows why price of bread "
    "rose again last week after three calm years while ships waited outside harbour for wind"
).split()


UNITS = {
    "seconds": "seconds of wall time, start-up included",
    "processor_seconds": "seconds of processor time, start-up included",
    "memory_mb": "megabytes (10^6 bytes), the largest resident memory",
    "shards": "seconds of wall time of one process, and of two at once, by turn",
    "kill": "records scored before the kill",
}


def main() -> None:
    """Measure and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", required=True, help="files to write, without .json, .md, .png")
    parser.add_argument("--checkpoint", help="default: a narrow model of random weights")
    parser.add_argument("--counts", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--shard-count", type=int, default=20_000, help="pairs for two processes; 0: leave out")
    parser.add_argument("--kill-count", type=int, default=20_000, help="pairs for the killed run; 0: leave out")
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", TQDM_DISABLE="1")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        checkpoint = options.checkpoint or narrow_checkpoint(folder / "narrow")
        results: dict[str, Any] = {"checkpoint": options.checkpoint or "narrow", "growth": []}
        for count in options.counts:
            results["growth"].append(whole(folder, checkpoint, count))
            print(results["growth"][-1], file=sys.stderr, flush=True)
        if options.shard_count:
            results["shards"] = shards(folder, checkpoint, options.shard_count)
        if options.kill_count:
            results["kill"] = kill(folder, checkpoint, options.kill_count)
    write(results, Path(options.output))


def narrow_checkpoint(folder: Path) -> str:
    """Write a scorer of two narrow layers and the embedded checkpoint's tokenizer."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification

    from bleurt_repro.metric.loading.find import find_checkpoint

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(find_checkpoint("bleurt-repro-mini"))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    BertForSequenceClassification(BertConfig(vocab_size=len(tokenizer), num_labels=1, **sizes)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


def write_pairs(file: Path, count: int) -> None:
    """Write random pairs; no two are equal, so that nothing is saved on repeats."""
    rng = random.Random(0)
    with file.open("w") as lines:
        for number in range(count):
            reference = " ".join(rng.choices(WORDS, k=rng.randint(5, 40)))
            candidate = " ".join(rng.choices(WORDS, k=rng.randint(5, 40)))
            lines.write(json.dumps({"reference": f"{number} {reference}", "candidate": candidate}) + "\n")


def command(checkpoint: str, pairs: Path, output: Path, *options: str) -> list[str]:
    """Return the command that scores a file."""
    run = [sys.executable, "-m", "bleurt_repro.cli", "score", "--device", "cpu", "--checkpoint", checkpoint]
    return [*run, "--pairs", str(pairs), "--output", str(output), *options]


def whole(folder: Path, checkpoint: str, count: int) -> dict[str, float]:
    """Score a file in one process; seconds and megabytes of that process."""
    pairs, output = folder / f"{count}.jsonl", folder / f"{count}.txt"
    write_pairs(pairs, count)
    start = time.perf_counter()
    process = subprocess.Popen(command(checkpoint, pairs, output))
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"scoring {count} pairs failed")
    seconds = time.perf_counter() - start
    lines = sum(1 for _ in output.open())
    if lines != count:
        raise SystemExit(f"expected {count} scores, found {lines}")
    return {
        "pairs": count,
        "seconds": seconds,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "memory_mb": usage.ru_maxrss / 1e3,
    }


def shards(folder: Path, checkpoint: str, count: int) -> dict[str, float]:
    """Score a file in one process, then in two at once, three times in turn; the best ratio of wall time counts."""
    pairs = folder / "shards.jsonl"
    write_pairs(pairs, count)
    times: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(3):
        for number in times:
            start = time.perf_counter()
            processes = [
                subprocess.Popen(
                    command(checkpoint, pairs, folder / "s.txt", "--num-shards", str(number), "--shard-index", str(i))
                )
                for i in range(number)
            ]
            if any(process.wait() for process in processes):
                raise SystemExit("a shard failed")
            times[number].append(time.perf_counter() - start)
    ratios = [alone / together for alone, together in zip(times[1], times[2], strict=True)]
    return {"pairs": count, "one": times[1], "two": times[2], "ratios": ratios, "median_ratio": sorted(ratios)[1]}


def kill(folder: Path, checkpoint: str, count: int) -> dict[str, Any]:
    """Kill a run once it has written something, run it again, and compare with a run that was left alone."""
    pairs, alone, killed = folder / "kill.jsonl", folder / "alone.txt", folder / "killed.txt"
    write_pairs(pairs, count)
    subprocess.run(command(checkpoint, pairs, alone), check=True)
    process = subprocess.Popen(command(checkpoint, pairs, killed))
    journal = folder / ".killed.txt.partial.json"
    while not journal.exists() and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    records = json.loads(journal.read_text())["counts"]["records"] if journal.exists() else None
    subprocess.run(command(checkpoint, pairs, killed), check=True)
    return {"pairs": count, "killed_after": records, "same_bytes": alone.read_bytes() == killed.read_bytes()}


def write(results: dict[str, Any], output: Path) -> None:
    """Write the figures, a table and a plot."""
    import matplotlib
    from machine import description, write_result

    matplotlib.use("Agg")
    from matplotlib import pyplot

    results = write_result(
        output.with_suffix(".json"), "scaling", UNITS, {**results, "machine": description(1, "cpu")}, seed=0
    )
    rows = results["growth"]
    lines = [
        f"`{results['command']}`",
        "",
        "| pairs | seconds | processor seconds | memory, MB |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {row['pairs']:,} | {row['seconds']:.1f} | {row['processor_seconds']:.1f} | {row['memory_mb']:.0f} |"
        for row in rows
    ]
    lines += ["", *(f"{name}: {json.dumps(results[name])}" for name in ("shards", "kill") if name in results)]
    output.with_suffix(".md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    figure, axes = pyplot.subplots(figsize=(6, 4))
    counts, seconds = [row["pairs"] for row in rows], [row["processor_seconds"] for row in rows]
    rate = (seconds[-1] - seconds[0]) / max(counts[-1] - counts[0], 1)
    start = seconds[0] - rate * counts[0]
    steps = [counts[0] * (counts[-1] / counts[0]) ** (i / 99) for i in range(100)]
    line = f"{start:.1f} s + {1e6 * rate:.0f} s for each million"
    axes.loglog(steps, [start + rate * n for n in steps], "--", color="#555555", label=line)
    axes.loglog(counts, seconds, "o", color="#2a7f62", label="measured")
    axes.legend()
    axes.set_xlabel("pairs in the file")
    axes.set_ylabel("processor seconds, start-up included")
    figure.tight_layout()
    figure.savefig(output.with_suffix(".png"), dpi=150)


if __name__ == "__main__":
    main()
