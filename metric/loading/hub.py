"""Fetch a repository of the Hugging Face Hub, through its own client and into its own cache.

Faults on the way to the Hub: which pass by waiting, which do not, and what to tell the user.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bleurt_repro.metric.signature import file_hash

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

Result = TypeVar("Result")

# Answers that mean "not now": time-out, too many requests, and the server's own troubles.
PASSING = (408, 429, 500, 502, 503, 504)
ATTEMPTS = 4
FIRST_WAIT = 1.0  # seconds; doubled each time
LONGEST_WAIT = 60.0  # seconds, also where the Hub asks for more


def http_error(error: BaseException) -> HfHubHTTPError | None:
    """Find the Hub's answer behind an error, if there was one."""
    from huggingface_hub.errors import HfHubHTTPError

    # Some errors of this kind come without an answer: what was looked for in the cache, say.
    answers = (cause for cause in _causes(error) if isinstance(cause, HfHubHTTPError))
    return next((answer for answer in answers if getattr(answer, "response", None) is not None), None)


def status(error: BaseException) -> int | None:
    """Find the status of the Hub's answer behind an error, if there was one."""
    answer = http_error(error)
    return answer.response.status_code if answer else None


def is_lost_connection(error: BaseException) -> bool:
    """Tell whether an error comes of a connection that could not be made, broke or timed out."""
    return any(isinstance(cause, transport_errors()) for cause in _causes(error))


def transport_errors() -> tuple[type[Exception], ...]:
    """Give the exceptions of connections that the installed clients raise; they are no OSErrors."""
    kinds: list[type[Exception]] = [ConnectionError]
    for client in ("httpx2", "httpx"):  # huggingface_hub 2 and 1
        if importlib.util.find_spec(client):
            kinds.append(importlib.import_module(client).TransportError)
    return tuple(kinds)


def with_retries(action: Callable[[], Result], connections: bool = True) -> Result:
    """Do something that may be repeated, again after a wait when a fault may pass; each wait is said in a warning.

    Args:
        action: what to do; done `ATTEMPTS` times at most.
        connections: whether lost connections count as passing too.

    Returns:
        what the action gives.
    """
    wait = FIRST_WAIT
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except Exception as error:
            passing = status(error) in PASSING or (connections and status(error) is None and is_lost_connection(error))
            if not passing or attempt == ATTEMPTS:
                raise
            seconds = _wanted_wait(error) or wait
            warnings.warn(
                f"{describe(error)}; attempt {attempt + 1} of {ATTEMPTS} in {seconds:g} seconds", stacklevel=2
            )
            time.sleep(seconds)
            wait *= 2
    raise AssertionError("unreachable")


def describe(error: BaseException) -> str:
    """Say what happened in one sentence, without the token or the address."""
    code = status(error)
    if code == 401:
        return "the Hub refused the token (401): log in with `hf auth login`, or mend HF_TOKEN"
    if code == 403:
        return "the token does not allow this (403): it needs write access to the repository"
    if code == 429:
        return "the Hub asks for fewer requests (429)"
    if code is not None:
        return f"the Hub answered {code}"
    return f"the connection to the Hub failed ({type(error).__name__})"


def _wanted_wait(error: BaseException) -> float | None:
    answer = http_error(error)
    seconds = answer.response.headers.get("Retry-After", "") if answer else ""
    return min(float(seconds), LONGEST_WAIT) if seconds.isdigit() else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


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
