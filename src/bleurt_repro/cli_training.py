"""The command line's part on training: `pretrain`, `finetune` and `experiment`."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from bleurt_repro.cli_style import Cache, Command, Group, Overwrite, echo

experiment_app = typer.Typer(cls=Group, help="Run the experiments of the papers, and your own.", no_args_is_help=True)

# Commands that read their own options (dataclasses of defaults, a YAML file, overrides) take them all from here.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
# What each experiment does, by the name of its command and of its file in training/experiments.
EXPERIMENTS = {
    "agreement": "Measure how well metrics agree with people, on ratings or ranks of your own",
    "wmt": "Agreement with the ratings of a WMT year, beside the published figures",
    "drift": "Agreement where training ratings are worse and test ratings better",
    "webnlg": "Agreement with ratings of data-to-text systems",
    "ablation": "What each pre-training task and step adds",
    "robleurt": "Sources, combination, encoders, pre-training and denoising, table by table",
    "sanity": "Judge checkpoints and baselines on minimal pairs and at the extremes",
    "adversarial": "Measure how easily metrics are fooled: turned meanings, random words, degenerate candidates",
}


def pretrain(context: typer.Context) -> None:
    """Pre-train an encoder on synthetic pairs (--help lists the options)."""
    from bleurt_repro.hub_cards.publish import train_with_card
    from bleurt_repro.training.pretrain import GridArguments, PairArguments, PretrainingArguments, pretrain_or_search

    train_with_card(pretrain_or_search, (PairArguments, GridArguments, PretrainingArguments), context.args, echo)


def finetune(context: typer.Context) -> None:
    """Fine-tune a scorer on human ratings (--help lists the options)."""
    from bleurt_repro.hub_cards.publish import train_with_card
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
    from bleurt_repro.training.finetune import finetune as train

    train_with_card(train, (RatingArguments, FinetuningArguments), context.args, echo)


def average(
    checkpoints: Annotated[
        list[str],
        typer.Argument(help="Two or more scorers trained from one encoder; or one, to store it differently."),
    ],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    weight: Annotated[list[float] | None, typer.Option(help="One a checkpoint; equal by default.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the stored weights: float32, bfloat16, float16, float8.")] = "float32",
    max_shard_size: Annotated[
        str | None, typer.Option(help="Of a file of weights, such as 45MB; default: one file.")
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of scorers into one."""
    from bleurt_repro.training.combine import average_scorers

    average_scorers(checkpoints, output, weight, dtype, overwrite, max_shard_size)


def ensemble(
    members: Annotated[list[str], typer.Argument(help="Two or more checkpoints; folders are copied.")],
    validation: Annotated[str, typer.Option(help="Ratings that no member was trained on; they tune the weights.")],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    weight: Annotated[list[float] | None, typer.Option(help="One a member; tuned by default.")] = None,
    mixed_layouts: Annotated[
        bool, typer.Option("--mixed-layouts", help="Members may read different texts, as Src and NoSrc do.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: the best there is.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Put scorers together as one checkpoint: their standardised scores' weighted mean, their spread as uncertainty."""
    from bleurt_repro.training.combine import make_ensemble

    record = make_ensemble(
        members,
        validation,
        output,
        weights=weight,
        mixed_layouts=mixed_layouts,
        device=device,
        overwrite=overwrite,
    )
    for member in record["ensemble"]:
        echo(f"{member['checkpoint']}: weight {member['weight']:.3f}, tau {member['kendall_tau']:.4f}")
    echo(f"ensemble: tau {record['tuned']['kendall_tau']:.4f} ({record['validation']['ratings']} ratings)")


def calibrate(
    checkpoint: Annotated[str, typer.Argument(help="Folder of the checkpoint.")],
    ratings: Annotated[
        str | None,
        typer.Option(help="Ratings that it was not trained on, for percentiles; its config.json is changed."),
    ] = None,
    reliability: Annotated[
        str | None,
        typer.Option(help="Such ratings, for P(raters prefer a system), intervals and P(no error); no score changes."),
    ] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="More ratings, to test on what --reliability fits; repeatable.")
    ] = None,
    judgements: Annotated[
        int | None,
        typer.Option(min=1, help="How many judgements a rating is the mean of, where a file has no n_annotations."),
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="JSON file of what the test found; tables beside it, as .md.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the samples of segments.")] = 0,
    cache: Cache = None,
) -> None:
    """Fit what a checkpoint's scores mean on human ratings, and record it there."""
    from bleurt_repro.training.calibrate import calibrate as fit_and_record

    if ratings is None and reliability is None:
        raise ValueError("name ratings to fit on: --ratings FILE for percentiles, --reliability FILE for the rest")
    if reliability is None and (test or report):
        raise ValueError("--test and --report go with --reliability FILE")
    if report is not None and not report.endswith(".json"):
        raise ValueError(f"the report must be a .json file, found {report}")
    if ratings is not None:
        fitted = fit_and_record(checkpoint, ratings)
        echo(
            f"{checkpoint}: scores {fitted.scores[0]:.2f} to {fitted.scores[-1]:.2f} are percentiles "
            f"{fitted.percentiles[0]:.0f} to {fitted.percentiles[-1]:.0f} of {fitted.source['ratings']} ratings"
        )
    if reliability is not None:
        from bleurt_repro.training.reliability import measure_reliability, summary, write_report

        found = measure_reliability(
            checkpoint, reliability, tests=test or [], judgements=judgements, seed=seed, cache=cache
        )
        if report is not None:
            write_report(found, report)
        echo(summary(found))


def _add_experiment(name: str, description: str) -> None:
    """Add the command that runs an experiment, `main` of its module, and prints its table."""

    def run(context: typer.Context) -> None:
        experiment = import_module(f"bleurt_repro.training.experiments.{name}")
        echo(experiment.draw_table(experiment.main(context.args)))

    help_text = f"{description} (--help lists the options)."
    experiment_app.command(name, cls=Command, context_settings=PASS_ON, help=help_text)(run)


for experiment_name, what_it_does in EXPERIMENTS.items():
    _add_experiment(experiment_name, what_it_does)
