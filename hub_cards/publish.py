"""Publish a checkpoint, a dataset or the Space on the Hub: checked, in one commit, and safe to repeat.

A folder is published with a card that gives its address on the Hub, and without paths of this machine. `draw_card`
draws the card alone.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import json
import logging
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bleurt_repro import __version__
from bleurt_repro.hub_cards.cards import draw_model_card, fill_in
from bleurt_repro.hub_cards.checks import check_card, check_files, check_model, mask_secrets
from bleurt_repro.hub_cards.contents import CARD, MAIN, REPLACED, File, Target, gather, read_card
from bleurt_repro.hub_cards.dataset_card import draw_dataset_card, draw_synthetic_card, is_stub, shorten_paths
from bleurt_repro.hub_cards.space import draw_space_card, space_files, space_folder
from bleurt_repro.training.results import RESULTS

if TYPE_CHECKING:
    from huggingface_hub import Discussion, HfApi

Answer = TypeVar("Answer")

SPACE_SDK = "gradio"
# Large files are uploaded by hf_xet, which retries for three to five minutes before it reports an error. Here it
# retries once, and `with_retries` repeats the whole upload with a warning each time.
XET_RETRIES = {"HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1", "HF_XET_CLIENT_RETRY_BASE_DELAY": "1s"}


@dataclass(frozen=True)
class Publication:
    """What was published.

    Attributes:
        url: address of the commit or pull request; if nothing had changed, of the latest commit.
        written: files that were new or changed.
        deleted: paths of weights and data that the folder no longer has.
    """

    url: str
    written: Sequence[File] = ()
    deleted: Sequence[str] = ()

    def describe(self) -> str:
        """Return a summary for the terminal."""
        if not self.written and not self.deleted:
            return f"nothing has changed: no new commit\n{self.url}"
        lines = [f"wrote {file.path} ({format_size(file.size)})" for file in self.written]
        lines += [f"deleted {path}, which the folder no longer has" for path in self.deleted]
        return "\n".join([*lines, self.url])


def publish_folder(
    target: Target,
    folder: str | Path | None = None,
    *,
    dry_run: bool = False,
    requirement: str | None = None,
    source: str | None = None,
) -> str:
    """Check a folder and publish it on the Hub.

    Args:
        target: where to publish it.
        folder: a checkpoint, a dataset or a Space; by default the Space in the package.
        dry_run: whether to check the folder and report what would be published, without asking the Hub anything.
        requirement: line of a Space's requirements.txt that installs the package; by default a wheel in the Space
            itself.
        source: address that readers of a checkpoint's card install the package from; see
            `metric.install.package_source`.

    Returns:
        A report for the terminal.

    Raises:
        ValueError: if the folder is not fit to publish, or the Hub refuses.
        ConnectionError: if the Hub cannot be reached.
    """
    if folder is None and target.repo_type != "space":
        raise ValueError(f"name the folder of the {target.repo_type} to publish")
    path = Path(folder) if folder is not None else space_folder()
    if target.repo_type == "space":
        generated = space_files(target, path, requirement)
    elif target.repo_type == "model":
        generated = _model_card(target, path, source)
    else:
        generated = _dataset_files(target, path)
    files, left_out = prepare(target.repo_type, path, generated)
    if dry_run:
        return describe_plan(target, files, left_out)
    publication = publish(target, files, f"Upload {path.resolve().name} with bleurt_repro {__version__}")
    report = publication.describe()
    return f"{report}\nleft out: {', '.join(left_out)}" if left_out else report


def _model_card(target: Target, folder: Path, source: str | None) -> list[File]:
    """Draw the card if there is none, and fill in the addresses."""
    text = read_card(folder)
    if text is None and (folder / "config.json").is_file():
        results = folder / RESULTS
        text = draw_model_card(folder, training=[results] if results.is_file() else [], source=source)
    return [] if text is None else [File(CARD, fill_in(text, folder, target.repo_id, source).encode())]


def _dataset_files(target: Target, folder: Path) -> list[File]:
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    if is_finished(folder):
        records = [File(path.name, _shorten(path)) for path in sorted(folder.glob("*.json"))]
        return [*records, File(CARD, draw_synthetic_card(folder, repo_id=target.repo_id).encode())]
    text = read_card(folder)
    if text is None:
        return []
    if is_stub(text):
        text = draw_dataset_card(folder, repo_id=target.repo_id)
    return [File(CARD, fill_in(text, folder, target.repo_id).encode())]


def _shorten(path: Path) -> bytes:
    """Read a record with local folders shortened to their last part; the hashes beside them identify the models."""
    return (json.dumps(shorten_paths(json.loads(path.read_text(encoding="utf-8"))), indent=2) + "\n").encode()


def draw_card(folder: str | Path, **arguments: Any) -> str:
    """Draw the card of a checkpoint, a dataset or a Space.

    Args:
        folder: folder of the checkpoint, dataset or Space.
        arguments: arguments of the function that draws its card: `draw_model_card`, `draw_dataset_card`,
            `draw_synthetic_card` or `draw_space_card`.

    Returns:
        Markdown with metadata.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if an argument does not apply to this type of card.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    path = Path(folder)
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give a checkpoint, a dataset or a Space")
    if (path / "config.json").is_file():
        content, draw = "a checkpoint", functools.partial(draw_model_card, path)
    elif (path / "app.py").is_file():
        content, draw = "a Space", functools.partial(draw_space_card)
    elif is_finished(path):
        content, draw = "synthetic pairs", functools.partial(draw_synthetic_card, path)
    else:
        content, draw = "a dataset", functools.partial(draw_dataset_card, path)
    arguments = {name: value for name, value in arguments.items() if value}
    if unknown := [name.replace("_", "-") for name in arguments if name not in inspect.signature(draw).parameters]:
        raise ValueError(f"the card of {content} takes no --{', --'.join(unknown)}")
    return draw(**arguments)


