"""The command line, `bleurt-repro`: each command is a thin call into the floor that does the work.

Imports stand inside the commands, so that `bleurt-repro --help` answers at once. Exit codes: 0, or 2 on a usage or
input error, said in one line on standard error (set BLEURT_REPRO_DEBUG=1 for the traceback).
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated

import typer

app = typer.Typer(
    help="BLEURT and RoBLEURT: learned metrics of generated text, from raw text to published model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="Gather human ratings and synthetic pairs.", no_args_is_help=True)
app.add_typer(data_app, name="data")
experiment_app = typer.Typer(help="Run the experiments of the papers, and your own.", no_args_is_help=True)
app.add_typer(experiment_app, name="experiment")

DEFAULT_CHECKPOINT = "bleurt-repro-mini"

# Commands that read their own options (dataclasses of defaults, a YAML file, overrides) take them all from here.
PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def _print_version(wanted: bool) -> None:
    if wanted:
        from bleurt_repro import __version__

        typer.echo(f"bleurt-repro {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


@app.command()
def score(
    references: Annotated[str | None, typer.Option(help="Text file, one reference a line; '-' is stdin.")] = None,
    candidates: Annotated[str | None, typer.Option(help="Text file, one candidate a line; '-' is stdin.")] = None,
    sources: Annotated[
        str | None, typer.Option(help="Text file, one source a line, if the checkpoint reads them.")
    ] = None,
    pairs: Annotated[
        str | None, typer.Option(help="JSONL instead: reference or references, candidate, source; '-' is stdin.")
    ] = None,
    checkpoint: Annotated[
        str, typer.Option(help="Embedded or official name, local folder, or Hub id with optional @revision.")
    ] = DEFAULT_CHECKPOINT,
    aggregate: Annotated[str, typer.Option(help="Several references: 'max' or 'mean'.")] = "max",
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; default: the best there is.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 (default), bfloat16 or float16.")] = None,
    batch_tokens: Annotated[int | None, typer.Option(help="Padded tokens in a batch.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object with scores, mean, signature, truncated.")
    ] = False,
    output: Annotated[str, typer.Option(help="File to write; '-' is stdout.")] = "-",
) -> None:
    """Score candidates against references: one score a line, in input order."""
    from bleurt_repro.metric.score_files import score_files

    score_files(
        references=references,
        candidates=candidates,
        sources=sources,
        pairs=pairs,
        output=output,
        as_json=json,
        aggregate=aggregate,
        scorer_options={
            "checkpoint": checkpoint,
            "device": device,
            "dtype": dtype,
            "batch_tokens": batch_tokens,
            "progress": progress,
        },
    )


@app.command()
def convert(
    source: Annotated[
        str, typer.Argument(help="Official BLEURT folder or zip, bleurt-pytorch folder, Hub id or name.")
    ],
    destination: Annotated[str, typer.Argument(help="Folder to write; must not exist.")],
    scores: Annotated[
        str | None,
        typer.Option(help="JSONL of reference, candidate, score to compare with; default: the source's scores.jsonl."),
    ] = None,
    max_difference: Annotated[
        float | None, typer.Option(help="Largest difference allowed from those scores; default: 2e-5.")
    ] = None,
    gelu: Annotated[str, typer.Option(help="tanh, erf or auto: what the source says, else tanh.")] = "auto",
) -> None:
    """Convert an official BLEURT checkpoint to one that transformers opens and that gives the same scores."""
    from bleurt_repro.metric.conversion import convert as convert_checkpoint

    made = convert_checkpoint(source, destination, scores=scores, max_difference=max_difference, gelu=gelu)
    typer.echo(f"wrote {destination}: {made.architecture}, {made.max_length} tokens, {made.activation}")
    typer.echo(f"parity: {made.parity or 'not measured, for want of scores to compare with'}")


@app.command()
def register() -> None:
    """Make evaluate.load("bleurt_repro") work from any folder, offline."""
    from bleurt_repro.metric.register import register as register_metric

    path = register_metric()
    typer.echo(f'evaluate.load("bleurt_repro") now reads {path}')


@app.command()
def card(
    checkpoint: Annotated[str, typer.Argument(help="Folder of the checkpoint; its README.md is written.")],
    training: Annotated[list[str] | None, typer.Option(help="results.json of a training run; repeatable.")] = None,
    agreement: Annotated[list[str] | None, typer.Option(help="results.json of an experiment; repeatable.")] = None,
    repo_id: Annotated[str | None, typer.Option(help="Where it will be published, org/name.")] = None,
) -> None:
    """Draw a checkpoint's card from results files."""
    from pathlib import Path

    from bleurt_repro.hub_cards.cards import draw_model_card
    from bleurt_repro.metric.atomic import write_text

    text = draw_model_card(checkpoint, training=training or [], agreement=agreement or [], repo_id=repo_id)
    write_text(Path(checkpoint) / "README.md", text)


