"""The string that makes a score reproducible, after the example of sacreBLEU (https://aclanthology.org/W18-6319)."""

from __future__ import annotations

import hashlib
from pathlib import Path

from bleurt_repro import __version__
from bleurt_repro.metric.layout import Layout

HASH_DIGITS = 12
# A checkpoint's configuration, weights and tokenizer; results, logs and cards beside them do not count.
SCORING_FILES = (
    "config.json",
    "ensemble.json",  # names its members' hashes
    "*.safetensors",
    "*.safetensors.index.json",
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "*.model",
)


def content_hash(folder: Path) -> str:
    """Hash what decides a checkpoint's scores: its configuration, weights and tokenizer.

    Args:
        folder: a checkpoint's folder; only `SCORING_FILES` count.

    Returns:
        the first 12 hexadecimal digits of a SHA-256.
    """
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SCORING_FILES for path in folder.glob(pattern)}):
        if path.is_file():
            digest.update(path.name.encode())
            digest.update(file_hash(path))
    return digest.hexdigest()[:HASH_DIGITS]


def file_hash(path: Path) -> bytes:
    """Give the SHA-256 of a file's bytes, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.digest()


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
