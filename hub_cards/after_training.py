"""What comes after training: the card of the run, and with --push_to_hub its publication."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from bleurt_repro.hub_cards.cards import draw_model_card, stages_of
from bleurt_repro.hub_cards.contents import CARD
from bleurt_repro.hub_cards.publish import Target, check_login
from bleurt_repro.hub_cards.publish_folder import RESULTS, publish_folder


def train_with_card(
    main: Callable[[list[str]], None], argument_classes: Sequence[type], words: list[str], echo: Callable[[str], None]
) -> None:
    """Run a training script, draw the card of what it leaves, and publish that if --push_to_hub asks for it.

    Args:
        main: the script; it takes the words of the command line.
        argument_classes: its dataclasses of settings, the Trainer's last.
        words: of the command line.
        echo: told what was published.

    Raises:
        ValueError: before any training, if the run is to be published and it is not said where, or nobody is logged in.
    """
    from bleurt_repro.training.arguments import parse_config

    settings, args = parse_config(argument_classes, words)
    target = _target(args)
    if target:
        check_login(target)
    # What the Trainer's own push would do is done here at the end, once.
    main([*words, "--push_to_hub", "false"])
    folder = Path(args.output_dir)
    if args.process_index or not (folder / RESULTS).is_file():
        return
    write_card(folder, settings.model, target.repo_id if target else None)
    if target:
        echo(_publish(target, folder))


def write_card(folder: Path, start: str, repo_id: str | None = None) -> None:
    """Draw the card of a run from its results and from those of what it started from.

    Args:
        folder: of the run.
        start: the model it started from, as it was named.
        repo_id: where it will be published.
    """
    from bleurt_repro.metric.files.writing import write_text

    text = draw_model_card(folder, training=[*_earlier(start), folder / RESULTS], repo_id=repo_id)
    write_text(folder / CARD, text)


def _earlier(start: str) -> list[Path]:
    """Find the results of the training before this one, if there are any."""
    from bleurt_repro.metric.loading.find import find_checkpoint

    path = find_checkpoint(start) / RESULTS
    try:
        stages_of(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError):  # none, or of something else
        return []
    return [path]


def _target(args: Any) -> Target | None:
    if args.hub_token:
        raise ValueError("a token is no setting of a run: log in with `hf auth login`, or set HF_TOKEN")
    if not args.push_to_hub:
        return None
    if not args.hub_model_id:
        raise ValueError("--push_to_hub needs --hub_model_id ORG/NAME: where the checkpoint goes")
    return Target("model", args.hub_model_id, private=bool(args.hub_private_repo), revision=args.hub_revision)


def _publish(target: Target, folder: Path) -> str:
    try:
        return publish_folder(target, folder)
    except (ValueError, OSError) as error:
        raise (ConnectionError if isinstance(error, ConnectionError) else ValueError)(
            f"{error}; the checkpoint lies whole in {folder}: `bleurt-repro publish model {folder} --repo-id {target.repo_id}`"
        ) from error