@app.command(context_settings=PASS_ON)
def pretrain(context: typer.Context) -> None:
    """Pre-train an encoder on synthetic pairs (--help lists the options)."""
    from bleurt_repro.training.pretrain import main as pretrain_main

    pretrain_main(context.args)


@app.command(context_settings=PASS_ON)
def finetune(context: typer.Context) -> None:
    """Fine-tune a scorer on human ratings (--help lists the options)."""
    from bleurt_repro.training.finetune import main as finetune_main

    finetune_main(context.args)


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


@data_app.command("wmt")
def data_wmt(
    config_name: Annotated[str, typer.Option(help="The year to test on (2017, 2018, 2019, ...), or 'all'.")],
    output: Annotated[str, typer.Option(help="Folder to write: train, validation and test.")],
    data_dir: Annotated[
        str | None, typer.Option(help="Folder of ratings, or of the official archives, unpacked.")
    ] = None,
    hub_dataset: Annotated[str | None, typer.Option(help="Instead: RicardoRei/wmt-da-human-evaluation.")] = None,
    hub_revision: Annotated[str | None, typer.Option(help="Its branch, tag or commit.")] = None,
    language_pairs: Annotated[list[str], typer.Option(help="Such as de-en or '*-en'; repeatable.")] = ["*-en"],  # noqa: B006
    validation_ratio: Annotated[
        float | None, typer.Option(help="Of the training years; default: the paper's.")
    ] = None,
    one_record_per_system: Annotated[bool, typer.Option(help="Train on a record for each of several systems.")] = True,
    average_duplicates: Annotated[bool, typer.Option(help="Train on one record for each candidate.")] = False,
    seed: Annotated[int, typer.Option(help="Of the validation split.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write human ratings of translations, split by year as in the paper."""
    from bleurt_repro.datasets_builders.export import export_wmt

    counts = export_wmt(
        config_name,
        output,
        format,
        data_dir=data_dir,
        hub_dataset=hub_dataset,
        hub_revision=hub_revision,
        language_pairs=tuple(language_pairs),
        validation_ratio=validation_ratio,
        one_record_per_system=one_record_per_system,
        average_duplicates=average_duplicates,
        seed=seed,
    )
    _print_counts(counts)


@data_app.command("relative-ranks")
def data_relative_ranks(
    config_name: Annotated[str, typer.Option(help="The year: 2018, 2019, ...")],
    output: Annotated[str, typer.Option(help="Folder to write: test.")],
    data_dir: Annotated[
        str | None, typer.Option(help="Folder of ratings, or of the official archives, unpacked.")
    ] = None,
    hub_dataset: Annotated[str | None, typer.Option(help="Instead: RicardoRei/wmt-da-human-evaluation.")] = None,
    hub_revision: Annotated[str | None, typer.Option(help="Its branch, tag or commit.")] = None,
    language_pairs: Annotated[list[str], typer.Option(help="Such as de-en or '*-en'; repeatable.")] = ["*-en"],  # noqa: B006
    min_difference: Annotated[float, typer.Option(help="Of the raw scores, in points of 100.")] = 25.0,
    given: Annotated[bool, typer.Option("--given", help="Read the pairs given, in place of making them.")] = False,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write pairs of translations of which one was rated clearly better (daRR)."""
    from bleurt_repro.datasets_builders.export import export_relative_ranks

    counts = export_relative_ranks(
        config_name,
        output,
        format,
        data_dir=data_dir,
        hub_dataset=hub_dataset,
        hub_revision=hub_revision,
        language_pairs=tuple(language_pairs),
        min_difference=min_difference,
        given=given,
    )
    _print_counts(counts)


@data_app.command("webnlg")
def data_webnlg(
    data_dir: Annotated[str, typer.Option(help="Folder of the WebNLG 2017 human evaluation.")],
    output: Annotated[str, typer.Option(help="Folder to write.")],
    config_name: Annotated[str, typer.Option(help="all, by_system or by_input.")] = "all",
    training_systems: Annotated[int, typer.Option(help="by_system: how many train; the paper: 0, 2, 3, 5.")] = 5,
    training_inputs: Annotated[int, typer.Option(help="by_input: how many train; the paper: 0, 38, 66, 122.")] = 122,
    seed: Annotated[int, typer.Option(help="Of the splits.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Write human ratings of data-to-text systems: fluency, grammar, semantics."""
    from bleurt_repro.datasets_builders.export import export_webnlg

    sizes = {"training_systems": training_systems, "training_inputs": training_inputs}
    _print_counts(export_webnlg(config_name, output, format, data_dir=data_dir, seed=seed, **sizes))


@data_app.command("ratings")
def data_ratings(
    input: Annotated[str, typer.Option(help="CSV, TSV, JSONL or Parquet with reference, candidate, score.")],
    output: Annotated[str, typer.Option(help="Folder to write: train and validation.")],
    validation_ratio: Annotated[float, typer.Option(help="Share to validate on.")] = 0.1,
    seed: Annotated[int, typer.Option(help="Of the split.")] = 0,
    format: Annotated[str, typer.Option(help="jsonl or parquet.")] = "jsonl",
) -> None:
    """Check ratings of your own and split them with no segment on both sides."""
    from bleurt_repro.datasets_builders.export import export_ratings

    _print_counts(export_ratings(input, output, format, validation_ratio, seed))


def _print_counts(counts: dict[str, int]) -> None:
    for split, records in counts.items():
        typer.echo(f"{split}: {records:,} records")


@data_app.command("synthetic")
def data_synthetic(
    output: Annotated[str, typer.Option(help="Folder to write to, or to go on with.")],
    input: Annotated[
        str | None,
        typer.Option(help="Text, TSV, CSV, JSONL or Parquet file, dataset folder or Hub id; default: Wikipedia."),
    ] = None,
    config: Annotated[str, typer.Option(help="YAML file with the recipe, or 'paper' or 'small'.")] = "paper",
    num_shards: Annotated[int | None, typer.Option(help="Processes that share the work.")] = None,
    shard_index: Annotated[int | None, typer.Option(help="Which of them this is, from 0.")] = None,
    column: Annotated[str | None, typer.Option(help="Column with the text: a name, or a number from 1.")] = None,
    max_segments: Annotated[int | None, typer.Option(help="Stop after so many segments.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of all random choices.")] = None,
    masked_lm: Annotated[str | None, typer.Option(help="Model that fills masks.")] = None,
    translator: Annotated[str | None, typer.Option(help="One model of all directions, with >>fr<< prefixes.")] = None,
    bertscore_model: Annotated[str | None, typer.Option(help="Encoder of BERTscore.")] = None,
    entailment_model: Annotated[str | None, typer.Option(help="Three-label classifier.")] = None,
    beam_size: Annotated[int | None, typer.Option(help="Of mask filling.")] = None,
    masks_per_pass: Annotated[int | None, typer.Option(help="Masks filled between two runs of the model.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: the best there is.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")] = None,
) -> None:
    """Make pre-training pairs with all signals from plain text; models are folders or Hub ids."""
    from bleurt_repro.datasets_builders.make_synthetic_pairs import make_synthetic_pairs
    from bleurt_repro.datasets_builders.synthetic_config import read_config
    from bleurt_repro.datasets_builders.synthetic_pairs import read_info, report_text

    recipe = read_config(config).with_options(
        column=column,
        max_segments=max_segments,
        seed=seed,
        masked_lm=masked_lm,
        translator=translator,
        bertscore_model=bertscore_model,
        entailment_model=entailment_model,
        beam_size=beam_size,
        masks_per_pass=masks_per_pass,
        device=device,
    )
    report = make_synthetic_pairs(input, output, recipe, num_shards, shard_index, progress)
    if report is None:
        typer.echo("This share is done; the last process to finish, or one more run of any, will sum up.")
    else:
        typer.echo(report_text(read_info(output), report))


@data_app.command("push-synthetic")
def data_push_synthetic(
    folder: Annotated[str, typer.Argument(help="A finished folder of `data synthetic`.")],
    repo_id: Annotated[str, typer.Argument(help="Dataset repository on the Hub: org/name.")],
    private: Annotated[bool, typer.Option(help="Make a private repository.")] = False,
    revision: Annotated[str | None, typer.Option(help="Branch to push to.")] = None,
) -> None:
    """Publish synthetic pairs and their card on the Hub."""
    from bleurt_repro.datasets_builders.synthetic_pairs import push_synthetic_pairs

    typer.echo(push_synthetic_pairs(folder, repo_id, private, revision))


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if not issubclass(category, DeprecationWarning | FutureWarning):
        typer.echo(f"bleurt-repro: warning: {message}", err=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; input errors end in one line and exit code 2.

    Args:
        arguments: the words after the program's name; those of the process by default.
    """
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]
            app(args=arguments)
    except BrokenPipeError:  # the reader of a pipe has left; what it wanted it has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except (TypeError, ValueError, OSError) as error:
        if os.environ.get("BLEURT_REPRO_DEBUG"):
            raise
        typer.echo(f"bleurt-repro: error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
