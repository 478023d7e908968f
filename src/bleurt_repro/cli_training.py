"""The commands that train and evaluate: `pretrain`, `finetune`, `average`, `ensemble`, `calibrate`, `experiment`."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Annotated

import typer

from bleurt_repro.cli_style import Backend, Cache, CheckpointName, Command, Device, Dtype, Group, Overwrite, echo
from bleurt_repro.metric.install import require_extra
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT

experiment_app = typer.Typer(
    cls=Group, help="Evaluate metrics against human ratings; reproduce the papers' tables.", no_args_is_help=True
)

# How a report of `calibrate` begins.
OUR_REPORT = re.compile(rb"\{\s*\"kind\": \"reliability\"")
# For commands that parse their options themselves: dataclasses with defaults, a YAML file, options that override both.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}
# The name of an experiment, which is also its module in training/experiments, and what it does.
EXPERIMENTS = {
    "agreement": "Measure how well metrics agree with people, on your own ratings or ranks",
    "wmt": "Reproduce tables 2 to 4 of BLEURT: agreement with the WMT ratings of a year, beside the published values",
    "drift": "Reproduce figures 1 and 2 of BLEURT: training on worse translations, testing on better ones",
    "webnlg": "Reproduce figure 3 of BLEURT: agreement with the WebNLG ratings of data-to-text systems",
    "ablation": "Reproduce figures 4 and 5 of BLEURT: what each pre-training task and step adds",
    "robleurt": "Reproduce the tables of RoBLEURT: sources, ensembles, encoders, pre-training and denoising",
    "sanity": "Test metrics on pairs of which one candidate is better by construction, and on extreme inputs",
    "adversarial": "Test how easily metrics are fooled by changed meanings, random words and degenerate candidates",
}


def _require_train(context: typer.Context, command: str) -> None:
    """Check that the extra for training is installed, before PyTorch and transformers are imported; help needs none."""
    if not {"--help", "-h", "--help-all"} & set(context.args):
        require_extra("train", command)


def pretrain(context: typer.Context) -> None:
    """Pre-train an encoder on synthetic pairs."""
    _require_train(context, "pretrain")
    from bleurt_repro.hub_cards.train import train_by_command
    from bleurt_repro.training.pretrain import GridArguments, PairArguments, PretrainingArguments, pretrain_or_search

    train_by_command(pretrain_or_search, (PairArguments, GridArguments, PretrainingArguments), context.args, echo)


def finetune(context: typer.Context) -> None:
    """Fine-tune a scorer on human ratings."""
    _require_train(context, "finetune")
    from bleurt_repro.hub_cards.train import train_by_command
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
    from bleurt_repro.training.finetune import finetune as train

    train_by_command(train, (RatingArguments, FinetuningArguments), context.args, echo)


def agree(
    ratings: Annotated[
        str,
        typer.Option(
            help="File of your ratings with the columns reference, candidate and score: CSV, TSV, JSONL, Parquet."
        ),
    ],
    checkpoint: CheckpointName = DEFAULT_CHECKPOINT,
    device: Device = None,
    dtype: Dtype = None,
    backend: Backend = "torch",
    cache: Cache = None,
) -> None:
    """Measure whether a metric agrees with your people, beside BLEU and chrF++, and how many ratings that takes."""
    require_extra("train", "agree")
    from bleurt_repro.training.experiments.agree import agree as measure_agreement

    options = {"device": device, "dtype": dtype, "backend": backend, "cache": cache}
    echo(measure_agreement(ratings, checkpoint, {name: value for name, value in options.items() if value is not None}))


def average(
    checkpoints: Annotated[
        list[str],
        typer.Argument(help="Two or more scorers trained from the same encoder, or one to store with other options."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write.")],
    weight: Annotated[
        list[float] | None, typer.Option(help="Weights, one per checkpoint.", show_default="equal weights")
    ] = None,
    dtype: Annotated[
        str, typer.Option(help="Number format of the stored weights: float32, bfloat16, float16 or float8.")
    ] = "float32",
    max_shard_size: Annotated[
        str | None, typer.Option(help="Largest size of a weight file, such as 45MB.", show_default="one file")
    ] = None,
    scale: Annotated[float, typer.Option(help="Number that multiplies all scores.")] = 1.0,
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of several scorers into one checkpoint."""
    from bleurt_repro.training.combine import average_scorers

    average_scorers(checkpoints, output, weight, dtype, overwrite, max_shard_size, scale)


