"""The one client of the Hugging Face Hub: what is fetched, into the Hub's own cache, checked against its hashes.

Faults that pass by waiting (time-outs, too many requests, the server's own troubles) are tried again; all others become
one sentence that says what to do.
"""

from __future__ import annotations

import importlib.util
import json
import re
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bleurt_repro.metric.loading.checksums import FileHashes

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

Result = TypeVar("Result")

HUB_ID = re.compile(r"[\w.-]+/[\w.-]+(@[\w./-]+)?")
# Models and datasets of the Hub's first years have no "org/".
ANY_HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?(@[\w./-]+)?")
# What is fetched of a checkpoint's repository: no pickled weights, no scripts.
HUB_FILES = ("*.json", "*.safetensors", "*.txt", "*.model", "README.md")
# Answers that mean "not now": time-out, too many requests, and the server's own troubles.
PASSING = (408, 429, 500, 502, 503, 504)
ATTEMPTS = 4
FIRST_WAIT = 1.0  # seconds; doubled each time
LONGEST_WAIT = 60.0  # seconds, also where the Hub asks for more
# hf_xet, which moves large files, has no exception with an answer; it writes the status into the message.
XET_STATUS = re.compile(r"HTTP status (?:client|server) error \((\d{3})")
# The Hub's converter offers safetensors weights of older repositories in a pull request by this author and title:
# https://huggingface.co/spaces/safetensors/convert
CONVERTER, CONVERSION_TITLE = "SFconvertbot", "Adding `safetensors` variant of this model"


class NotOnHub(ValueError, FileNotFoundError):
    """There is no such repository, or none within reach; the message says which, and what to do."""


def download(
    name: str, files: Sequence[str] = HUB_FILES, role: str = "checkpoint", hashes: FileHashes | None = None
) -> Path:
    """Fetch a repository, or find it in the cache; a file appears there when it is whole, or not at all.

    Args:
        name: "org/name" with an optional "@revision".
        files: patterns of what to fetch.
        role: what it is for, for the messages.
        hashes: takes up the hashes of the files, which are all read here to be checked.

    Returns:
        the folder in the cache; each file was compared with its hash.

    Raises:
        NotOnHub: if the Hub has no such repository, or cannot be reached and the cache has none.
        ValueError: if there is no such revision, the Hub refuses, or a file differs from its hash.
    """
    from huggingface_hub import snapshot_download

    repo_id, _, revision = name.partition("@")
    options: dict[str, Any] = {"revision": revision or None, "allow_patterns": list(files)}
    # snapshot_download itself falls back on the cache when there is no connection, so a lost one is not tried again.
    folder = Path(explained(lambda: snapshot_download(repo_id, **options), name, role, connections=False))
    check_hashes(folder, repo_id, hashes or FileHashes())
    return folder


def converted_revision(repo_id: str, role: str = "checkpoint") -> str | None:
    """Name the revision where the Hub's own converter has put safetensors weights, if it has.

    Args:
        repo_id: "org/name".
        role: what it is for, for the messages.

    Raises:
        ValueError: as `download`.
    """
    from huggingface_hub import HfApi

    def look() -> str | None:
        offers = HfApi().get_repo_discussions(repo_id, author=CONVERTER, discussion_type="pull_request")
        return next((f"refs/pr/{offer.num}" for offer in offers if offer.title == CONVERSION_TITLE), None)

    return explained(look, repo_id, role)


def dataset_revision(name: str) -> str | None:
    """Return the commit of a dataset on the Hub; None where the Hub cannot be reached or the name cannot be its own.

    Args:
        name: "org/name" with an optional "@revision".

    Raises:
        ValueError: as `download`.
    """
    from huggingface_hub import HfApi

    if not ANY_HUB_ID.fullmatch(name):
        return None
    repo_id, _, revision = name.partition("@")
    try:
        return explained(
            lambda: HfApi().dataset_info(repo_id, revision=revision or None).sha, name, "dataset", connections=False
        )
    except NotOnHub as error:
        if status(error) is None:  # no answer at all: the cache may still have it
            return None
        raise


