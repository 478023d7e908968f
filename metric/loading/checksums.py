"""Hashes of a checkpoint's files: the content hash in its signature, and the recorded ones, checked on opening."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.metric.files.writing import write_text

CHECKSUMS_FILE = "checksums.json"
HASH_DIGITS = 12
# Settings may be edited by hand, and `calibrate` adds to them: a change of theirs shows in the signature.
SETTINGS = ("config.json", "ensemble.json")  # the latter names its members' hashes
# A checkpoint's configuration, weights and tokenizer; results, logs and cards beside them do not count.
WEIGHT_FILES = ("*.safetensors", "*.safetensors.index.json")
SCORING_FILES = (
    *SETTINGS,
    *WEIGHT_FILES,
    "tokenizer*",
    "vocab*",
    "merges.txt",
    "special_tokens_map.json",
    "added_tokens.json",
    "*.model",
)
PIECE = 1 << 20  # bytes read at once
# Entries of config.json by which other tools compute the scores that we compute: in float32 whatever the weights are
# stored in, and without a sigmoid (sentence-transformers, vLLM); and the name of the number in a pipeline's answer.
FOR_OTHER_TOOLS: dict[str, Any] = {
    "dtype": "float32",
    "id2label": {"0": "score"},
    "label2id": {"score": 0},
    "sentence_transformers": {"activation_fn": "torch.nn.modules.linear.Identity"},
}
# What `save_pretrained` writes where nobody has named the labels.
UNNAMED_LABELS: dict[str, Any] = {"id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}}
STORED_TYPES = {"F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64"}  # as safetensors calls them


class FileHashes:
    """Hashes of files, each of which is read once, however often its hashes are needed.

    It lives as long as one checkpoint is being opened: a file that changes later is read again by the next one.
    """

    def __init__(self) -> None:
        self._hashes: dict[Path, tuple[str, str]] = {}

    def sha256(self, path: Path) -> str:
        """Return the SHA-256 of a file as hexadecimal digits."""
        return self._both(path)[0]

    def git(self, path: Path) -> str:
        """Return the hash that git names a file's content by, a SHA-1, as hexadecimal digits."""
        return self._both(path)[1]

    def _both(self, path: Path) -> tuple[str, str]:
        path = path.resolve()
        if path not in self._hashes:
            sha256 = hashlib.sha256()
            git = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
            with path.open("rb") as file:
                while piece := file.read(PIECE):
                    sha256.update(piece)
                    git.update(piece)
            self._hashes[path] = sha256.hexdigest(), git.hexdigest()
        return self._hashes[path]


def file_hash(path: Path) -> bytes:
    """Return the SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.digest()


def file_records(paths: Sequence[str | Path]) -> list[dict[str, str]]:
    """Return the name of each file and its SHA-256, as results and checkpoints record the data they were made of.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    if missing := [path for path in paths if not Path(path).is_file()]:
        raise FileNotFoundError(f"no file {missing[0]}")
    return [{"file": Path(path).name, "sha256": file_hash(Path(path)).hex()} for path in paths]


def content_hash(folder: Path, hashes: FileHashes | None = None) -> str:
    """Compute the hash of what decides a checkpoint's scores: its configuration, weights and tokenizer.

    Args:
        folder: folder of the checkpoint; only `SCORING_FILES` count.
        hashes: hashes of its files that were computed before.

    Returns:
        the first 12 hexadecimal digits of a SHA-256.
    """
    hashes = hashes or FileHashes()
    digest = hashlib.sha256()
    for path in _matching(folder, SCORING_FILES):
        digest.update(path.name.encode())
        config = _config_for_scoring(path) if path.name == "config.json" else None
        digest.update(bytes.fromhex(hashes.sha256(path)) if config is None else hashlib.sha256(config).digest())
    return digest.hexdigest()[:HASH_DIGITS]


def _config_for_scoring(path: Path) -> bytes | None:
    """Return a config.json without the entries for other tools, which change no score here; None if it has none.

    What remains is what `save_pretrained` writes, so that a checkpoint keeps its hash when the entries are added.
    """
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(config, dict) or {**config, **FOR_OTHER_TOOLS} != config:
            return None
        del config["sentence_transformers"]
        config |= {"dtype": _stored_type(path.parent), **UNNAMED_LABELS}
        return (json.dumps(config, indent=2, sort_keys=True) + "\n").encode()
    except (ValueError, OSError, RecursionError):
        return None


def _stored_type(folder: Path) -> str:
    """Return the type that a checkpoint's weights are stored in, by its name in torch; "float32" if unknown."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(folder.glob("*.safetensors")):
        try:
            with safe_open(path, framework="pt") as weights:
                for name in weights.keys():  # noqa: SIM118  # it is no dict
                    return STORED_TYPES.get(weights.get_slice(name).get_dtype(), "float32")
        except SafetensorError:
            break  # a damaged file has another hash anyway
    return "float32"


def scoring_files(folder: Path) -> list[Path]:
    """List the files of weights and of the tokenizer in a checkpoint's folder, sorted by name."""
    return _matching(folder, [pattern for pattern in SCORING_FILES if pattern not in SETTINGS])


def write_checksums(folder: Path, files: Sequence[Path] | None = None) -> None:
    """Write the SHA-256 of files to a folder's checksums.json.

    Args:
        folder: folder of a checkpoint.
        files: files to record; by default the weights and the tokenizer's files in the folder.
    """
    listed = scoring_files(folder) if files is None else files
    sums = {path.name: file_hash(path).hex() for path in listed}
    write_text(folder / CHECKSUMS_FILE, json.dumps({"sha256": sums}, indent=2) + "\n")


def checked_content(folder: Path, hashes: FileHashes) -> str:
    """Check a folder's files as `check_sums` does, with its errors, and return the folder's content hash."""
    check_sums(folder, hashes)
    return content_hash(folder, hashes)


def check_sums(folder: Path, hashes: FileHashes | None = None) -> None:
    """Check that a folder's files are those of its checksums.json, if it has one.

    Args:
        folder: folder of a checkpoint.
        hashes: hashes of its files that were computed before.

    Raises:
        ValueError: naming the first file that is missing or differs, and what to do.
    """
    path, hashes = folder / CHECKSUMS_FILE, hashes or FileHashes()
    if not path.is_file():
        return
    try:
        sums = dict(json.loads(path.read_text(encoding="utf-8"))["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{path} cannot be read ({error}): fetch or make the checkpoint again, or remove it"
        ) from error
    for name, expected in sums.items():
        file = folder / Path(name).name
        if not file.is_file() or hashes.sha256(file) != expected:
            state = "differs from its SHA-256 in" if file.is_file() else "is missing, and listed in"
            raise ValueError(
                f"{name} {state} {CHECKSUMS_FILE}: it was damaged or changed, and is not used; fetch or make the "
                f"checkpoint again, or remove {path} if the change is yours"
            )


def _matching(folder: Path, patterns: Sequence[str]) -> list[Path]:
    """List the files of a folder, sorted, that fit one of the patterns."""
    return sorted({path for pattern in patterns for path in folder.glob(pattern) if path.is_file()})
