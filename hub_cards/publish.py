"""Publish a checkpoint, a dataset or the Space on the Hub: checked, in one commit, and safe to repeat.

Where something is published.

What would be published, checked before anything is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from bleurt_repro.hub_cards.checks import check_card, check_files, check_model
from bleurt_repro.hub_cards.contents import REPLACED, File, gather

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo, HfApi

KINDS = ("model", "dataset", "space")
MAIN = "main"


@dataclass(frozen=True)
class Target:
    """Where something is published.

    Attributes:
        kind: "model", "dataset" or "space".
        repo_id: "org/name".
        private: whether the repository is to be a private one.
        revision: the branch; made if need be.
        create_pr: propose the commit in a pull request to main.
    """

    kind: str
    repo_id: str
    private: bool = False
    revision: str | None = None
    create_pr: bool = False

    def __post_init__(self) -> None:
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils import validate_repo_id

        if self.kind not in KINDS:
            raise ValueError(f"what is published is one of {', '.join(KINDS)}, found {self.kind!r}")
        try:
            validate_repo_id(self.repo_id)
        except HFValidationError as error:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}") from error
        if "/" not in self.repo_id:
            raise ValueError(f"--repo-id must be ORG/NAME, found {self.repo_id!r}")
        if self.create_pr and self.revision not in (None, MAIN):
            raise ValueError(f"--create-pr proposes a change of main: leave --revision {self.revision} out")

    @property
    def place(self) -> str:
        """What to call it."""
        return f"{self.kind} {self.repo_id}" + (f"@{self.revision}" if self.revision else "")


def prepare(kind: str, folder: Path, files: Sequence[File] | None = None) -> tuple[list[File], list[str]]:
    """Choose what is published, and make sure that it is fit for it.

    Args:
        kind: "model", "dataset" or "space".
        folder: the folder.
        files: to take the place of the folder's files of the same path, or to be added to them.

    Returns:
        the files, and the names of what lies beside them.

    Raises:
        ValueError: naming everything that is wrong.
    """
    found, left_out = gather(kind, folder)
    chosen = {file.path: file for file in [*found, *(files or [])]}
    content = [chosen[path] for path in sorted(chosen)]
    problems = check_files(content, left_out) + (check_model(content) if kind == "model" else [])
    problems += check_card(kind, content)
    if problems:
        raise ValueError(f"{folder} is not fit to publish: {'; '.join(problems)}")
    return content, left_out


def describe_plan(target: Target, files: Sequence[File], left_out: Sequence[str]) -> str:
    """Say what publishing would do; nothing is asked of the Hub."""
    way = "propose in a pull request to" if target.create_pr else "commit to"
    lines = [f"would {way} {target.place}{' (private)' if target.private else ''}:"]
    lines += [f"  {file.path} ({shown_size(file.size)})" for file in files]
    lines.append(
        f"  {len(files)} files, {shown_size(sum(file.size for file in files))}; what is there already is not sent"
    )
    if left_out:
        lines.append(f"left out: {', '.join(left_out)}")
    return "\n".join(lines)


def shown_size(count: int) -> str:
    """Write a number of bytes for people."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


Result = TypeVar("Result")

SPACE_SDK = "gradio"


@dataclass(frozen=True)
class Changes:
    """What a commit would do.

    Attributes:
        written: files that are new or differ.
        deleted: paths of weights or data that the folder has no more.
    """

    written: list[File] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)


@dataclass(frozen=True)
class Publication:
    """What was published.

    Attributes:
        url: of the commit or the pull request; of the commit that holds everything already, if nothing was to be done.
        changes: what the commit did.
    """

    url: str
    changes: Changes

    def describe(self) -> str:
        """Sum it up for a terminal."""
        if not self.changes:
            return f"nothing has changed: no new commit\n{self.url}"
        lines = [f"wrote {file.path} ({shown_size(file.size)})" for file in self.changes.written]
        lines += [f"deleted {path}, which the folder has no more" for path in self.changes.deleted]
        return "\n".join([*lines, self.url])


