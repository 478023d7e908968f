"""Put the demo under load: many visitors at once, none lost, none wrong, memory steady.

    python benchmarks/demo_load.py --output demo_load.json [--requests 200] [--clients 20] [--rounds 2]

It starts `bleurt-repro demo` on this machine as a process of its own, scores each pair beforehand for comparison, sends
the requests from concurrent clients through Gradio's own client, and writes what came back, how long it took, and the
server's memory over time. It exits with 1 if a request was lost or an answer was wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

SUBJECTS = ("The engineer", "A young doctor", "My neighbour", "The orchestra", "An old sailor", "The committee")
VERBS = ("repaired", "painted", "described", "sold", "admired", "forgot")
OBJECTS = ("the bridge", "a wooden boat", "the long report", "an empty house", "the first symphony", "its own rules")
ENDS = ("before noon", "in the rain", "without a word", "for the third time", "after the debate", "near the harbour")
# Scores of one pair differ by this much at most with the batch they are scored in.
TOLERANCE = 1e-4


def main() -> int:
    """Run the load and write its figures."""
    options = parse()
    pairs = make_pairs(options.requests)
    expected = expected_scores(options.checkpoint, pairs)
    port = free_port()
    server = start(options.checkpoint, port)
    try:
        wait_until_up(port, server)
        with MemoryWatch(server.pid) as memory:
            answers: list[dict[str, Any]] = []
            after, begin = [], time.perf_counter()
            for _ in range(options.rounds):
                answers += send(f"http://127.0.0.1:{port}", pairs, options.clients)
                after.append(memory.resident())
            seconds = time.perf_counter() - begin
    finally:
        server.terminate()
        server.wait()
    figures = {
        **judged(answers, expected * options.rounds),
        "clients": options.clients,
        "requests_a_second": round(len(answers) / seconds, 2),
        "latency_seconds": latencies(answers),
        "memory_mib": {"before": memory.first, "after_each_round": after, "peak": memory.peak},
        "checkpoint": options.checkpoint,
        "machine": {"processor": platform.processor() or platform.machine(), "cores": os.cpu_count()},
        "threads": os.environ.get("OMP_NUM_THREADS", "as many as torch takes"),
    }  # fmt: skip
    text = json.dumps(figures, indent=1)
    Path(options.output).write_text(text + "\n")
    print(text)
    return 1 if figures["lost"] or figures["wrong"] else 0


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", required=True)
    parser.add_argument("--requests", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=2, help="all requests again, from new clients")
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    return parser.parse_args()


def make_pairs(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Make different pairs of sentences, some of them alike."""
    generator = random.Random(seed)
    parts = (SUBJECTS, VERBS, OBJECTS, ENDS)
    pairs = []
    for _ in range(count):
        reference = [generator.choice(part) for part in parts]
        candidate = [w if generator.random() < 0.6 else generator.choice(p) for w, p in zip(reference, parts, strict=True)]  # fmt: skip
        pairs.append((f"{' '.join(reference)}.", f"{' '.join(candidate)}."))
    return pairs


def expected_scores(checkpoint: str, pairs: list[tuple[str, str]]) -> list[float]:
    """Score the pairs without the demo."""
    from bleurt_repro import BleurtScorer

    references, candidates = map(list, zip(*pairs, strict=True))
    return BleurtScorer(checkpoint, progress=False).score(references=references, candidates=candidates)


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(checkpoint: str, port: int) -> subprocess.Popen[bytes]:
    """Start the demo."""
    command = [sys.executable, "-m", "bleurt_repro.cli", "demo", "--checkpoint", checkpoint, "--port", str(port)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def wait_until_up(port: int, server: subprocess.Popen[bytes], seconds: float = 120) -> None:
    """Wait until the demo answers."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the demo did not start")


class MemoryWatch:
    """Reads a process's resident memory, in MiB, twice a second (Linux)."""

    def __init__(self, process: int) -> None:
        self._status = Path(f"/proc/{process}/status")
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.first = self.peak = self.resident()

    def resident(self) -> int:
        """Read the resident memory now, in MiB."""
        line = next(line for line in self._status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) // 1024

    def _watch(self) -> None:
        while not self._over.wait(0.5):
            self.peak = max(self.peak, self.resident())

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def send(url: str, pairs: list[tuple[str, str]], clients: int) -> list[dict[str, Any]]:
    """Send every pair, from so many clients at a time; an answer is a score or an error, and its seconds."""
    from gradio_client import Client

    own = threading.local()
    ready = [Client(url, verbose=False) for _ in range(clients)]

    def ask(pair: tuple[str, str]) -> dict[str, Any]:
        if not hasattr(own, "client"):
            own.client = ready.pop()
        begin = time.perf_counter()
        try:
            answer = own.client.predict(*pair, api_name="/score")
            return {"score": answer["score"], "seconds": time.perf_counter() - begin}
        except Exception as error:  # whatever it was, the request is lost
            return {"error": f"{type(error).__name__}: {error}", "seconds": time.perf_counter() - begin}

    with ThreadPoolExecutor(clients) as pool:
        return list(pool.map(ask, pairs))


def judged(answers: list[dict[str, Any]], expected: list[float]) -> dict[str, Any]:
    """Count the answers that did not come and those that are wrong."""
    errors = [answer["error"] for answer in answers if "error" in answer]
    gaps = [abs(a["score"] - e) for a, e in zip(answers, expected, strict=True) if "score" in a]
    return {
        "requests": len(answers),
        "lost": len(errors),
        "wrong": sum(gap > TOLERANCE for gap in gaps),
        "largest_difference": max(gaps, default=None),
        "errors": sorted(set(errors))[:5],
    }


def latencies(answers: list[dict[str, Any]]) -> dict[str, float]:
    """Return how long an answer took, its time in the queue included."""
    seconds = sorted(answer["seconds"] for answer in answers)
    return {"median": round(statistics.median(seconds), 2), "slowest": round(seconds[-1], 2)}


if __name__ == "__main__":
    sys.exit(main())
