"""A checkpoint's own record of its files' hashes: what was damaged on a disk or on its way is not scored with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.metric.signature import SCORING_FILES, file_hash

CHECKSUMS_FILE = "checksums.json"
# Settings may be edited by hand, and `calibrate` adds to them: a change of theirs shows in the signature.
SETTINGS = ("config.json", "ensemble.json")


def scoring_files(folder: Path) -> list[Path]:
    """List the weights and the tokenizer's files of a checkpoint's folder, by name."""
    patterns = [pattern for pattern in SCORING_FILES if pattern not in SETTINGS]
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})


def write_checksums(folder: Path, files: Sequence[Path] | None = None) -> None:
    """Record the SHA-256 of files in a folder's checksums.json.

    Args:
        folder: a checkpoint's.
        files: wherever they lie yet; by default the weights and the tokenizer's files in the folder.
    """
    listed = scoring_files(folder) if files is None else files
    sums = {path.name: file_hash(path).hex() for path in listed}
    write_text(folder / CHECKSUMS_FILE, json.dumps({"sha256": sums}, indent=2) + "\n")


def check_sums(folder: Path) -> None:
    """Compare a folder's files with its checksums.json, if it has one.

    Raises:
        ValueError: naming the first file that is missing or differs, and what to do.
    """
    path = folder / CHECKSUMS_FILE
    if not path.is_file():
        return
    try:
        sums = dict(json.loads(path.read_text(encoding="utf-8"))["sha256"])
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): fetch or make the checkpoint again, or remove it"
        ) from error
    for name, expected in sums.items():
        file = folder / Path(name).name
        if not file.is_file() or file_hash(file).hex() != expected:
            state = "differs from its SHA-256 in" if file.is_file() else "is missing, and listed in"
            raise ValueError(
                f"{name} {state} {CHECKSUMS_FILE}: it was damaged or changed, and is not used; fetch or make the "
                f"checkpoint again, or remove {path} if the change is yours"
            )