def ensemble(
    members: Annotated[list[str], typer.Argument(help="Two or more checkpoints; folders are copied into the output.")],
    validation: Annotated[
        str, typer.Option(help="File of ratings that no member was trained on, to tune the weights.")
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Folder to write.")],
    weight: Annotated[
        list[float] | None, typer.Option(help="Weights, one per member.", show_default="tuned on the ratings")
    ] = None,
    mixed_layouts: Annotated[
        bool,
        typer.Option(
            "--mixed-layouts", help="Allow members that read different texts, such as with and without the source."
        ),
    ] = False,
    device: Device = None,
    overwrite: Overwrite = False,
) -> None:
    """Combine scorers into one checkpoint that returns the weighted mean of their standardised scores."""
    require_extra("train", "ensemble")
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
    checkpoint: Annotated[str, typer.Argument(help="Folder with the checkpoint.")],
    ratings: Annotated[
        str | None,
        typer.Option(
            help="File of ratings to fit percentiles on, none of them trained on; config.json stores the fit."
        ),
    ] = None,
    reliability: Annotated[
        str | None,
        typer.Option(
            help="File of ratings with systems to fit P(people prefer a system) on, none of them trained on."
        ),
    ] = None,
    test: Annotated[
        list[str] | None,
        typer.Option(help="One or more further files of ratings to test the fit of --reliability on."),
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="JSON file for the results of the test; tables are written beside it as .md.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the samples of segments.")] = 0,
    dtype: Dtype = None,
    cache: Cache = None,
) -> None:
    """Fit on human ratings what a checkpoint's scores mean, and store it in the checkpoint."""
    require_extra("train", "calibrate")
    from bleurt_repro.metric.files.writing import validate_output
    from bleurt_repro.training.calibrate import calibrate as fit_and_record

    if ratings is None and reliability is None:
        raise ValueError(
            "name ratings to fit on: --ratings FILE for percentiles, --reliability FILE for P(people prefer a system)"
        )
    if reliability is None and (test or report):
        raise ValueError("--test and --report go with --reliability FILE")
    if report is not None and not report.endswith(".json"):
        raise ValueError(f"the report must be a .json file, found {report}")
    if report is not None:  # before anything is scored
        validate_output(report, [ratings, reliability, *(test or [])], OUR_REPORT)
    if ratings is not None:
        fitted = fit_and_record(checkpoint, ratings, dtype=dtype)
        echo(
            f"{checkpoint}: scores {fitted.scores[0]:.2f} to {fitted.scores[-1]:.2f} are percentiles "
            f"{fitted.percentiles[0]:.0f} to {fitted.percentiles[-1]:.0f} of {fitted.source['ratings']} ratings"
        )
    if reliability is not None:
        from bleurt_repro.training.reliability.held_out import measure_reliability
        from bleurt_repro.training.reliability.report import summary, write_report

        result = measure_reliability(checkpoint, reliability, tests=test or [], seed=seed, dtype=dtype, cache=cache)
        if report is not None:
            write_report(result, report)
        echo(summary(result))


def _add_experiment(name: str, description: str) -> None:
    """Add the command that runs an experiment, `main` of its module, and prints its table."""

    def run(context: typer.Context) -> None:
        _require_train(context, f"experiment {name}")
        experiment = import_module(f"bleurt_repro.training.experiments.{name}")
        echo(experiment.draw_table(experiment.main(context.args)))

    experiment_app.command(name, cls=Command, context_settings=PASS_ON, help=f"{description}.")(run)


for experiment_name, what_it_does in EXPERIMENTS.items():
    _add_experiment(experiment_name, what_it_does)
