"""What the machine can do: its matrix products, a scorer's useful operations, a process's memory."""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

ROWS = {"cpu": 2048, "cuda": 65536}


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
    """The largest resident memory of this process so far, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def description(threads: int, device: str) -> dict[str, Any]:
    """Name the machine and the versions that timings depend on."""
    import transformers

    models = [
        line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line
    ]
    return {
        "processor": models[0] if models else platform.processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if device == "cuda" else None,
        "threads": threads,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
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
