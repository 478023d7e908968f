"""Train, draw the card of the result, and publish it if asked: what the commands `finetune` and `pretrain` do.

From Python:

    from bleurt_repro import finetune
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments

    ratings = RatingArguments(model="encoder", train_file="ratings.csv")
    arguments = FinetuningArguments(output_dir="out", max_steps=1000, push_to_hub=True, hub_model_id="ORG/NAME")
    finetune(ratings, arguments)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bleurt_repro.hub_cards.cards import draw_model_card, recorded_stages, require_source
from bleurt_repro.hub_cards.contents import CARD, Target
from bleurt_repro.hub_cards.publish import check_login, publish_folder
from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.training.results import RESULTS, Result

if TYPE_CHECKING:
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
    from bleurt_repro.training.pretrain import PairArguments, PretrainingArguments


def finetune(ratings: RatingArguments, arguments: FinetuningArguments, **options: Any) -> Result:
    """Fine-tune a scorer on ratings, draw its card, and publish it if `arguments.push_to_hub` is set.

    Args:
        ratings: what is trained, on which ratings.
        arguments: settings of the training, and folder of the result; `hub_model_id` is the repository to publish to.
        options: `callbacks` and `compute_metrics`, as `bleurt_repro.training.finetune.finetune` takes them.

    Returns:
        what results.json holds.

    Raises:
        FileNotFoundError: if there is no such model or file.
        ValueError: if settings and data do not fit together, the folder holds another run, or the run cannot be
            published.
        OSError: if the disk is full.
    """
    from bleurt_repro.training.finetune import finetune as train

    return train_and_publish(train, (ratings,), arguments, **options)


def pretrain(pairs: PairArguments, arguments: PretrainingArguments, **options: Any) -> Result:
    """Pre-train an encoder on synthetic pairs, draw its card, and publish it if `arguments.push_to_hub` is set.

    Args:
        pairs: what is trained, on which pairs.
        arguments: settings of the training, and folder of the result; `hub_model_id` is the repository to publish to.
        options: `callbacks` and `compute_metrics`, as `bleurt_repro.training.pretrain.pretrain` takes them.

    Returns and raises what `finetune` does.
    """
    from bleurt_repro.training.pretrain import pretrain as train

    return train_and_publish(train, (pairs,), arguments, **options)


def train_by_command(
    train: Callable[..., Result], argument_classes: Sequence[type], argv: Sequence[str], echo: Callable[[str], None]
) -> None:
    """Train with the options of a command line, and print one line on the result.

    Args:
        train: `finetune` or `pretrain_or_search` of the training package.
        argument_classes: dataclasses of settings; the first names the model, the last is the Trainer's.
        argv: arguments of the command line.
        echo: function that prints.
    """
    from bleurt_repro.training.arguments import parse_config
    from bleurt_repro.training.run import summarize

    *settings, arguments = parse_config(argument_classes, argv)
    result = train_and_publish(train, settings, arguments, echo=echo)
    if not arguments.process_index and "best" in result:
        echo(summarize(result, arguments.output_dir))


def train_and_publish(
    train: Callable[..., Result],
    settings: Sequence[Any],
    arguments: Any,
    *,
    echo: Callable[[str], None] | None = None,
    **options: Any,
) -> Result:
    """Train, draw the card of the checkpoint, and publish it if `arguments.push_to_hub` is set.

    Args:
        train: function that takes the settings, the arguments, and the function that draws the card.
        settings: dataclasses; the first names the model.
        arguments: arguments of the Trainer.
        echo: function that prints what was published; by default nothing is printed.
        options: further arguments of `train`.

    Raises:
        ValueError: before training, if the run is to be published and the repository or the address of the package is
            not known, or nobody is logged in.
    """
    target = _hub_target(arguments)
    if target:
        require_source()
        check_login(target)
    arguments.push_to_hub = False  # the Trainer would push at each save, and without a card

    def card(folder: Path) -> None:
        write_card(folder, settings[0].model, target.repo_id if target else None)

    result = train(*settings, arguments, card, **options)
    folder = Path(arguments.output_dir)
    if target and not arguments.process_index and (folder / RESULTS).is_file():
        published = _publish_run(target, folder)
        if echo:
            echo(published)
    return result


def write_card(folder: Path, start: str, repo_id: str | None = None) -> None:
    """Write the card of a training run from its results and those of the checkpoint that it started from.

    Args:
        folder: folder of the run.
        start: checkpoint that it started from: name, folder or Hub id.
        repo_id: repository where it will be published.
    """
    text = draw_model_card(folder, training=[*_earlier_results(start), folder / RESULTS], repo_id=repo_id)
    write_text(folder / CARD, text)


def _earlier_results(start: str) -> list[Path]:
    """Return the results file of an earlier training in a list, which is empty if there is none."""
    from bleurt_repro.metric.loading.find import find_checkpoint

    folder = find_checkpoint(start)
    return [folder / RESULTS] if recorded_stages(folder) else []


def _hub_target(args: Any) -> Target | None:
    """Return where --push-to-hub publishes the run; None if it is not set."""
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
            f"{error}; the checkpoint is complete in {folder}: "
            f"`bleurt-repro publish model {folder} --repo-id {target.repo_id}`"
        ) from error
