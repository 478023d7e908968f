"""Publish a checkpoint, a dataset or the Space on the Hub: checked, in one commit, and safe to repeat.

A folder is published with the card that its new address asks for, and without the names of this machine. `draw_card`
draws the same card into a folder, for a look at it beforehand. `train_with_card` is a run of training with its card at the
end, and with its publication if --push-to-hub asks for that.
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
from bleurt_repro.hub_cards.cards import draw_model_card, fill_in, stages_of
from bleurt_repro.hub_cards.checks import check_card, check_files, check_model, mask_secrets
from bleurt_repro.hub_cards.contents import CARD, MAIN, REPLACED, File, Target, gather
from bleurt_repro.hub_cards.dataset_card import draw_dataset_card, draw_synthetic_card, is_stub, shorten_paths
from bleurt_repro.hub_cards.space import draw_space_card, space_files, space_folder
from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.training.results import RESULTS, Result

if TYPE_CHECKING:
    from huggingface_hub import Discussion, HfApi

Answer = TypeVar("Answer")

SPACE_SDK = "gradio"
# Large files go up through hf_xet, which by itself retries for three to five minutes before it names a fault. One retry is
# enough for a hiccup; what lasts longer is tried again by `with_retries`, with a warning each time.
XET_RETRIES = {"HF_XET_CLIENT_RETRY_MAX_ATTEMPTS": "1", "HF_XET_CLIENT_RETRY_BASE_DELAY": "1s"}


@dataclass(frozen=True)
class Publication:
    """What was published.

    Attributes:
        url: of the commit or the pull request; of the commit that holds everything already, if nothing had changed.
        written: files that were new or different.
        deleted: paths of weights or data that the folder no longer has.
    """

    url: str
    written: Sequence[File] = ()
    deleted: Sequence[str] = ()

    def describe(self) -> str:
        """Sum it up for a terminal."""
        if not self.written and not self.deleted:
            return f"nothing has changed: no new commit\n{self.url}"
        lines = [f"wrote {file.path} ({shown_size(file.size)})" for file in self.written]
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
    """Check a folder and put it on the Hub.

    Args:
        target: where to.
        folder: a checkpoint, a dataset or a Space; without one, the Space that comes with the package.
        dry_run: only check it and report what would be done; nothing is asked of the Hub.
        requirement: of a Space, what to install the package by; by default a wheel in the Space itself.
        source: of a checkpoint, the address that readers of its card install the package from; see
            `metric.install.package_source`.

    Returns:
        what was done, or would be, for a terminal.

    Raises:
        ValueError: if the folder is not fit to publish, or the Hub refuses.
        ConnectionError: if the Hub stays out of reach.
    """
    if folder is None and target.kind != "space":
        raise ValueError(f"name the folder of the {target.kind} to publish")
    place = Path(folder) if folder is not None else space_folder()
    if target.kind == "space":
        own = space_files(target, place, requirement)
    else:
        own = _model_card(target, place, source) if target.kind == "model" else _dataset_files(target, place)
    files, left_out = prepare(target.kind, place, own)
    if dry_run:
        return describe_plan(target, files, left_out)
    done = publish(target, files, f"Upload {place.resolve().name} with bleurt_repro {__version__}").describe()
    return f"{done}\nleft out: {', '.join(left_out)}" if left_out else done


def _model_card(target: Target, folder: Path, source: str | None) -> list[File]:
    """Draw the card if there is none, and put the new addresses into the one there is."""
    path = folder / CARD
    if path.is_file():
        text = path.read_text(encoding="utf-8")
    elif (folder / "config.json").is_file():
        results = folder / RESULTS
        text = draw_model_card(folder, training=[results] if results.is_file() else [])
    else:
        return []
    return [File(CARD, fill_in(text, folder, target.repo_id, source).encode())]


def _dataset_files(target: Target, folder: Path) -> list[File]:
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    path = folder / CARD
    if is_finished(folder):
        records = [File(file.name, _shorten(file)) for file in sorted(folder.glob("*.json"))]
        return [*records, File(CARD, draw_synthetic_card(folder, repo_id=target.repo_id).encode())]
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8")
    if is_stub(text):
        text = draw_dataset_card(folder, repo_id=target.repo_id)
    return [File(CARD, fill_in(text, folder, target.repo_id).encode())]


def _shorten(path: Path) -> bytes:
    """Read a record, with local folders by their last name: the hashes beside them identify the models."""
    return (json.dumps(shorten_paths(json.loads(path.read_text(encoding="utf-8"))), indent=2) + "\n").encode()


def draw_card(folder: str | Path, **arguments: Any) -> str:
    """Draw the card of a checkpoint, a dataset or a Space.

    Args:
        folder: the checkpoint, dataset or Space.
        arguments: those of the card of its kind: of `draw_model_card`, `draw_dataset_card`, `draw_synthetic_card` or
            `draw_space_card`.

    Raises:
        FileNotFoundError: if there is no such folder.
        ValueError: if the card of this kind has no use for an argument.
    """
    from bleurt_repro.datasets_builders.synthetic.builder import is_finished

    place = Path(folder)
    if not place.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: give a checkpoint, a dataset or a Space")
    kind, draw = "a dataset", functools.partial(draw_dataset_card, place)
    if (place / "config.json").is_file():
        kind, draw = "a checkpoint", functools.partial(draw_model_card, place)
    elif (place / "app.py").is_file():
        kind, draw = "a Space", functools.partial(draw_space_card)
    elif is_finished(place):
        kind, draw = "synthetic pairs", functools.partial(draw_synthetic_card, place)
    given = {name: value for name, value in arguments.items() if value}
    if unknown := [name.replace("_", "-") for name in given if name not in inspect.signature(draw).parameters]:
        raise ValueError(f"the card of {kind} takes no --{', --'.join(unknown)}")
    return draw(**given)


def prepare(kind: str, folder: Path, files: Sequence[File] = ()) -> tuple[list[File], list[str]]:
    """Choose what is published, and check that it is fit for it.

    Args:
        kind: "model", "dataset" or "space".
        folder: the folder.
        files: to replace the folder's files of the same path, or to be added to them.

    Returns:
        the files, and the names of what is beside them and stays.

    Raises:
        ValueError: naming everything that is wrong.
    """
    found, left_out = gather(kind, folder)
    chosen = {file.path: file for file in [*found, *files]}
    content = [chosen[path] for path in sorted(chosen)]
    problems = check_files(content, left_out) + (check_model(content) if kind == "model" else [])
    problems += check_card(kind, content)
    if problems:
        raise ValueError(f"{folder} is not fit to publish: {'; '.join(problems)}")
    return content, left_out


def describe_plan(target: Target, files: Sequence[File], left_out: Sequence[str]) -> str:
    """Describe what publishing would do; nothing is asked of the Hub."""
    way = "propose in a pull request to" if target.create_pr else "commit to"
    lines = [f"would {way} {target.place}{' (private)' if target.private else ''}:"]
    lines += [f"  {file.path} ({shown_size(file.size)})" for file in files]
    total = shown_size(sum(file.size for file in files))
    lines.append(f"  {len(files)} files, {total}; what the Hub has already is not sent")
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


def publish(target: Target, files: Sequence[File], message: str) -> Publication:
    """Put files on the Hub in one commit; without any change there is no commit.

    The commit is made as a whole or not at all, so that after any fault the same call may be repeated.

    Args:
        target: where to.
        files: as `prepare` returns them.
        message: of the commit.

    Raises:
        ValueError: if nobody is logged in, or the Hub refuses.
        ConnectionError: if the Hub stays out of reach or in trouble.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="bleurt_repro")
    return _ask_hub(target, lambda: _publish(api, target, files, message))


