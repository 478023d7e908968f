"""Record what a benchmark measured, its command and the machine, and measure the machine: matrix products and memory."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

ROWS = {"cpu": 2048, "cuda": 65536}
# Packages that are timed beside this one, if they are installed.
PEERS = ("bert-score", "onnxruntime", "evaluate")


def write_result(
    output: str | Path,
    benchmark: str,
    unit: str | Mapping[str, str],
    figures: Mapping[str, Any],
    argv: Sequence[str] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Write what a benchmark measured, with the command that repeats it, the unit, the machine and the versions.

    Args:
        output: JSON file.
        benchmark: name of the benchmark.
        unit: unit of the figures, or the unit of each figure by its name.
        figures: measured values by name; "machine" may be among them.
        argv: command line that repeats the measurement; default: that of this process.
        fields: fields of `Result`, such as seed or data.

    Returns:
        the JSON object in the file.
    """
    from bleurt_repro.training.results import Result, versions

    values = {"machine": description(torch.get_num_threads(), "cpu"), **figures, "unit": unit}
    result = Result(benchmark, command(argv), values, versions={**versions(), **_peer_versions()}, **fields)
    Path(output).parent.mkdir(parents=True, exist_ok=True)
    result.write(output)
    return result.to_json()


def command(argv: Sequence[str] | None = None) -> str:
    """Return a command line with files and folders by name, and the cores that this process may use.

    Args:
        argv: command line; default: that of this process.
    """
    argv = sys.argv if argv is None else argv
    arguments = [argument if argument.startswith("-") else by_name(argument) for argument in argv[1:]]
    run = " ".join(["python", f"benchmarks/{Path(argv[0]).name}", *arguments])
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    is_limited = 0 < len(cores) < (os.cpu_count() or 1)
    return f"taskset -c {','.join(map(str, cores))} {run}" if is_limited else run


def by_name(argument: str) -> str:
    """Return a path by its last part; of `bertscore@9:FOLDER`, the part after the colon is shortened."""
    key, colon, path = argument.rpartition(":")
    return f"{key}{colon}{Path(path).name}"


def _peer_versions() -> dict[str, str]:
    versions = {}
    for name in PEERS:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return versions


def matrix_rate(width: int, inner: int, device: str, dtype: torch.dtype = torch.float32, repeats: int = 7) -> float:
    """Measure the rate of matrix products of the shapes in an encoder, with every product that torch offers here.

    Args:
        width, inner: sizes of the hidden and the intermediate layer.
        device: "cpu" or "cuda".
        dtype: arithmetic of the products.
        repeats: number of repetitions; the median is used.

    Returns:
        operations per second of the faster product, the mean of both shapes.
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
    """Compute the operations that scores need: all layers over all tokens, the last one for [CLS] only, without padding.

    Args:
        config: configuration of a model with the architecture of BERT.
        lengths: number of tokens of each pair.
    """
    width, inner = config.hidden_size, config.intermediate_size
    token = 8 * width**2 + 4 * width * inner
    total = 0.0
    for length in lengths:
        total += (config.num_hidden_layers - 1) * (token * length + 4 * length**2 * width)
        total += 4 * width**2 * length + 4 * length * width + token - 4 * width**2  # the last layer
    return total


def idle_share(work: Callable[[], object]) -> float:
    """Run some work under PyTorch's profiler, and return the share of wall time in which the GPU computed nothing."""
    from torch.profiler import ProfilerActivity, profile

    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        start = time.perf_counter()
        work()
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
    busy = sum(event.self_device_time_total for event in profiler.key_averages()) / 1e6
    return 1 - busy / seconds


def peak_memory() -> int:
    """Return the largest resident memory of this process so far, in bytes (Linux)."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def description(threads: int, device: str) -> dict[str, Any]:
    """Return the processor, its instructions, the GPU, and the numbers of threads and cores.

    Args:
        threads: number of threads of torch.
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