def explained(action: Callable[[], Result], name: str, role: str, connections: bool = True) -> Result:
    """Ask the Hub for something, again where that may help, and turn its errors into one sentence.

    Args:
        action: what asks.
        name: the repository's, with an optional "@revision".
        role: what it is for, for the messages.
        connections: whether a lost connection is worth another attempt.

    Returns:
        what the action returns.

    Raises:
        NotOnHub, ValueError: as `download`.
    """
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repo_id, _, revision = name.partition("@")
    try:
        return with_retries(action, connections)
    except RevisionNotFoundError as error:
        raise ValueError(f"{role} {repo_id} has no revision {revision!r} on the Hub") from error
    except RepositoryNotFoundError as error:
        raise NotOnHub(
            f"unknown {role} {name!r}: no such folder here and no such repository on the Hub "
            "(or it is private: `hf auth login`)"
        ) from error
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        reason = f": {describe(error)}" if status(error) else ""
        raise NotOnHub(
            f"{role} {name!r} is neither a folder nor in the cache, and the Hub cannot be reached{reason}"
        ) from error
    except HfHubHTTPError as error:
        reason = describe(error) if status(error) == 401 else " ".join(str(error).split())
        raise ValueError(f"the Hub did not give {role} {name!r}: {reason}") from error
    except transport_errors() as error:
        raise NotOnHub(f"{role} {name!r} did not arrive: {describe(error)}; try again") from error
    except json.JSONDecodeError as error:
        raise ValueError(
            f"the Hub did not give {role} {name!r}: its answer is no JSON; check HF_ENDPOINT and the network's proxy"
        ) from error


def check_hashes(folder: Path, repo_id: str, hashes: FileHashes) -> None:
    """Compare each file of a snapshot with the hash that the Hub named it by; the client itself compares only sizes.

    A snapshot links to files named by their hash: the SHA-256 of a large file, git's own of a small one. Where a file
    system has no links there are no such names, and nothing is compared.

    Args:
        folder: a snapshot in the cache.
        repo_id: for the message.
        hashes: those already known; takes up the others.

    Raises:
        ValueError: naming the first file that differs, and how to remove it.
    """
    for path in sorted(folder.rglob("*")):
        named = path.resolve().name if path.is_symlink() else ""
        if not re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", named):
            continue
        if (hashes.sha256(path) if len(named) == 64 else hashes.git(path)) != named:
            raise ValueError(
                f"{path.name} of {repo_id} in the cache differs from its hash: it was damaged or changed, and is not "
                f"used; remove it with `hf cache rm model/{repo_id}` and try again"
            )


def with_retries(action: Callable[[], Result], connections: bool = True) -> Result:
    """Do something that may be repeated, again after a wait when a fault may pass; each wait is reported in a warning.

    Args:
        action: what to do; done `ATTEMPTS` times at most.
        connections: whether lost connections count as passing too.

    Returns:
        what the action returns.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled

    wait = FIRST_WAIT
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except Exception as error:
            passing = status(error) in PASSING or (connections and status(error) is None and is_lost_connection(error))
            if not passing or attempt == ATTEMPTS or isinstance(error, OfflineModeIsEnabled):
                raise
            seconds = _wanted_wait(error) or wait
            warnings.warn(
                f"{describe(error)}; attempt {attempt + 1} of {ATTEMPTS} in {seconds:g} seconds", stacklevel=2
            )
            time.sleep(seconds)
            wait *= 2
    raise AssertionError("unreachable")


def describe(error: BaseException) -> str:
    """Describe in one sentence what happened, without the token or the address."""
    code = status(error)
    if code == 401:
        return "the Hub refused the token (401): log in with `hf auth login`, or correct HF_TOKEN"
    if code == 403:
        return "the token does not allow this (403): it needs write access to the repository"
    if code == 429:
        return "the Hub asks for fewer requests (429)"
    if code is not None:
        return f"the Hub answered {code}"
    return f"the connection to the Hub failed ({type(error).__name__})"


def http_error(error: BaseException) -> HfHubHTTPError | None:
    """Return the Hub's answer behind an error, if there was one."""
    from huggingface_hub.errors import HfHubHTTPError

    # Some errors of this kind come without an answer, for example where only the cache was searched.
    answers = (cause for cause in _causes(error) if isinstance(cause, HfHubHTTPError))
    return next((answer for answer in answers if getattr(answer, "response", None) is not None), None)


def status(error: BaseException) -> int | None:
    """Return the status of the Hub's answer behind an error, if there was one."""
    if answer := http_error(error):
        return answer.response.status_code
    found = (XET_STATUS.search(str(cause)) for cause in _causes(error) if isinstance(cause, OSError | RuntimeError))
    return next((int(match[1]) for match in found if match), None)


def is_lost_connection(error: BaseException) -> bool:
    """Return whether an error comes from a connection that could not be made, broke or timed out."""
    return any(isinstance(cause, transport_errors()) for cause in _causes(error))


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of connections that the installed clients raise; they are no OSErrors."""
    kinds: list[type[Exception]] = [ConnectionError]
    for client in ("httpx2", "httpx"):  # huggingface_hub 2 and 1
        if importlib.util.find_spec(client):
            kinds.append(importlib.import_module(client).TransportError)
    return tuple(kinds)


def _wanted_wait(error: BaseException) -> float | None:
    answer = http_error(error)
    seconds = answer.response.headers.get("Retry-After", "") if answer else ""
    return min(float(seconds), LONGEST_WAIT) if seconds.isdigit() else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
