"""Fetch a repository of the Hugging Face Hub, through its own client and into its own cache."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
# What is fetched of a repository: no pickled weights, no scripts.
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "README.md")


def download(name: str, files: Sequence[str] = HUB_FILES) -> Path:
    """Fetch a repository, or find it in the cache; a file appears there when it is whole, or not at all.

    Args:
        name: "org/name" with an optional "@revision".
        files: patterns of what to fetch.

    Returns:
        the folder in the cache.

    Raises:
        ValueError: if the Hub has no such repository or revision, or cannot be reached.
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
        return Path(snapshot_download(repo_id, revision=revision or None, allow_patterns=list(files)))
    except RevisionNotFoundError as error:
        raise ValueError(f"checkpoint {repo_id} has no revision {revision!r} on the Hub") from error
    except RepositoryNotFoundError as error:
        raise ValueError(
            f"unknown checkpoint {name!r}: no such folder here and no such repository on the Hub "
            "(or it is private: `hf auth login`)"
        ) from error
    except LocalEntryNotFoundError as error:
        raise ValueError(
            f"checkpoint {name!r} is neither a folder nor in the cache, and the Hub cannot be reached"
        ) from error
    except HfHubHTTPError as error:
        raise ValueError(f"the Hub did not give checkpoint {name!r}: {error}") from error
