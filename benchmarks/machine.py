"""What every benchmark records of itself and the machine; and what the machine can do: matrix products, useful operations, memory."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

ROWS = {"cpu": 2048, "cuda": 65536}
# Of what is timed beside this package, where it is installed.
PEERS = ("bert-score", "onnxruntime", "evaluate")


def write_result(
    output: str | Path,
    kind: str,
    unit: str | Mapping[str, str],
    figures: Mapping[str, Any],
    words: Sequence[str] | None = None,
    **more: Any,
) -> dict[str, Any]:
    """Write what a benchmark measured, with the command that repeats it, the unit, the machine and the versions.

    Args:
        output: the JSON file.
        kind: the benchmark's name.
        unit: of the figures; by the figure's name where they differ.
        figures: what was measured, by name; "machine" may be among them.
        words: the command line that repeats it; by default this process's.
        more: fields of `Result`, such as seed or data.

    Returns:
        the object in the file.
    """
    from bleurt_repro.training.results import Result, versions

    found = {"machine": description(torch.get_num_threads(), "cpu"), **figures, "unit": unit}
    result = Result(kind, command(words), found, versions={**versions(), **_peers()}, **more)
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    result.write(output)
    return result.to_json()


def command(words: Sequence[str] | None = None) -> str:
    """Return the command line of this process, files and folders by name, with the cores that it was held to.

    Args:
        words: the command line; by default this process's.
    """
    words = sys.argv if words is None else words
    shown = [word if word.startswith("-") else Path(word).name for word in words[1:]]
    run = " ".join(["python", f"benchmarks/{Path(words[0]).name}", *shown])
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    held = 0 < len(cores) < (os.cpu_count() or 1)
    return f"taskset -c {','.join(map(str, cores))} {run}" if held else run


def _peers() -> dict[str, str]:
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def matrix_rate(width: int, inner: int, device: str, dtype: torch.dtype = torch.float32, repeats: int = 7) -> float:
    """Multiply matrices of the shapes that an encoder has, by every product that torch offers here.

    Args:
        width, inner: sizes of the hidden and the intermediate layer.
        device: "cpu" or "cuda".
        dtype: the arithmetic.
        repeats: how often each; the median counts.

    Returns:
        operations a second of the faster product, the mean of both shapes.
    """
    rates = []
    for columns, outputs in ((width, inner), (inner, width)):
        rows = torch.randn(ROWS[device], columns, device=device, dtype=dtype)
        weight, bias = torch.randn(outputs, columns, device=device, dtype=dtype), torch.zeros(outputs, device=device)
        bias = bias.to(dtype)
        ways: list[Any] = [lambda r=rows, w=weight, b=bias: torch.nn.functional.linear(r, w, b)]
        if device == "cpu" and torch.backends.mkldnn.is_available():
            blocked = torch.ops.mkldnn._reorder_linear_weight(weight, ROWS[device])
            ways.append(lambda r=rows, w=blocked, b=bias: torch.ops.mkldnn._linear_pointwise(r, w, b, "none", [], ""))
        rates.append(2 * ROWS[device] * columns * outputs / min(_median(way, device, repeats) for way in ways))
    return statistics.mean(rates)


def useful_operations(config: Any, lengths: Sequence[int]) -> float:
    """Count the operations that scores need: all layers over all tokens, but the last for [CLS] only; no padding.

    Args:
        config: of a BERT-shaped model.
        lengths: tokens of each pair.
    """
    width, inner = config.hidden_size, config.intermediate_size
    token = 8 * width**2 + 4 * width * inner
    total = 0.0
    for length in lengths:
        total += (config.num_hidden_layers - 1) * (token * length + 4 * length**2 * width)
        total += 4 * width**2 * length + 4 * length * width + token - 4 * width**2  # the last layer
    return total


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def description(threads: int, device: str) -> dict[str, Any]:
    """Describe the machine: processor, instructions, GPU, threads, cores.

    Args:
        threads: that torch computes with.
        device: "cpu" or "cuda".
    """
    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "processor": models[0] if models else platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "threads": threads,
        "cores": os.cpu_count(),
        "system": platform.system(),
    }


def _median(way: Any, device: str, repeats: int) -> float:
    times = []
    with torch.inference_mode():
        way()
        for _ in range(repeats):
            start = time.perf_counter()
            way()
            if device == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - start)
    return statistics.median(times)