def prepare(repo_type: str, folder: Path, generated: Sequence[File] = ()) -> tuple[list[File], list[str]]:
    """Select the files to publish and check them.

    Args:
        repo_type: "model", "dataset" or "space".
        folder: folder to publish.
        generated: files that replace those of the folder with the same path, or are added to them.

    Returns:
        The files to publish, and the names of the files that are left out.

    Raises:
        ValueError: if there are problems; the message lists them all.
    """
    gathered, left_out = gather(repo_type, folder)
    by_path = {file.path: file for file in [*gathered, *generated]}
    files = [by_path[path] for path in sorted(by_path)]
    problems = check_files(files, left_out) + (check_model(files) if repo_type == "model" else [])
    problems += check_card(repo_type, files)
    if problems:
        raise ValueError(f"{folder} is not fit to publish: {'; '.join(problems)}")
    return files, left_out


def describe_plan(target: Target, files: Sequence[File], left_out: Sequence[str]) -> str:
    """Describe what publishing would do, without asking the Hub anything."""
    action = "open a pull request to" if target.create_pr else "commit to"
    lines = [f"would {action} {target.description}{' (private)' if target.private else ''}:"]
    lines += [f"  {file.path} ({format_size(file.size)})" for file in files]
    total = format_size(sum(file.size for file in files))
    lines.append(f"  {len(files)} files, {total}; files that the Hub has already are not sent")
    if left_out:
        lines.append(f"left out: {', '.join(left_out)}")
    return "\n".join(lines)


def format_size(count: int) -> str:
    """Return a number of bytes in a readable unit."""
    value = float(count)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} GB"


def publish(target: Target, files: Sequence[File], message: str) -> Publication:
    """Commit files to the Hub in one commit, or in none if nothing has changed.

    The commit is made as a whole or not at all, so that the call may be repeated after any error.

    Args:
        target: where to publish them.
        files: files as `prepare` returns them.
        message: message of the commit.

    Raises:
        ValueError: if nobody is logged in, or the Hub refuses.
        ConnectionError: if the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="bleurt_repro")
    return _ask_hub(target, lambda: _publish(api, target, files, message))


def check_login(target: Target) -> None:
    """Check that the user is logged in, before hours are spent on training what is to be published.

    Raises:
        ValueError: if nobody is logged in, or the Hub refuses the token.
        ConnectionError: if the Hub cannot be reached.
    """
    from huggingface_hub import HfApi

    _ask_hub(target, HfApi(library_name="bleurt_repro").whoami)


def _ask_hub(target: Target, action: Callable[[], Answer]) -> Answer:
    """Call the Hub, again after temporary errors, and raise other errors as one sentence without secrets."""
    from huggingface_hub import get_token

    from bleurt_repro.metric.loading.hub import PASSING, describe, is_lost_connection, status, with_retries

    if get_token() is None:
        raise ValueError("nobody is logged in to the Hub: `hf auth login`, or set HF_TOKEN")
    for name, value in XET_RETRIES.items():
        os.environ.setdefault(name, value)
    try:
        return with_retries(lambda: _with_masked_messages(action))
    except Exception as error:
        code = status(error)
        if code in PASSING or (code is None and is_lost_connection(error)):
            raise ConnectionError(
                f"{target.description} was not published: {describe(error)}; the repository is unchanged, publish it "
                "again"
            ) from error
        if code is None and not isinstance(error, ValueError | OSError | RuntimeError):
            raise
        text = mask_secrets(" ".join(str(error).split()))
        reason = text if code is None else describe(error) + ("" if code in (401, 403) else f" ({text})")
        raise ValueError(f"{target.description} was not published: {reason}") from error


def _with_masked_messages(action: Callable[[], Answer]) -> Answer:
    """Call the Hub with secrets masked in the logs and warnings of its client, which quote the server's answers."""
    with warnings.catch_warnings(record=True) as caught, _masked_logs():
        result = action()
    for warning in caught:
        warnings.warn(mask_secrets(str(warning.message)), warning.category, stacklevel=2)
    return result


