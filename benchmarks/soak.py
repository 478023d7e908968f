"""Keep one scorer busy for long, from several threads, and watch its memory: flat, or it leaks.

    python benchmarks/soak.py --output docs/results/soak.json [--minutes 20] [--threads 8]

Each thread scores batches of made-up pairs of 1 to 100 words, new ones every time, and scores one fixed batch between
them, whose scores must never change. Memory is read every ten seconds (Linux). The first quarter, in which allocators and
caches fill, is left out of the trend: the slope of a line through the rest, in MiB an hour. It exits with 1 if a fixed
score changed.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

WORDS = (
    "the a cat old dog house river ran over under near green slowly because many people saw it and then left".split()
)
FIXED = {
    "references": ["The cat sat on the mat.", "It rained all day.", "Nobody was at home."],
    "candidates": ["A cat was sitting on the mat.", "It was dry.", "There was nobody at home."],
}
TOLERANCE = 1e-5
EVERY = 10.0
UNITS = {
    "memory_mib": "[seconds since the start, MiB of resident memory]",
    "mib_an_hour": "MiB an hour, after the first quarter",
    "pairs": "pairs scored",
    "wrong": "batches whose scores changed",
}


def main() -> int:
    """Score, watch, write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    options = parser.parse_args()

    from machine import write_result

    from bleurt_repro import BleurtScorer

    scorer = BleurtScorer(options.checkpoint, device="cpu", progress=False)
    work = Work(scorer, time.monotonic() + 60 * options.minutes)
    threads = [threading.Thread(target=work.do, args=(number,)) for number in range(options.threads)]
    for thread in threads:
        thread.start()
    memory = []
    while alive := [thread for thread in threads if thread.is_alive()]:
        memory.append((round(time.monotonic() - work.start), resident()))
        alive[-1].join(EVERY)
    results = {
        "minutes": options.minutes,
        "scoring_threads": options.threads,
        "pairs": work.pairs,
        "fixed_batches": work.fixed,
        "wrong": work.wrong,
        "errors": work.errors,
        **trend(memory),
        "memory_mib": memory,
    }
    results = write_result(options.output, "soak", UNITS, results)
    print(json.dumps({name: value for name, value in results.items() if name != "memory_mib"}, indent=2))
    return int(bool(work.wrong or work.errors))


class Work:
    """What the threads do, and what they found."""

    def __init__(self, scorer: Any, end: float) -> None:
        self.scorer, self.end, self.start = scorer, end, time.monotonic()
        self.expected = scorer.score(**FIXED)
        self.pairs = self.fixed = self.wrong = 0
        self.errors: list[str] = []
        self.lock = threading.Lock()

    def do(self, number: int) -> None:
        """Score until the time is over."""
        draw = random.Random(number)
        while time.monotonic() < self.end:
            count = draw.randint(1, 40)
            texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 50))) for _ in range(2 * count)]
            try:
                scores = self.scorer.score(references=texts[:count], candidates=texts[count:])
                fixed = self.scorer.score(**FIXED)
            except Exception as error:  # whatever it was, it is counted
                self.errors.append(f"{type(error).__name__}: {error}")
                return
            wrong = any(abs(a - b) > TOLERANCE for a, b in zip(fixed, self.expected, strict=True))
            with self.lock:
                self.pairs += len(scores)
                self.fixed += 1
                self.wrong += wrong


def resident() -> float:
    """Read this process's resident memory, in MiB."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return round(int(line.split()[1]) / 1024, 1)


def trend(memory: list[tuple[int, float]]) -> dict[str, float]:
    """Sum up the samples after the first quarter."""
    settled = memory[len(memory) // 4 :]
    sizes = [size for _, size in settled]
    slope = statistics.linear_regression(*zip(*settled, strict=True)).slope if len(settled) > 1 else 0.0
    return {
        "first_mib": memory[0][1],
        "settled_mib": sizes[0],
        "last_mib": sizes[-1],
        "peak_mib": max(size for _, size in memory),
        "mib_an_hour": round(3600 * slope, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
