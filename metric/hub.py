"""Fetch a repository of the Hugging Face Hub, through its own client and into its own cache."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path

from bleurt_repro.metric.hub_faults import describe, status, transport_errors, with_retries
from bleurt_repro.metric.signature import file_hash

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
# What is fetched of a repository: no pickled weights, no scripts.
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "README.md")


def download(name: str, files: Sequence[str] = HUB_FILES) -> Path:
    """Fetch a repository, or find it in the cache; a file appears there when it is whole, or not at all.

    Args:
        name: "org/name" with an optional "@revision".
        files: patterns of what to fetch.

    Returns:
        the folder in the cache; each file was compared with its hash.

    Raises:
        ValueError: if the Hub has no such repository or revision, refuses, or cannot be reached, or if a file differs
            from its hash.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repo_id, _, revision = name.partition("@")
    try:
        folder = Path(
            with_retries(
                lambda: snapshot_download(repo_id, revision=revision or None, allow_patterns=list(files)),
                connections=False,
            )
        )
    except RevisionNotFoundError as error:
        raise ValueError(f"checkpoint {repo_id} has no revision {revision!r} on the Hub") from error
    except RepositoryNotFoundError as error:
        raise ValueError(
            f"unknown checkpoint {name!r}: no such folder here and no such repository on the Hub "
            "(or it is private: `hf auth login`)"
        ) from error
    except LocalEntryNotFoundError as error:
        reason = f": {describe(error)}" if status(error) else ""
        raise ValueError(
            f"checkpoint {name!r} is neither a folder nor in the cache, and the Hub cannot be reached{reason}"
        ) from error
    except HfHubHTTPError as error:
        reason = describe(error) if status(error) == 401 else str(error)
        raise ValueError(f"the Hub did not give checkpoint {name!r}: {reason}") from error
    except transport_errors() as error:
        raise ValueError(f"checkpoint {name!r} did not arrive: {describe(error)}; try again") from error
    check_hashes(folder, repo_id)
    return folder


def check_hashes(folder: Path, repo_id: str) -> None:
    """Compare each file of a snapshot with the hash that the Hub named it by; the client itself compares only sizes.

    A snapshot links to files named by their hash: the SHA-256 of a large file, git's own of a small one. Where links
    are not to be had there are no such names, and nothing is compared.

    Args:
        folder: a snapshot in the cache.
        repo_id: for the message.

    Raises:
        ValueError: naming the first file that differs, and how to be rid of it.
    """
    for path in sorted(folder.rglob("*")):
        named = path.resolve().name if path.is_symlink() else ""
        if re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", named) and _hash(path, len(named)) != named:
            raise ValueError(
                f"{path.name} of {repo_id} in the cache differs from its hash: it came damaged or was changed, and is not "
                f"used; remove it with `hf cache rm model/{repo_id}` and try again"
            )


def _hash(path: Path, digits: int) -> str:
    if digits == 64:
        return file_hash(path).hex()
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