def check_login(target: Target) -> None:
    """Check that somebody is logged in, before hours are spent on what is to be published.

    Raises:
        ValueError: if nobody is, or the Hub refuses the token.
        ConnectionError: if the Hub stays out of reach or in trouble.
    """
    from huggingface_hub import HfApi

    _ask_hub(target, HfApi(library_name="bleurt_repro").whoami)


def _ask_hub(target: Target, action: Callable[[], Answer]) -> Answer:
    """Do something on the Hub, again if a fault may pass, and report a failure in one sentence without any secret."""
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
                f"{target.place} was not published: {describe(error)}; the repository is unchanged, publish it again"
            ) from error
        if code is None and not isinstance(error, ValueError | OSError | RuntimeError):
            raise
        text = mask_secrets(" ".join(str(error).split()))
        reason = text if code is None else describe(error) + ("" if code in (401, 403) else f" ({text})")
        raise ValueError(f"{target.place} was not published: {reason}") from error


def _with_masked_messages(action: Callable[[], Answer]) -> Answer:
    """Do something, with secrets masked in what the Hub's client logs and warns of: parts of it are the server's text."""
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

    kind, repo_id = target.kind, target.repo_id
    _make_room(api, target)
    proposal = _open_proposal(api, target, message) if target.create_pr else None
    revision = str(proposal.git_reference) if proposal else target.revision or MAIN
    before = _blobs(api, target, revision)
    stale = sorted(before.keys() - {file.path for file in files})
    deletions = [CommitOperationDelete(path) for path in stale if any(fnmatch(path, name) for name in REPLACED)]
    # The client leaves files out that the revision has already, and makes no commit if nothing is left.
    commit = api.create_commit(
        repo_id,
        [*(CommitOperationAdd(file.path, file.content) for file in files), *deletions],
        commit_message=message,
        repo_type=kind,
        revision=revision,
        create_pr=target.create_pr and not proposal,
    )
    after = _blobs(api, target, commit.pr_revision or commit.oid)
    written = [file for file in files if before.get(file.path) != after[file.path]]
    url = proposal.url if proposal else commit.pr_url or commit.commit_url
    return Publication(str(url), written, [operation.path_in_repo for operation in deletions])


