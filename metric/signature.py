"""The string that makes a score reproducible, after the example of sacreBLEU (https://aclanthology.org/W18-6319)."""

from __future__ import annotations

from bleurt_repro import __version__
from bleurt_repro.metric.layout import Layout


def signature(
    checkpoint: str, content: str, layout: Layout, dtype: str, aggregate: str, calibrated: bool = False
) -> str:
    """Name everything a score depends on in one line.

    Args:
        checkpoint: the name it was asked for by.
        content: its content hash.
        layout: what it reads.
        dtype: the arithmetic, such as "float32".
        aggregate: how several references become one score.
        calibrated: whether scores are percentiles of human ratings; named only then.
    """
    fields = {
        "checkpoint": checkpoint,
        "hash": content,
        "inputs": "+".join(layout.inputs),
        "max_length": layout.max_length,
        "dtype": dtype,
        "aggregate": aggregate,
        **({"scale": "percentile"} if calibrated else {}),
        "version": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in fields.items())
