"""What of a folder is published: a fixed set of kinds of files, and nothing that merely lies beside them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

CARD = "README.md"
LICENCES = ("LICENSE*", "LICENCE*")
# Patterns of paths in the folder, by kind of repository. Records of a training run stay at home, the result of it goes.
PUBLISHED = {
    "model": (
        CARD, "*.json", "*.safetensors", "vocab.txt", "merges.txt", "*.model", "curves.png", *LICENCES,
    ),
    "dataset": (CARD, "*.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "data/*.parquet", *LICENCES),
    "space": (CARD, "*.py", "*.txt", "*.css", "*.whl", *LICENCES),
}  # fmt: skip
# Rows that synthetic pairs were not made of: of no use elsewhere, and perhaps not for others' eyes.
KEPT_AT_HOME = ("skipped.jsonl",)
# Files of an earlier version that a loader would take for part of this one: they go when the folder has them no more.
REPLACED = ("*.safetensors", "*.safetensors.index.json", "*.jsonl", "*.parquet", "*.csv", "*.tsv", "*.whl")


@dataclass(frozen=True)
class File:
    """A file to publish.

    Attributes:
        path: in the repository.
        content: the file on disk, or its bytes where they differ from what is on disk.
    """

    path: str
    content: Path | bytes

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def pieces(self) -> Iterator[bytes]:
        """Give the content piece by piece."""
        if isinstance(self.content, bytes):
            yield self.content
            return
        with self.content.open("rb") as file:
            while piece := file.read(1 << 20):
                yield piece

    def read(self) -> bytes:
        """Give the whole content."""
        return b"".join(self.pieces())

    def is_stored_as(self, blob: str, sha256: str | None) -> bool:
        """Tell whether the Hub has this content already: a large file by its SHA-256, a small one by its git hash."""
        if sha256:
            digest = hashlib.sha256()
        else:
            digest = hashlib.sha1(b"blob %d\0" % self.size, usedforsecurity=False)
        for piece in self.pieces():
            digest.update(piece)
        return digest.hexdigest() == (sha256 or blob)


def gather(kind: str, folder: Path) -> tuple[list[File], list[str]]:
    """Sort a folder into what is published and what is left out.

    Args:
        kind: "model", "dataset" or "space".
        folder: the folder.

    Returns:
        the files to publish, by path; and the paths left out, those of a subfolder under its name alone.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if it holds nothing to publish.
    """
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give the folder of the {kind} to publish")
    inside = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path: path.relative_to(folder).as_posix() for path in inside}
    chosen = [path for path in inside if _is_published(kind, names[path])]
    if not any(names[path] != CARD for path in chosen):
        raise ValueError(f"{folder} holds nothing of a {kind}: expected {', '.join(PUBLISHED[kind])}")
    left_out = {_shown(name) for path, name in names.items() if path not in chosen and not _is_rubbish(name)}
    return [File(names[path], path) for path in chosen], sorted(left_out)


def _is_published(kind: str, name: str) -> bool:
    hidden = any(part.startswith(".") for part in name.split("/"))
    return not (hidden or name in KEPT_AT_HOME) and any(
        fnmatch(name, pattern) and name.count("/") == pattern.count("/") for pattern in PUBLISHED[kind]
    )


def _is_rubbish(name: str) -> bool:
    return "__pycache__" in name


def _shown(name: str) -> str:
    folder, slash, _ = name.partition("/")
    return folder + slash if slash else name
