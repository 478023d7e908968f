"""The command line's part on training: `pretrain`, `finetune` and `experiment`."""

from __future__ import annotations

from typing import Annotated

import typer

from bleurt_repro.cli_style import Command, Group, Overwrite, echo

experiment_app = typer.Typer(cls=Group, help="Run the experiments of the papers, and your own.", no_args_is_help=True)

# Commands that read their own options (dataclasses of defaults, a YAML file, overrides) take them all from here.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


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
    checkpoints: Annotated[list[str], typer.Argument(help="Two or more scorers trained from one encoder.")],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    weight: Annotated[list[float] | None, typer.Option(help="One a checkpoint; equal by default.")] = None,
    dtype: Annotated[str, typer.Option(help="Of the stored weights: float32, bfloat16, float16.")] = "float32",
    overwrite: Overwrite = False,
) -> None:
    """Average the weights of scorers into one."""
    from bleurt_repro.training.combine import average_scorers

    average_scorers(checkpoints, output, weight, dtype, overwrite)


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
    checkpoint: Annotated[str, typer.Argument(help="Folder of the checkpoint; its config.json is changed.")],
    ratings: Annotated[str, typer.Option(help="Ratings that it was not trained on: reference, candidate, score.")],
) -> None:
    """Fit the map from a checkpoint's scores to percentiles of human ratings, and record it there."""
    from bleurt_repro.training.calibrate import calibrate as fit_and_record

    fitted = fit_and_record(checkpoint, ratings)
    echo(
        f"{checkpoint}: scores {fitted.scores[0]:.2f} to {fitted.scores[-1]:.2f} are percentiles "
        f"{fitted.percentiles[0]:.0f} to {fitted.percentiles[-1]:.0f} of {fitted.source['ratings']} ratings"
    )


@experiment_app.command("agreement", cls=Command, context_settings=PASS_ON)
def experiment_agreement(context: typer.Context) -> None:
    """Measure how well metrics agree with people, on ratings or ranks of your own (--help lists the options)."""
    from bleurt_repro.training.experiments import agreement

    echo(agreement.draw_table(agreement.main(context.args)))


@experiment_app.command("wmt", cls=Command, context_settings=PASS_ON)
def experiment_wmt(context: typer.Context) -> None:
    """Agreement with the ratings of a WMT year, beside the published figures (--help lists the options)."""
    from bleurt_repro.training.experiments import wmt

    echo(wmt.draw_table(wmt.main(context.args)))


@experiment_app.command("drift", cls=Command, context_settings=PASS_ON)
def experiment_drift(context: typer.Context) -> None:
    """Agreement where training ratings are worse and test ratings better (--help lists the options)."""
    from bleurt_repro.training.experiments import drift

    echo(drift.draw_table(drift.main(context.args)))


@experiment_app.command("webnlg", cls=Command, context_settings=PASS_ON)
def experiment_webnlg(context: typer.Context) -> None:
    """Agreement with ratings of data-to-text systems (--help lists the options)."""
    from bleurt_repro.training.experiments import webnlg

    echo(webnlg.draw_table(webnlg.main(context.args)))


@experiment_app.command("ablation", cls=Command, context_settings=PASS_ON)
def experiment_ablation(context: typer.Context) -> None:
    """What each pre-training task and step adds (--help lists the options)."""
    from bleurt_repro.training.experiments import ablation

    echo(ablation.draw_table(ablation.main(context.args)))


@experiment_app.command("robleurt", cls=Command, context_settings=PASS_ON)
def experiment_robleurt(context: typer.Context) -> None:
    """Sources, combination, encoders, pre-training and denoising, table by table (--help lists the options)."""
    from bleurt_repro.training.experiments import robleurt

    echo(robleurt.draw_tables(robleurt.main(context.args)))


@experiment_app.command("sanity", cls=Command, context_settings=PASS_ON)
def experiment_sanity(context: typer.Context) -> None:
    """Judge checkpoints and baselines on minimal pairs and at the extremes (--help lists the options)."""
    from bleurt_repro.training.experiments import sanity

    echo(sanity.draw_table(sanity.main(context.args)))


@experiment_app.command("adversarial", cls=Command, context_settings=PASS_ON)
def experiment_adversarial(context: typer.Context) -> None:
    """Measure how easily metrics are fooled: turned meanings, random words, degenerate candidates (--help lists the options)."""
    from bleurt_repro.training.experiments import adversarial

    echo(adversarial.draw_table(adversarial.main(context.args)))