@contextlib.contextmanager
def _masked_logs() -> Iterator[None]:
    def mask(record: logging.LogRecord) -> bool:
        record.msg, record.args = mask_secrets(record.getMessage()), ()
        return True

    handlers = [*logging.getLogger("huggingface_hub").handlers, *logging.getLogger().handlers]
    for handler in handlers:
        handler.addFilter(mask)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(mask)


def _publish(api: HfApi, target: Target, files: Sequence[File], message: str) -> Publication:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    _create_repository(api, target)
    # An earlier call may have opened the pull request without receiving the Hub's answer.
    pull_request = _find_pull_request(api, target, message) if target.create_pr else None
    revision = str(pull_request.git_reference) if pull_request else target.revision or MAIN
    before = _blobs(api, target, revision)
    stale = sorted(before.keys() - {file.path for file in files})
    deletions = [CommitOperationDelete(path) for path in stale if any(fnmatch(path, name) for name in REPLACED)]
    # The client does not send files that the revision has already, and makes no commit if nothing has changed.
    commit = api.create_commit(
        target.repo_id,
        [*(CommitOperationAdd(file.path, file.content) for file in files), *deletions],
        commit_message=message,
        repo_type=target.repo_type,
        revision=revision,
        create_pr=target.create_pr and pull_request is None,
    )
    after = _blobs(api, target, commit.pr_revision or commit.oid)
    written = [file for file in files if before.get(file.path) != after[file.path]]
    url = pull_request.url if pull_request else commit.pr_url or commit.commit_url
    return Publication(str(url), written, [operation.path_in_repo for operation in deletions])


def _create_repository(api: HfApi, target: Target) -> None:
    """Create the repository and the branch unless they exist."""
    repo_id, repo_type, revision = target.repo_id, target.repo_type, target.revision or MAIN
    sdk = SPACE_SDK if repo_type == "space" else None
    api.create_repo(repo_id, repo_type=repo_type, private=target.private or None, exist_ok=True, space_sdk=sdk)
    if target.private and not api.repo_info(repo_id, repo_type=repo_type).private:
        raise ValueError(f"{repo_id} exists and is public: make it private on the Hub, or leave out --private")
    if revision != MAIN and not revision.startswith("refs/pr/"):
        api.create_branch(repo_id, repo_type=repo_type, branch=revision, exist_ok=True)


def _find_pull_request(api: HfApi, target: Target, title: str) -> Discussion | None:
    """Return the user's open pull request with a title, if there is one."""
    discussions = api.get_repo_discussions(
        target.repo_id, repo_type=target.repo_type, discussion_type="pull_request", discussion_status="open"
    )
    same_title = [discussion for discussion in discussions if discussion.title == title and discussion.git_reference]
    user = api.whoami()["name"] if same_title else None
    return next((discussion for discussion in same_title if discussion.author == user), None)


def _blobs(api: HfApi, target: Target, revision: str) -> dict[str, str]:
    """Return the hash of each file of a revision by its path."""
    from huggingface_hub.hf_api import RepoFile

    tree = api.list_repo_tree(target.repo_id, recursive=True, revision=revision, repo_type=target.repo_type)
    return {file.path: file.blob_id for file in tree if isinstance(file, RepoFile)}
