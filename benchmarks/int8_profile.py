"""Measure where the time of an int8 graph goes, by kind of operation, and what would be gained if none of it were float32.

    python benchmarks/int8_profile.py --ratings wmt2017/test.jsonl --output docs/results/int8-profile [--checkpoint NAME]

It scores the first pairs of the file with the backends onnx and onnx-int8, with one thread, under ONNX Runtime's own
profiler. It writes OUTPUT.json and OUTPUT.md.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

BACKENDS = ("onnx", "onnx-int8")
SMALLEST_SHARE = 0.01
UNITS = {"seconds": "seconds in operations of a kind, over all pairs", "total": "of all operations"}


def main() -> None:
    """Measure and write the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ratings", required=True)
    parser.add_argument("--output", required=True, help="files to write, without .json and .md")
    parser.add_argument("--checkpoint", default="bleurt-repro-mini")
    parser.add_argument("--count", type=int, default=500)
    options = parser.parse_args()
    os.environ.update(OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false")
    import torch
    from machine import write_result

    torch.set_num_threads(1)
    with open(options.ratings, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines][: options.count]
    found = {backend: seconds_by_kind(options.checkpoint, backend, rows) for backend in BACKENDS}
    figures = {name: {"total": sum(kinds.values()), "seconds": kinds} for name, kinds in found.items()}
    output = Path(options.output)
    result = write_result(
        output.with_suffix(".json"), "int8 profile", UNITS, {"pairs": len(rows), "backends": figures}
    )
    output.with_suffix(".md").write_text(f"`{result['command']}`\n\n{table(figures)}")
    print(table(figures))


def seconds_by_kind(checkpoint: str, backend: str, rows: list[dict[str, Any]]) -> dict[str, float]:
    """Return the seconds in operations of each kind, the longest first."""
    import onnxruntime

    from bleurt_repro import BleurtScorer

    opened, sessions = onnxruntime.InferenceSession, []
    with tempfile.TemporaryDirectory() as folder:

        def profiled(graph: str, settings: Any, **more: Any) -> Any:
            settings.enable_profiling = True
            settings.profile_file_prefix = f"{folder}/{len(sessions)}"
            sessions.append(opened(graph, settings, **more))
            return sessions[-1]

        onnxruntime.InferenceSession = profiled
        try:
            scorer = BleurtScorer(checkpoint, device="cpu", backend=backend, progress=False)
            scorer.score(references=[row["reference"] for row in rows], candidates=[row["candidate"] for row in rows])
        finally:
            onnxruntime.InferenceSession = opened
        events = [event for session in sessions for event in json.loads(Path(session.end_profiling()).read_text())]
    kinds: Counter[str] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            kinds[event["args"]["op_name"]] += event["dur"] / 1e6
    return dict(kinds.most_common())


def table(figures: dict[str, Any]) -> str:
    """Return the figures as Markdown: kinds that take a hundredth of a backend's time or more."""
    kinds = [
        kind
        for kind in dict.fromkeys(kind for one in figures.values() for kind in one["seconds"])
        if any(one["seconds"].get(kind, 0) >= SMALLEST_SHARE * one["total"] for one in figures.values())
    ]
    lines = [f"| operation | {' | '.join(f'{name}, s | share, %' for name in figures)} |", "|---" * 5 + "|"]
    for kind in [*kinds, "all"]:
        cells = []
        for one in figures.values():
            seconds = one["total"] if kind == "all" else one["seconds"].get(kind, 0.0)
            cells += [f"{seconds:.2f}", f"{100 * seconds / one['total']:.1f}"]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
