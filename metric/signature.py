"""The signature of a score, which makes it reproducible, as in sacreBLEU (https://aclanthology.org/W18-6319)."""

from __future__ import annotations

from collections.abc import Sequence

from bleurt_repro import __version__
from bleurt_repro.metric.layout import Layout


def signature(
    checkpoint: str,
    content: str,
    layout: Layout,
    dtype: str,
    aggregate: str,
    calibrated: bool = False,
    inputs: Sequence[str] | None = None,
) -> str:
    """Return everything that a score depends on, in one line.

    Args:
        checkpoint: name of the checkpoint that the user gave.
        content: content hash of the checkpoint.
        layout: layout of the checkpoint.
        dtype: arithmetic, such as "float32".
        aggregate: how the scores of several references are combined.
        calibrated: whether scores are percentiles of human ratings; named only if they are.
        inputs: texts that were given; by default all that the checkpoint reads.
    """
    fields = {
        "checkpoint": checkpoint,
        "hash": content,
        "inputs": "+".join(layout.inputs if inputs is None else inputs),
        "max_length": layout.max_length,
        "dtype": dtype,
        "aggregate": aggregate,
        **({"scale": "percentile"} if calibrated else {}),
        "version": __version__,
    }
    return "|".join(f"{key}:{value}" for key, value in fields.items())