def publish(target: Target, files: Sequence[File], message: str) -> Publication:
    """Put files on the Hub in one commit; without any change there is no commit.

    The commit is whole or not at all, so that after any fault the same call may be repeated.

    Args:
        target: where to.
        files: as `prepare` gave them.
        message: of the commit.

    Raises:
        ValueError: if nobody is logged in, or the Hub refuses.
        ConnectionError: if the Hub stays out of reach or in trouble.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="bleurt_repro")
    return _ask_hub(target, lambda: _publish(api, target, files, message))


def check_login(target: Target) -> None:
    """Make sure that somebody is logged in, before hours are spent on what is to be published.

    Raises:
        ValueError: if nobody is, or the Hub refuses the token.
        ConnectionError: if the Hub stays out of reach or in trouble.
    """
    from huggingface_hub import HfApi

    _ask_hub(target, HfApi(library_name="bleurt_repro").whoami)


def _ask_hub(target: Target, action: Callable[[], Result]) -> Result:
    """Do something on the Hub, again if need be, and say in one sentence what came between."""
    from huggingface_hub import get_token
    from huggingface_hub.errors import HfHubHTTPError

    from bleurt_repro.metric.loading.hub import PASSING, describe, is_lost_connection, status, with_retries

    if get_token() is None:
        raise ValueError("nobody is logged in to the Hub: `hf auth login`, or set HF_TOKEN")
    try:
        return with_retries(action)
    except Exception as error:
        if status(error) in PASSING or is_lost_connection(error):
            raise ConnectionError(
                f"{target.place} was not published: {describe(error)}; nothing of it is there by halves, publish it again"
            ) from error
        if isinstance(error, HfHubHTTPError):
            code = status(error)
            reason = describe(error) if code in (401, 403) else f"{describe(error)} ({' '.join(str(error).split())})"
            raise ValueError(f"{target.place} was not published: {reason}") from error
        raise


def _publish(api: HfApi, target: Target, files: Sequence[File], message: str) -> Publication:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    kind, repo_id, revision = target.kind, target.repo_id, target.revision or MAIN
    sdk = SPACE_SDK if kind == "space" else None
    api.create_repo(repo_id, repo_type=kind, private=target.private or None, exist_ok=True, space_sdk=sdk)
    info = api.repo_info(repo_id, repo_type=kind)
    if target.private and not info.private:
        raise ValueError(f"{repo_id} is there already and public: make it private on the Hub, or leave --private out")
    if revision != MAIN and not revision.startswith("refs/pr/"):
        api.create_branch(repo_id, repo_type=kind, branch=revision, exist_ok=True)
    if target.create_pr and (known := _proposed(api, target, files, message)):
        return Publication(known, Changes())
    changes = _changes(api, target, files, revision)
    operations = [CommitOperationAdd(file.path, file.content) for file in changes.written]
    deletions = [CommitOperationDelete(path) for path in changes.deleted]
    if not changes:
        head = api.repo_info(repo_id, repo_type=kind, revision=revision).sha
        prefix = "" if kind == "model" else f"{kind}s/"
        return Publication(f"{api.endpoint}/{prefix}{repo_id}/commit/{head}", changes)
    commit: CommitInfo = api.create_commit(
        repo_id,
        [*operations, *deletions],
        commit_message=message,
        repo_type=kind,
        revision=revision,
        create_pr=target.create_pr,
    )
    return Publication(str(commit.pr_url or commit.commit_url), changes)


def _changes(api: HfApi, target: Target, files: Sequence[File], revision: str) -> Changes:
    """Compare what is to be published with what a revision holds."""
    from huggingface_hub.hf_api import RepoFile

    tree = api.list_repo_tree(target.repo_id, recursive=True, revision=revision, repo_type=target.kind)
    there = {item.path: item for item in tree if isinstance(item, RepoFile)}
    written = []
    for file in files:
        known = there.get(file.path)
        sha256 = known.lfs.sha256 if known and known.lfs else None
        if known is None or known.size != file.size or not file.is_stored_as(known.blob_id, sha256):
            written.append(file)
    paths = {file.path for file in files}
    stale = [path for path in sorted(there) if path not in paths]
    return Changes(written, [path for path in stale if any(fnmatch(path, pattern) for pattern in REPLACED)])


def _proposed(api: HfApi, target: Target, files: Sequence[File], message: str) -> str | None:
    """Find an open pull request that proposes exactly this: of an earlier call, perhaps one whose answer was lost."""
    discussions = api.get_repo_discussions(
        target.repo_id, repo_type=target.kind, discussion_type="pull_request", discussion_status="open"
    )
    for discussion in discussions:
        if discussion.title == message and discussion.git_reference:
            if not _changes(api, target, files, discussion.git_reference):
                return str(discussion.url)
    return None