def _make_room(api: HfApi, target: Target) -> None:
    """Make the repository and the branch, unless they exist."""
    kind, repo_id, revision = target.kind, target.repo_id, target.revision or MAIN
    sdk = SPACE_SDK if kind == "space" else None
    api.create_repo(repo_id, repo_type=kind, private=target.private or None, exist_ok=True, space_sdk=sdk)
    if target.private and not api.repo_info(repo_id, repo_type=kind).private:
        raise ValueError(f"{repo_id} is there already and public: make it private on the Hub, or leave --private out")
    if revision != MAIN and not revision.startswith("refs/pr/"):
        api.create_branch(repo_id, repo_type=kind, branch=revision, exist_ok=True)


def _open_proposal(api: HfApi, target: Target, message: str) -> Discussion | None:
    """Find one's own open pull request of this title: of an earlier call, perhaps one whose answer was lost."""
    found = api.get_repo_discussions(
        target.repo_id, repo_type=target.kind, discussion_type="pull_request", discussion_status="open"
    )
    same = [discussion for discussion in found if discussion.title == message and discussion.git_reference]
    name = api.whoami()["name"] if same else None
    return next((discussion for discussion in same if discussion.author == name), None)


def _blobs(api: HfApi, target: Target, revision: str) -> dict[str, str]:
    """List the files of a revision, with the hash of each."""
    from huggingface_hub.hf_api import RepoFile

    tree = api.list_repo_tree(target.repo_id, recursive=True, revision=revision, repo_type=target.kind)
    return {item.path: item.blob_id for item in tree if isinstance(item, RepoFile)}


# --- after training ------------------------------------------------------------------------------------------------


def train_with_card(
    train: Callable[..., Any], argument_classes: Sequence[type], words: list[str], echo: Callable[[str], None]
) -> None:
    """Train, draw the card of the checkpoint, and publish it if --push-to-hub asks for it.

    Args:
        train: `finetune` or `pretrain`; it takes an instance of each of the argument classes, and what draws the card.
        argument_classes: dataclasses of settings; the first names the model, the last is the Trainer's.
        words: of the command line.
        echo: called with what was published.

    Raises:
        ValueError: before any training, if the run is to be published and no repository is named, or nobody is logged in.
    """
    from bleurt_repro.training.arguments import parse_config

    *settings, args = parse_config(argument_classes, words)
    target = _target_of_run(args)
    if target:
        check_login(target)
    args.push_to_hub = False  # the Trainer would push at each save, and without a card

    def card(folder: Path) -> None:
        write_card(folder, settings[0].model, target.repo_id if target else None)

    train(*settings, args, card)
    folder = Path(args.output_dir)
    if target and not args.process_index and (folder / RESULTS).is_file():
        echo(_publish_run(target, folder))


def write_card(folder: Path, start: str, repo_id: str | None = None) -> None:
    """Draw the card of a run from its results and from those of what it started from.

    Args:
        folder: of the run.
        start: name or folder of the model that it started from.
        repo_id: where it will be published.
    """
    text = draw_model_card(folder, training=[*_earlier(start), folder / RESULTS], repo_id=repo_id)
    write_text(folder / CARD, text)


def _earlier(start: str) -> list[Path]:
    """Find the results of the training before this one, if there are any."""
    from bleurt_repro.metric.loading.open import find_checkpoint

    path = find_checkpoint(start) / RESULTS
    try:
        stages_of(Result.read(path))
    except (OSError, ValueError):  # there is none, or it is of something else
        return []
    return [path]


def _target_of_run(args: Any) -> Target | None:
    if args.hub_token:
        raise ValueError("a token must not be a setting of a run: log in with `hf auth login`, or set HF_TOKEN")
    if not args.push_to_hub:
        return None
    if not args.hub_model_id:
        raise ValueError("--push-to-hub needs --hub-model-id ORG/NAME: where to publish the checkpoint")
    return Target("model", args.hub_model_id, private=bool(args.hub_private_repo), revision=args.hub_revision)


def _publish_run(target: Target, folder: Path) -> str:
    try:
        return publish_folder(target, folder)
    except (ValueError, OSError) as error:
        raise (ConnectionError if isinstance(error, ConnectionError) else ValueError)(
            f"{error}; the checkpoint is complete in {folder}: `bleurt-repro publish model {folder} --repo-id {target.repo_id}`"
        ) from error
