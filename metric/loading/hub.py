"""The one client of the Hugging Face Hub: what is fetched, into the Hub's own cache, checked against its hashes.

Faults that pass by waiting (time-outs, too many requests, the server's own troubles) are tried again; all others
become one sentence that says what to do.
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
        files: patterns of the files to fetch.
        role: word for the repository in messages, such as "checkpoint".
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
    folder = Path(hub_request(lambda: snapshot_download(repo_id, **options), name, role, connections=False))
    check_hashes(folder, repo_id, hashes or FileHashes())
    return folder


def converted_revision(repo_id: str, role: str = "checkpoint") -> str | None:
    """Return the revision where the Hub's own converter has put safetensors weights, if it has.

    Args:
        repo_id: "org/name".
        role: word for the repository in messages.

    Raises:
        ValueError: as `download`.
    """
    from huggingface_hub import HfApi

    def look() -> str | None:
        offers = HfApi().get_repo_discussions(repo_id, author=CONVERTER, discussion_type="pull_request")
        return next((f"refs/pr/{offer.num}" for offer in offers if offer.title == CONVERSION_TITLE), None)

    return hub_request(look, repo_id, role)


def dataset_revision(name: str) -> str | None:
    """Return the commit of a dataset on the Hub; None if the Hub cannot be reached or cannot have the name.

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
        return hub_request(
            lambda: HfApi().dataset_info(repo_id, revision=revision or None).sha, name, "dataset", connections=False
        )
    except NotOnHub as error:
        if status(error) is None:  # no answer at all: the cache may still have it
            return None
        raise


def hub_request(action: Callable[[], Result], name: str, role: str, connections: bool = True) -> Result:
    """Run a request to the Hub, again where that may help, and turn its errors into one sentence.

    Args:
        action: function that sends the request.
        name: name of the repository, with an optional "@revision".
        role: word for the repository in messages.
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
    """Check each file of a snapshot by the hash in its name on the Hub; the client itself compares only sizes.

    A snapshot links to files named by their hash: the SHA-256 of a large file, git's own of a small one. Where a file
    system has no links there are no such names, and nothing is compared.

    Args:
        folder: snapshot in the cache.
        repo_id: name of the repository, for the message.
        hashes: takes up the hashes of the files.

    Raises:
        ValueError: naming the first file that differs, and how to remove it.
    """
    for path in sorted(folder.rglob("*")):
        expected = path.resolve().name if path.is_symlink() else ""
        if not re.fullmatch("[0-9a-f]{64}|[0-9a-f]{40}", expected):
            continue
        if (hashes.sha256(path) if len(expected) == 64 else hashes.git(path)) != expected:
            raise ValueError(
                f"{path.name} of {repo_id} in the cache differs from its hash: it was damaged or changed, and is not "
                f"used; remove it with `hf cache rm model/{repo_id}` and try again"
            )


def with_retries(action: Callable[[], Result], connections: bool = True) -> Result:
    """Run an action, and repeat it after a wait when it fails with a fault that may pass; each wait is a warning.

    Args:
        action: function to run, `ATTEMPTS` times at most.
        connections: whether a lost connection is repeated, too.

    Returns:
        what the action returns.
    """
    from huggingface_hub.errors import OfflineModeIsEnabled

    wait = FIRST_WAIT
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return action()
        except Exception as error:
            may_pass = status(error) in PASSING or (
                connections and status(error) is None and is_lost_connection(error)
            )
            if not may_pass or attempt == ATTEMPTS or isinstance(error, OfflineModeIsEnabled):
                raise
            seconds = _retry_after(error) or wait
            warnings.warn(
                f"{describe(error)}; attempt {attempt + 1} of {ATTEMPTS} in {seconds:g} seconds", stacklevel=2
            )
            time.sleep(seconds)
            wait *= 2
    raise AssertionError("unreachable")


def describe(error: BaseException) -> str:
    """Return one sentence about a fault, without the token or the address."""
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
    """Return the HTTP error of the Hub behind an error, if there was one."""
    from huggingface_hub.errors import HfHubHTTPError

    # Some errors of this kind come without an answer, for example where only the cache was searched.
    answers = (cause for cause in _causes(error) if isinstance(cause, HfHubHTTPError))
    return next((answer for answer in answers if getattr(answer, "response", None) is not None), None)


def status(error: BaseException) -> int | None:
    """Return the HTTP status of the Hub's answer behind an error, if there was one."""
    if answer := http_error(error):
        return answer.response.status_code
    matches = (XET_STATUS.search(str(cause)) for cause in _causes(error) if isinstance(cause, OSError | RuntimeError))
    return next((int(match[1]) for match in matches if match), None)


def is_lost_connection(error: BaseException) -> bool:
    """Return whether an error comes from a connection that could not be made, broke or timed out."""
    return any(isinstance(cause, transport_errors()) for cause in _causes(error))


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of connections that the installed clients raise; they are no OSErrors."""
    classes: list[type[Exception]] = [ConnectionError]
    for client in ("httpx2", "httpx"):  # huggingface_hub 2 and 1
        if importlib.util.find_spec(client):
            classes.append(importlib.import_module(client).TransportError)
    return tuple(classes)


def _retry_after(error: BaseException) -> float | None:
    """Return the seconds that the Hub asks to wait, if it does."""
    answer = http_error(error)
    seconds = answer.response.headers.get("Retry-After", "") if answer else ""
    return min(float(seconds), LONGEST_WAIT) if seconds.isdigit() else None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__
