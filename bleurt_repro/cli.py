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

from bleurt_repro.cli_data import data_app
from bleurt_repro.cli_publish import card, publish_app
from bleurt_repro.cli_training import PASS_ON, average, calibrate, ensemble, experiment_app, finetune, pretrain

app = typer.Typer(
    help="BLEURT and RoBLEURT: learned metrics of generated text, from raw text to published model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.add_typer(data_app, name="data")
app.add_typer(experiment_app, name="experiment")
app.add_typer(publish_app, name="publish")

DEFAULT_CHECKPOINT = "bleurt-repro-mini"


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
    calibrated: Annotated[
        bool, typer.Option("--calibrated", help="Percentiles of human ratings instead of raw scores.")
    ] = False,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; default: the best there is.")] = None,
    dtype: Annotated[str | None, typer.Option(help="float32 (default), bfloat16 or float16.")] = None,
    backend: Annotated[
        str, typer.Option(help="torch (exact), onnx, or onnx-int8 (on CPUs: faster, not exact).")
    ] = "torch",
    batch_tokens: Annotated[int | None, typer.Option(help="Padded tokens in a batch.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object with scores, mean, signature, truncated.")
    ] = False,
    cache: Annotated[str | None, typer.Option(help="Folder of scores of earlier runs, read and added to.")] = None,
    num_shards: Annotated[
        int | None, typer.Option(help="Score one of so many parts of the input; default: torchrun's WORLD_SIZE.")
    ] = None,
    shard_index: Annotated[int | None, typer.Option(help="Which part, from 0; default: torchrun's RANK.")] = None,
    output: Annotated[
        str, typer.Option(help="File to write ('-' is stdout); the same command again goes on after a kill.")
    ] = "-",
) -> None:
    """Score candidates against references: one score a line, in input order."""
    from bleurt_repro.metric.bulk.score_files import score_files

    score_files(
        references=references,
        candidates=candidates,
        sources=sources,
        pairs=pairs,
        output=output,
        as_json=json,
        aggregate=aggregate,
        calibrated=calibrated,
        num_shards=num_shards,
        shard_index=shard_index,
        scorer_options={
            "checkpoint": checkpoint,
            "device": device,
            "dtype": dtype,
            "backend": backend,
            "batch_tokens": batch_tokens,
            "progress": progress,
            "cache": cache,
        },
    )


@app.command()
def compare(
    references: Annotated[
        list[str],
        typer.Option(help="Text (a line a segment), CSV, TSV or JSONL; repeatable: one more reference each."),
    ],
    candidates: Annotated[list[str], typer.Option(help="Likewise, of one system; once for each system.")],
    sources: Annotated[str | None, typer.Option(help="Likewise, if the checkpoint reads sources.")] = None,
    output: Annotated[
        list[str] | None, typer.Option(help="File to write, .json or .csv (a row a segment); repeatable.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="How many segments to show, of those that differ most.")] = 5,
    resamples: Annotated[int, typer.Option(min=1, help="Of the bootstrap.")] = 1000,
    confidence: Annotated[float, typer.Option(min=0.01, max=0.999, help="Of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    checkpoint: Annotated[str, typer.Option(help="As in `score`.")] = DEFAULT_CHECKPOINT,
    device: Annotated[str | None, typer.Option(help="As in `score`.")] = None,
    progress: Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")] = None,
) -> None:
    """Compare systems on one test set: means with intervals, paired tests, where they differ most."""
    from bleurt_repro.metric.compare.compare_files import compare_files
    from bleurt_repro.metric.compare.report import comparison_text

    comparison = compare_files(
        references=references,
        candidates=candidates,
        sources=sources,
        outputs=output or [],
        scorer_options={"checkpoint": checkpoint, "device": device, "progress": progress},
        resamples=resamples,
        confidence=confidence,
        seed=seed,
    )
    typer.echo(comparison_text(comparison, show))


@app.command()
def demo(
    checkpoint: Annotated[str, typer.Option(help="As in `score`.")] = DEFAULT_CHECKPOINT,
    port: Annotated[int | None, typer.Option(help="Of this machine; default: the first free one from 7860.")] = None,
    device: Annotated[str | None, typer.Option(help="As in `score`.")] = None,
    share: Annotated[bool, typer.Option("--share", help="Make a public link through Gradio's servers.")] = False,
) -> None:
    """Open the demo in a browser: score a pair, compare two systems; nothing leaves this machine."""
    from bleurt_repro.metric.demo.serve import run_demo

    run_demo(checkpoint, port=port, device=device, share=share)


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
    from bleurt_repro.metric.convert.convert import convert as convert_checkpoint

    made = convert_checkpoint(source, destination, scores=scores, max_difference=max_difference, gelu=gelu)
    typer.echo(f"wrote {destination}: {made.architecture}, {made.max_length} tokens, {made.activation}")
    typer.echo(f"parity: {made.parity or 'not measured, for want of scores to compare with'}")


@app.command()
def register() -> None:
    """Make evaluate.load("bleurt_repro") work from any folder, offline."""
    from bleurt_repro.metric.register import register as register_metric

    path = register_metric()
    typer.echo(f'evaluate.load("bleurt_repro") now reads {path}')


app.command(context_settings=PASS_ON)(pretrain)
app.command(context_settings=PASS_ON)(finetune)
app.command()(average)
app.command()(ensemble)
app.command()(calibrate)
app.command()(card)


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
            warnings.showwarning = _show_warning
            app(args=arguments)
    except BrokenPipeError:  # the reader of a pipe has left; what it wanted it has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        sys.exit(130)
    except (TypeError, ValueError, OSError, MemoryError) as error:
        if os.environ.get("BLEURT_REPRO_DEBUG"):
            raise
        typer.echo(f"bleurt-repro: error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
