"""After a training run: draw its card, and publish it if --push_to_hub asks for that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.hub_cards.cards import draw_model_card, stages_of
from bleurt_repro.hub_cards.contents import CARD, Target
from bleurt_repro.hub_cards.publish import check_login, publish_folder
from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.training.results import RESULTS, Result


def train_with_card(
    train: Callable[..., Any], argument_classes: Sequence[type], words: list[str], echo: Callable[[str], None]
) -> None:
    """Train, draw the card of the checkpoint, and publish it if --push_to_hub asks for it.

    Args:
        train: `finetune` or `pretrain`; it takes an instance of each of the argument classes.
        argument_classes: dataclasses of settings; the first names the model, the last is the Trainer's.
        words: of the command line.
        echo: called with what was published.

    Raises:
        ValueError: before any training, if the run is to be published and no repository is named, or nobody is logged in.
    """
    from bleurt_repro.training.arguments import parse_config

    *settings, args = parse_config(argument_classes, words)
    target = _target(args)
    if target:
        check_login(target)
    args.push_to_hub = False  # the Trainer would push at each save, and without a card
    train(*settings, args)
    folder = Path(args.output_dir)
    if args.process_index or not (folder / RESULTS).is_file():
        return
    write_card(folder, settings[0].model, target.repo_id if target else None)
    if target:
        echo(_publish(target, folder))


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
    from bleurt_repro.metric.loading.find import find_checkpoint

    path = find_checkpoint(start) / RESULTS
    try:
        stages_of(Result.read(path))
    except (OSError, ValueError):  # there is none, or it is of something else
        return []
    return [path]


def _target(args: Any) -> Target | None:
    if args.hub_token:
        raise ValueError("a token must not be a setting of a run: log in with `hf auth login`, or set HF_TOKEN")
    if not args.push_to_hub:
        return None
    if not args.hub_model_id:
        raise ValueError("--push_to_hub needs --hub_model_id ORG/NAME: where to publish the checkpoint")
    return Target("model", args.hub_model_id, private=bool(args.hub_private_repo), revision=args.hub_revision)


def _publish(target: Target, folder: Path) -> str:
    try:
        return publish_folder(target, folder)
    except (ValueError, OSError) as error:
        raise (ConnectionError if isinstance(error, ConnectionError) else ValueError)(
            f"{error}; the checkpoint is complete in {folder}: `bleurt-repro publish model {folder} --repo-id {target.repo_id}`"
        ) from error
