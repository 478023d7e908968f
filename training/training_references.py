"""Training references: hashes of the references that a checkpoint was fine-tuned on, in a small file beside its weights.

A metric that is measured on ratings it was trained on looks better than it is. With this file `bleurt-repro experiment`
notices that, also on a machine that has no training ratings. The file holds no text, and scores do not depend on it.

Format of `training_references.json`: a JSON object with "format", "version", "references" (number of different references)
and "hashes", which is base64. A hash is the first 8 bytes of the SHA-256 of the reference in UTF-8, after `str.casefold` and
with single spaces as its only white space, read as a big-endian number. The hashes ascend. Of more than `MOST_HASHES`
references the smallest hashes are kept: a random sample, which answers for all texts whose hash is at most its largest one.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

TRAINING_REFERENCES = "training_references.json"
FORMAT, VERSION = "bleurt-repro training references", 1
MOST_HASHES = 32_768  # 350 kB
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class TrainingReferences:
    """Hashes of different references.

    Attributes:
        hashes: ascending hashes, at most `MOST_HASHES`.
        count: number of different references.
    """

    hashes: Hashes
    count: int

    @classmethod
    def from_texts(cls, references: Iterable[str]) -> TrainingReferences:
        """Hash references; those that differ in case or white space only are equal."""
        hashes = hash_texts(references)
        return cls(hashes[:MOST_HASHES], len(hashes))

    @classmethod
    def read(cls, folder: str | Path) -> TrainingReferences | None:
        """Read the file of a checkpoint; of an ensemble, those of its members.

        Args:
            folder: folder of the checkpoint.

        Returns:
            the hashes; None if there is no file, or a member of the ensemble has none.

        Raises:
            ValueError: if the file is damaged.
        """
        from bleurt_repro.metric.loading.ensemble import is_ensemble, read_ensemble

        if is_ensemble(Path(folder)):
            return merge_references(
                [Path(folder) / member.checkpoint for member in read_ensemble(Path(folder)).members]
            )
        path = Path(folder) / TRAINING_REFERENCES
        if not path.is_file():
            return None
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            if (record["format"], record["version"]) != (FORMAT, VERSION):
                raise ValueError(f"its version is {record['version']!r}, and this package reads {VERSION}")
            hashes = np.frombuffer(base64.b64decode(record["hashes"], validate=True), ">u8").astype(np.uint64)
            return cls(np.unique(hashes), int(record["references"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"{path} cannot be read ({error}): remove it, or train the checkpoint again") from error

    def write(self, folder: str | Path) -> None:
        """Write the file into the folder of a checkpoint."""
        from bleurt_repro.metric.files.writing import write_text

        hashes = base64.b64encode(self.hashes.astype(">u8").tobytes()).decode()
        record = {"format": FORMAT, "version": VERSION, "references": self.count, "hashes": hashes}
        write_text(Path(folder) / TRAINING_REFERENCES, json.dumps(record) + "\n")

    def merge(self, *others: TrainingReferences) -> TrainingReferences:
        """Return the references of several checkpoints; where not all hashes are stored, their number is a lower bound."""
        sets = (self, *others)
        limit = min(references._limit for references in sets)
        hashes = np.unique(np.concatenate([references.hashes for references in sets]))
        complete = hashes[hashes <= limit]
        count = max(len(complete), *(references.count for references in sets))
        return TrainingReferences(complete[:MOST_HASHES], count)

    def overlap(self, references: Iterable[str]) -> dict[str, int]:
        """Count which references were trained on.

        Args:
            references: references of the ratings that are measured.

        Returns:
            "references": different ones that the hashes can answer for; "seen": those of them that were trained on.
        """
        hashes = hash_texts(references)
        hashes = hashes[hashes <= self._limit]
        return {"references": len(hashes), "seen": int(np.isin(hashes, self.hashes).sum())}

    @property
    def _limit(self) -> np.uint64:
        """Largest hash that the stored ones answer for."""
        is_sample = len(self.hashes) and self.count > len(self.hashes)
        return self.hashes[-1] if is_sample else np.uint64(2**64 - 1)


def hash_texts(texts: Iterable[str]) -> Hashes:
    """Return the ascending hashes of different texts, as the module describes them."""
    normalized = {" ".join(text.casefold().split()) for text in texts}
    digests = b"".join(hashlib.sha256(text.encode()).digest()[:8] for text in normalized)
    return np.unique(np.frombuffer(digests, ">u8").astype(np.uint64))


def record_references(folder: Path, references: Iterable[str], start: Path) -> None:
    """Write the references of a training run, and those that its start was trained on.

    Args:
        folder: folder of the new checkpoint.
        references: references of the ratings that the checkpoint was trained on or chosen by.
        start: checkpoint that training started from.
    """
    seen = TrainingReferences.from_texts(references)
    earlier = TrainingReferences.read(start)
    (seen.merge(earlier) if earlier else seen).write(folder)


def merge_references(checkpoints: Sequence[Path]) -> TrainingReferences | None:
    """Return the training references of several checkpoints together; None if those of one are unknown."""
    sets = [TrainingReferences.read(folder) for folder in checkpoints]
    complete = [references for references in sets if references is not None]
    return complete[0].merge(*complete[1:]) if len(complete) == len(sets) else None


def find_overlap(checkpoint: str | Path, references: Iterable[str]) -> dict[str, Any] | None:
    """Count which references a checkpoint was trained on, as `TrainingReferences.overlap`; None if that is unknown.

    Args:
        checkpoint: folder, embedded name or Hub id.
        references: references of the ratings that are measured.
    """
    from bleurt_repro.metric.loading.find import find_checkpoint

    seen = TrainingReferences.read(find_checkpoint(str(checkpoint)))
    return seen.overlap(references) if seen else None
