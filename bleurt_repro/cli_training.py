"""The command line's part on training: `pretrain`, `finetune` and `experiment`."""

from __future__ import annotations

from typing import Annotated

import typer

experiment_app = typer.Typer(help="Run the experiments of the papers, and your own.", no_args_is_help=True)

# Commands that read their own options (dataclasses of defaults, a YAML file, overrides) take them all from here.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def pretrain(context: typer.Context) -> None:
    """Pre-train an encoder on synthetic pairs (--help lists the options)."""
    from bleurt_repro.training.pretrain import main as pretrain_main

    pretrain_main(context.args)


def finetune(context: typer.Context) -> None:
    """Fine-tune a scorer on human ratings (--help lists the options)."""
    from bleurt_repro.training.finetune import main as finetune_main

    finetune_main(context.args)


def average(
    checkpoints: Annotated[list[str], typer.Argument(help="Two or more scorers trained from one encoder.")],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    weight: Annotated[list[float] | None, typer.Option(help="One a checkpoint; equal by default.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the stored weights: float32, bfloat16, float16.")] = "float32",
) -> None:
    """Average the weights of scorers into one."""
    from bleurt_repro.training.averaging import average_scorers

    average_scorers(checkpoints, output, weight, dtype)


def calibrate(
    checkpoint: Annotated[str, typer.Argument(help="Folder of the checkpoint; its config.json is changed.")],
    ratings: Annotated[str, typer.Option(help="Ratings that it was not trained on: reference, candidate, score.")],
) -> None:
    """Fit the map from a checkpoint's scores to percentiles of human ratings, and record it there."""
    from bleurt_repro.training.calibrate import calibrate as fit_and_record

    fitted = fit_and_record(checkpoint, ratings)
    typer.echo(
        f"{checkpoint}: scores {fitted.scores[0]:.2f} to {fitted.scores[-1]:.2f} are percentiles "
        f"{fitted.percentiles[0]:.0f} to {fitted.percentiles[-1]:.0f} of {fitted.source['ratings']} ratings"
    )


@experiment_app.command("agreement")
def experiment_agreement(
    output: Annotated[str, typer.Option(help="Folder to write results.json and table.md to.")],
    ratings: Annotated[str | None, typer.Option(help="Ratings: reference, candidate, score, ...")] = None,
    relative_ranks: Annotated[
        str | None, typer.Option(help="Or ranks: reference, candidate_better, candidate_worse.")
    ] = None,
    checkpoint: Annotated[list[str] | None, typer.Option(help="Checkpoint to measure; repeatable.")] = None,
    baselines: Annotated[list[str] | None, typer.Option(help="sentbleu, bleu or chrf++; repeatable.")] = None,
    by: Annotated[str, typer.Option(help="Column to group by.")] = "lp",
    resamples: Annotated[int, typer.Option(help="Bootstrap samples of each interval; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the bootstrap.")] = 0,
    title: Annotated[str | None, typer.Option(help="What to call the data.")] = None,
) -> None:
    """Measure how well checkpoints and baselines agree with people."""
    from bleurt_repro.training.experiments import agreement

    results = agreement.run(
        output=output,
        ratings=ratings,
        relative_ranks=relative_ranks,
        checkpoints=checkpoint or [],
        baselines=baselines or [],
        by=by,
        resamples=resamples,
        seed=seed,
        title=title,
    )
    typer.echo(agreement.draw_table(results))


@experiment_app.command("sanity")
def experiment_sanity(
    output: Annotated[str, typer.Option(help="Folder to write results, table, plot and failures to.")],
    checkpoint: Annotated[list[str] | None, typer.Option(help="Checkpoint to judge; repeatable.")] = None,
    baselines: Annotated[list[str] | None, typer.Option(help="sentbleu, bleu or chrf++; repeatable.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="Table of type, reference, better, worse; the project's own by default.")
    ] = None,
    references: Annotated[
        str | None, typer.Option(help="Ratings, or one reference a line: check the extremes, too.")
    ] = None,
    most_references: Annotated[int, typer.Option(help="How many references to sample.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the sample and the candidates made for it.")] = 0,
) -> None:
    """Judge checkpoints and baselines on minimal pairs and at the extremes."""
    from bleurt_repro.training.experiments import minimal_pairs, sanity, sanity_report

    results = sanity.run(
        output=output,
        checkpoints=checkpoint or [],
        baselines=baselines or [],
        pairs=pairs or minimal_pairs.TABLE,
        references=references,
        most_references=most_references,
        seed=seed,
    )
    typer.echo(sanity_report.draw_table(results))
