"""The command line, `bleurt-repro`: each command is a short function that calls the package that does the work.

The commands import what they need when they run, so that `bleurt-repro --help` answers at once. Exit codes: 0, or 2
after a usage or input error, which is one line on standard error (set BLEURT_REPRO_DEBUG=1 to see the traceback).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from types import FrameType
from typing import Annotated

import typer

from bleurt_repro.cli_data import data_app
from bleurt_repro.cli_style import (
    Address,
    Aggregate,
    Backend,
    Cache,
    CheckpointName,
    Command,
    Device,
    Dtype,
    Engine,
    Group,
    Overwrite,
    Progress,
    Workers,
    echo,
    examples,
    make_engine,
    with_dashes,
)
from bleurt_repro.cli_training import PASS_ON, agree, average, calibrate, ensemble, experiment_app, finetune, pretrain
from bleurt_repro.metric.options import DEFAULT_CHECKPOINT, ScoreOptions

NAME = "bleurt-repro"
# The first bytes of a card.
CARD_START = re.compile(rb"---\r?\n")
# The base class of usage errors: newer versions of typer have their own copy of click.
ParserError: type[Exception] = typer.BadParameter.__mro__[2]
# Modules in which errors of libraries are errors of the checkpoint.
CHECKPOINT_READERS = ("bleurt_repro.metric.loading", "bleurt_repro.metric.forward")

app = typer.Typer(
    help="BLEURT and RoBLEURT: score generated text with learned metrics, and train, evaluate and publish your own.",
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"token_normalize_func": with_dashes, "help_option_names": ["--help", "-h"]},
)
publish_app = typer.Typer(
    cls=Group, help="Publish a checkpoint, a dataset or the demo Space on the Hub.", no_args_is_help=True
)
app.add_typer(data_app, name="data")
app.add_typer(experiment_app, name="experiment")
app.add_typer(publish_app, name="publish")
command = functools.partial(app.command, cls=Command)
Sources = Annotated[
    str | None,
    typer.Option("--sources", "-s", help="File of sources in the same formats, if the checkpoint reads sources."),
]


def _print_version(requested: bool) -> None:
    if requested:
        from bleurt_repro import __version__

        typer.echo(f"bleurt-repro {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


@command(
    epilog=examples(
        "bleurt-repro score -r references.txt -c candidates.txt",
        "bleurt-repro score --pairs pairs.csv --json --output scores.json",
    )
)
def score(
    references: Annotated[
        str | None,
        typer.Option(
            "--references",
            "-r",
            help="File of references: text with one segment per line, CSV, TSV, JSONL or Parquet; '-' for stdin.",
        ),
    ] = None,
    candidates: Annotated[
        str | None, typer.Option("--candidates", "-c", help="File of candidates in the same formats.")
    ] = None,
    sources: Sources = None,
    pairs: Annotated[
        str | None,
        typer.Option(
            help="One file instead of these: JSONL, CSV, TSV or Parquet with the columns candidate, reference or "
            "references, and source; '-' for stdin.",
            rich_help_panel="Input",
        ),
    ] = None,
    checkpoint: CheckpointName = DEFAULT_CHECKPOINT,
    aggregate: Aggregate = "max",
    calibrated: Annotated[
        bool,
        typer.Option("--calibrated", help="Return percentiles of human ratings instead of raw scores."),
    ] = False,
    device: Device = None,
    dtype: Dtype = None,
    backend: Backend = "torch",
    batch_tokens: Annotated[
        int | None, typer.Option(help="Number of padded tokens per batch.", show_default="chosen for the device")
    ] = None,
    progress: Progress = None,
    cache: Cache = None,
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", help="File to write, '-' for stdout. Repeat the command to resume an interrupted run."
        ),
    ] = "-",
    json: Annotated[
        bool,
        typer.Option(
            "--json", help="Write one JSON object with scores, mean score, its interval, signature and warnings."
        ),
    ] = False,
    system: Annotated[
        str | None,
        typer.Option(help="Name to write before each score, separated by a tab, as mt-metrics-eval reads them."),
    ] = None,
    keep_above: Annotated[
        float | None,
        typer.Option(help="Write the rows of --pairs with at least this score, as they are, instead of scores."),
    ] = None,
    overwrite: Overwrite = False,
    num_shards: Annotated[
        str | None,
        typer.Option(
            help="Number of shares of the input, one of which is scored; auto: torchrun's processes.",
            show_default="1",
        ),
    ] = None,
    shard_index: Annotated[
        int | None, typer.Option(help="Index of the share to score, counted from 0.", show_default="0")
    ] = None,
    engine: Engine = "local",
    address: Address = None,
    workers: Workers = None,
) -> None:
    """Score candidates against references; write one score per line, and their mean with its interval to stderr."""
    from bleurt_repro.metric.bulk.scoring import score_files

    summary = score_files(
        ScoreOptions(checkpoint, device, dtype, batch_tokens, progress, backend, cache, aggregate, calibrated),
        engine=make_engine(engine, address, workers),
        references=references,
        candidates=candidates,
        sources=sources,
        pairs=pairs,
        output=output,
        as_json=json,
        num_shards=num_shards,
        shard_index=shard_index,
        system=system,
        overwrite=overwrite,
        keep_above=keep_above,
    )
    echo(summary, err=True)


@command(
    epilog=examples(
        "bleurt-repro compare -r references.txt -c system_a.txt system_b.txt",
        "bleurt-repro compare -r references.txt -c a.txt b.txt c.txt --output comparison.json segments.csv table.tex",
        "bleurt-repro compare -r references.csv -c a.txt b.txt --by domain",
        "bleurt-repro compare -r references.txt -c a.txt b.txt --worst 20 --system b --format csv",
    )
)
def compare(
    references: Annotated[
        list[str],
        typer.Option(
            "--references",
            "-r",
            help="One or more files of references: text with one segment per line, CSV, TSV, JSONL or Parquet. "
            "Each file holds one reference per segment.",
        ),
    ],
    candidates: Annotated[
        list[str],
        typer.Option("--candidates", "-c", help="Files of candidates in the same formats, one file per system."),
    ],
    sources: Sources = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output",
            "-o",
            help="One or more files to write: .json (all results), .csv (one row per segment), .md or .tex (the table).",
        ),
    ] = None,
    overwrite: Overwrite = False,
    format: Annotated[
        str,
        typer.Option(
            help="What to print: text; the table of the systems as markdown, latex or csv; with the options below, csv prints "
            "their segments or groups."
        ),
    ] = "text",
    disagreements: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Number of segments to print, those where the systems differ most.",
            show_default="5 without --worst and --by",
        ),
    ] = None,
    worst: Annotated[
        int | None, typer.Option(min=1, help="Number of segments to print, those with the lowest scores of --system.")
    ] = None,
    system: Annotated[
        str | None, typer.Option(help="Name of the system of --worst, which is that of its file.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(help="Print mean scores per group of segments: length, or a column of the references' table."),
    ] = None,
    resamples: Annotated[int, typer.Option(min=1, max=1_000_000, help="Number of bootstrap resamples.")] = 1000,
    confidence: Annotated[float, typer.Option(min=0.01, max=0.999, help="Confidence level of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the resampling.", rich_help_panel="Statistics")] = 0,
    checkpoint: CheckpointName = DEFAULT_CHECKPOINT,
    aggregate: Aggregate = "max",
    device: Device = None,
    dtype: Dtype = None,
    backend: Backend = "torch",
    cache: Cache = None,
    progress: Progress = None,
) -> None:
    """Compare systems on one test set: mean scores with intervals, paired tests, and the segments to read."""
    from bleurt_repro.metric.compare.compare_files import compare_files

    report = compare_files(
        ScoreOptions(checkpoint, device, dtype, None, progress, backend, cache, aggregate),
        references=references,
        candidates=candidates,
        sources=sources,
        outputs=output or [],
        overwrite=overwrite,
        resamples=resamples,
        confidence=confidence,
        seed=seed,
        output_format=format,
        disagreements=disagreements,
        worst=worst,
        system=system,
        by=by,
    )
    echo(report.rstrip("\n"))


@command(
    epilog=examples(
        "bleurt-repro choose -c samples.jsonl -o chosen.txt",
        "bleurt-repro choose -c samples.jsonl -r references.txt -o chosen.jsonl --json",
    )
)
def choose(
    candidates: Annotated[
        str,
        typer.Option(
            "--candidates", "-c", help="File with a list of strings, candidates, per segment: JSONL or Parquet."
        ),
    ],
    references: Annotated[
        str | None,
        typer.Option(
            "--references",
            "-r",
            help="File of references: text with one segment per line, CSV, TSV, JSONL or Parquet.",
            show_default="the other candidates of the segment (MBR)",
        ),
    ] = None,
    sources: Sources = None,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Leave out early what is unlikely to win: fewer pairs, close choices may differ."
        ),
    ] = False,
    output: Annotated[str, typer.Option("--output", "-o", help="File to write, '-' for stdout.")] = "-",
    json: Annotated[
        bool,
        typer.Option("--json", help="Write one JSON object per segment with index, candidate, scores and pairs."),
    ] = False,
    overwrite: Overwrite = False,
    checkpoint: CheckpointName = DEFAULT_CHECKPOINT,
    aggregate: Aggregate = "max",
    device: Device = None,
    dtype: Dtype = None,
    backend: Backend = "torch",
    cache: Cache = None,
    progress: Progress = None,
) -> None:
    """Choose the best of several candidates per segment: against references, or by minimum Bayes risk (MBR)."""
    from bleurt_repro.metric.choose import choose_files

    summary = choose_files(
        ScoreOptions(checkpoint, device, dtype, None, progress, backend, cache, aggregate),
        candidates=candidates,
        references=references,
        sources=sources,
        output=output,
        as_json=json,
        prune=prune,
        overwrite=overwrite,
    )
    echo(summary, err=True)


command(
    epilog=examples(
        "bleurt-repro agree --ratings ratings.csv",
        "bleurt-repro agree --ratings ratings.csv --checkpoint ./my-metric",
    )
)(agree)


@command(epilog=examples("bleurt-repro demo", "bleurt-repro demo --port 8080 --device cpu"))
def demo(
    checkpoint: CheckpointName = DEFAULT_CHECKPOINT,
    port: Annotated[
        int | None,
        typer.Option(min=1, max=65535, help="Port on this machine.", show_default="the first free one from 7860"),
    ] = None,
    device: Device = None,
    share: Annotated[
        bool, typer.Option("--share", help="Create a public link through Gradio's servers.", rich_help_panel="Server")
    ] = False,
) -> None:
    """Start the demo, a page in the browser that scores texts and compares systems; no text leaves this machine."""
    from bleurt_repro.metric.demo.serve import run_demo

    run_demo(checkpoint, port=port, device=device, share=share)


@command(
    epilog=examples(
        "bleurt-repro convert BLEURT-20.zip bleurt-20",
        "bleurt-repro convert BLEURT-20-D3 bleurt-20-d3 --scores scores.jsonl --max-difference 1e-4",
        "bleurt-repro convert --check BLEURT-20",
    )
)
def convert(
    source: Annotated[
        str,
        typer.Argument(help="Official BLEURT checkpoint (folder, zip or name), or a bleurt-pytorch folder or Hub id."),
    ],
    destination: Annotated[str | None, typer.Argument(help="Folder to write; it must not exist.")] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Folder to write, instead of DESTINATION.")
    ] = None,
    scores: Annotated[
        str | None,
        typer.Option(
            help="JSONL file with reference, candidate and score, to compare scores with.",
            show_default="scores.jsonl of the source",
        ),
    ] = None,
    max_difference: Annotated[
        float | None, typer.Option(help="Largest difference from those scores to allow.", show_default="2e-5")
    ] = None,
    gelu: Annotated[
        str, typer.Option(help="GELU variant: tanh, erf, or auto (as the source says, or tanh).")
    ] = "auto",
    check: Annotated[
        bool,
        typer.Option("--check", help="Compare with published scores of BLEURT-20 or bleurt-base-128; write nothing."),
    ] = False,
) -> None:
    """Convert an official BLEURT checkpoint to a folder that transformers opens, with the same scores."""
    from bleurt_repro.metric.convert.convert import check_published
    from bleurt_repro.metric.convert.convert import convert as convert_checkpoint

    if check:
        if destination is not None or output is not None or scores is not None or max_difference is not None:
            raise ValueError("--check compares with published scores and writes nothing: give only SOURCE beside it")
        echo(f"{source}: {check_published(source)}")
        return
    if (destination is None) == (output is None):
        raise ValueError(
            "expected one folder to write: bleurt-repro convert SOURCE DESTINATION, or --output DESTINATION"
        )
    folder = str(destination or output)
    result = convert_checkpoint(source, folder, scores=scores, max_difference=max_difference, gelu=gelu)
    echo(f"wrote {folder}: {result.architecture}, {result.max_length} tokens, {result.activation}")
    echo(f"parity: {result.parity or 'not measured: give --scores FILE to compare with official scores'}")


@command(epilog=examples("bleurt-repro register", "bleurt-repro register --as bleurt"))
def register(
    name: Annotated[
        str, typer.Option("--as", help="Name to load the metric by; bleurt replaces evaluate's own module.")
    ] = "bleurt_repro",
) -> None:
    """Make evaluate.load("bleurt_repro") work in any folder and offline."""
    from bleurt_repro.metric.register import register as register_metric

    path = register_metric(name)
    echo(f'evaluate.load("{name}") now reads {path}')


RepoId = Annotated[
    str, typer.Option("--repo-id", help="Repository on the Hub, ORG/NAME; created if it does not exist.")
]
Private = Annotated[bool, typer.Option("--private", help="Create a private repository.")]
Revision = Annotated[str | None, typer.Option(help="Branch; created if it does not exist.", show_default="main")]
CreatePr = Annotated[bool, typer.Option("--create-pr", help="Open a pull request instead of committing.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check the files and list them; nothing is sent to the Hub.")]
Source = Annotated[
    str | None,
    typer.Option(
        help="Address that pip installs the package from, such as git+https://github.com/ORG/NAME, for the card.",
        show_default="the variable BLEURT_REPRO_SOURCE",
    ),
]


@publish_app.command(
    "model",
    cls=Command,
    epilog=examples(
        "bleurt-repro publish model my-checkpoint --repo-id ORG/NAME --dry-run",
        "bleurt-repro publish model my-checkpoint --repo-id ORG/NAME --private",
    ),
)
def publish_model(
    path: Annotated[str, typer.Argument(help="Folder with the checkpoint.")],
    repo_id: RepoId,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
    source: Source = None,
) -> None:
    """Publish a checkpoint and its card."""
    _publish("model", path, repo_id, private, revision, create_pr, dry_run, source=source)


@publish_app.command(
    "dataset",
    cls=Command,
    epilog=examples(
        "bleurt-repro publish dataset ratings --repo-id ORG/NAME --dry-run",
        "bleurt-repro publish dataset pairs --repo-id ORG/NAME --create-pr",
    ),
)
def publish_dataset(
    path: Annotated[str, typer.Argument(help="Folder written by `bleurt-repro data ...`.")],
    repo_id: RepoId,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
) -> None:
    """Publish ratings or synthetic pairs and their card."""
    _publish("dataset", path, repo_id, private, revision, create_pr, dry_run)


@publish_app.command(
    "space",
    cls=Command,
    epilog=examples(
        "bleurt-repro publish space --repo-id ORG/NAME --dry-run",
        "bleurt-repro publish space --repo-id ORG/NAME --private",
    ),
)
def publish_space(
    repo_id: RepoId,
    path: Annotated[
        str | None, typer.Argument(help="Folder with the Space.", show_default="the Space in the package")
    ] = None,
    requirement: Annotated[
        str | None,
        typer.Option(
            help="Line of requirements.txt that installs the package.", show_default="a wheel published with the Space"
        ),
    ] = None,
    private: Private = False,
    revision: Revision = None,
    create_pr: CreatePr = False,
    dry_run: DryRun = False,
) -> None:
    """Publish the metric and its demo as a Space."""
    _publish("space", path, repo_id, private, revision, create_pr, dry_run, requirement)


def _publish(
    repo_type: str,
    path: str | None,
    repo_id: str,
    private: bool,
    revision: str | None,
    create_pr: bool,
    dry_run: bool,
    requirement: str | None = None,
    source: str | None = None,
) -> None:
    from bleurt_repro.hub_cards.contents import Target
    from bleurt_repro.hub_cards.publish import publish_folder

    target = Target(repo_type, repo_id, private=private, revision=revision, create_pr=create_pr)
    echo(publish_folder(target, path, dry_run=dry_run, requirement=requirement, source=source))


@command(
    epilog=examples(
        "bleurt-repro card my-checkpoint --training my-checkpoint/results.json",
        "bleurt-repro card ratings --title 'My ratings' --license cc-by-4.0",
    )
)
def card(
    folder: Annotated[str, typer.Argument(help="Folder with a checkpoint, a dataset or a Space.")],
    training: Annotated[list[str] | None, typer.Option(help="One or more results.json of training runs.")] = None,
    results: Annotated[
        list[str] | None,
        typer.Option("--results", "--agreement", help="One or more results.json of experiments with the checkpoint."),
    ] = None,
    repo_id: Annotated[str | None, typer.Option(help="Repository where it will be published, ORG/NAME.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Commands that made it: a sentence or a link.")] = None,
    license: Annotated[str | None, typer.Option(help="Licence by the Hub's name for it, such as apache-2.0.")] = None,
    data_terms: Annotated[str | None, typer.Option(help="Sentence on the terms of use of the data.")] = None,
    domain: Annotated[
        str | None, typer.Option(help="Sentence on the languages and kinds of text the checkpoint is for.")
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            help="Languages of the rated candidates that it was trained on: codes with spaces between them.",
            show_default="en",
        ),
    ] = None,
    known_language: Annotated[
        str | None, typer.Option(help="Further languages that its encoder was trained on, in the same way.")
    ] = None,
    base_model: Annotated[str | None, typer.Option(help="Hub id of the encoder that training started from.")] = None,
    dataset: Annotated[list[str] | None, typer.Option(help="One or more Hub ids of training data.")] = None,
    source: Source = None,
    title: Annotated[
        str | None, typer.Option(help="Title of a dataset's card.", show_default="the folder's name")
    ] = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="File to write.", show_default="README.md in the folder")
    ] = None,
) -> None:
    """Write the card of a checkpoint from its results files, or of a dataset from its files."""
    from pathlib import Path

    from bleurt_repro.hub_cards.publish import draw_card
    from bleurt_repro.metric.files.writing import validate_output, write_text

    text = draw_card(
        folder,
        training=training or [],
        results=results or [],
        repo_id=repo_id,
        recipe=recipe,
        license=license,
        data_terms=data_terms,
        domain=domain,
        language=(language or "").split(),
        known_language=(known_language or "").split(),
        base_model=base_model,
        datasets=dataset or [],
        source=source,
        title=title,
    )
    inputs = [*(training or []), *(results or [])]
    write_text(validate_output(output, inputs, CARD_START) if output else Path(folder) / "README.md", text)


app.command(
    cls=Command,
    context_settings=PASS_ON,
    epilog=examples("bleurt-repro pretrain --config pretrain_mini --train-file pairs --output checkpoint"),
)(pretrain)
app.command(cls=Command, context_settings=PASS_ON)(finetune)
command(
    epilog=examples(
        "bleurt-repro average run-1 run-2 --output averaged",
        "bleurt-repro average run-1 run-2 --weight 2 1 --output averaged",
    )
)(average)
command(
    epilog=examples(
        "bleurt-repro ensemble run-1 run-2 --validation ratings.jsonl --output both",
        "bleurt-repro ensemble run-1 run-2 --validation ratings.jsonl --weight 0.7 0.3 --output both",
    )
)(ensemble)
command(
    epilog=examples(
        "bleurt-repro calibrate my-checkpoint --ratings held-out.jsonl",
        "bleurt-repro calibrate my-checkpoint --reliability held-out.jsonl --report reliability.json",
    )
)(calibrate)


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    if not issubclass(category, DeprecationWarning | FutureWarning):
        echo(f"{NAME}: warning: {message}", err=True)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; usage and input errors end in one line and exit code 2.

    Args:
        arguments: words after the program's name; those of the process by default.
    """
    _replace_closed_streams()
    try:
        with warnings.catch_warnings(), _exit_on_signals():
            warnings.showwarning = _show_warning
            code = app(args=arguments, prog_name=NAME, standalone_mode=False)
            sys.stdout.flush()  # a full disk is an error of this command, not of the interpreter's exit
        sys.exit(code if isinstance(code, int) else 0)
    except BrokenPipeError:  # the reader of a pipe has left and needs no more
        _discard_output()
        sys.exit(0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    except ParserError as error:
        _fail_usage(error)
    except SystemExit:
        raise
    except BaseException as error:  # a panic of a Rust library is not an Exception
        message = _input_error(error)
        if message is None or os.environ.get("BLEURT_REPRO_DEBUG"):
            raise
        _fail(message)


def _input_error(error: BaseException) -> str | None:
    """Return the message of an error in the input, the system or a checkpoint; None for a mistake in this package."""
    message = str(error) or type(error).__name__
    if isinstance(error, OSError) and error.errno == errno.EBADF:
        return "standard input or output is closed: name files instead"
    if isinstance(error, RuntimeError) and "home directory" in message:  # what pathlib raises for ~ without HOME
        return f"{message} Set HOME, or BLEURT_REPRO_CACHE."
    if isinstance(error, TypeError | ValueError | OSError | MemoryError):
        return message
    # Libraries raise errors of any type for a damaged checkpoint or tokenizer. An error counts as theirs if it has a
    # type of theirs, or was raised outside this package, or has one of the two types that compiled libraries raise in
    # our frames.
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    reads_checkpoint = any(name.startswith(CHECKPOINT_READERS) for name in modules)
    has_library_type = type(error) in (Exception, RuntimeError) or type(error).__module__ != "builtins"
    if reads_checkpoint and (has_library_type or not modules[-1].startswith("bleurt_repro.")):
        return f"the checkpoint or its tokenizer cannot be used: {type(error).__name__}: {message}"
    return None


def _replace_closed_streams() -> None:
    """Open standard streams that are closed, so that no file that is opened later takes their numbers.

    Standard input and output then raise an error when they are used; what is written to standard error is lost.
    """
    modes = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, mode) in enumerate(modes.items()):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.dup2(os.open(os.devnull, mode), number)
                setattr(sys, name, open(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False))


def _discard_output() -> None:
    """Discard what standard output has not written yet, which would fail again when the interpreter exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@contextlib.contextmanager
def _exit_on_signals() -> Iterator[None]:
    """Make SIGTERM, which schedulers and `kill` send, clean up as Ctrl-C does; the exit codes are 143 and 130.

    During the import of a library both signals end the process at once: nothing is half-written then, and compiled
    libraries abort with their own message if an exception passes through them.
    """
    if threading.current_thread() is not threading.main_thread():  # only there may signals be handled
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        if _is_importing(frame):
            os._exit(128 + number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    handlers = {signal.SIGTERM: signal.signal(signal.SIGTERM, end)}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a background job ignores it
        handlers[signal.SIGINT] = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler or signal.SIG_DFL)


def _is_importing(frame: FrameType | None) -> bool:
    """Return whether a frame, or one that called it, imports a module."""
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            return True
        frame = frame.f_back
    return False


def _fail_usage(error: Exception) -> None:
    """Print a usage error and the command whose help lists the options; without arguments, print the help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        sys.exit(0)
    context = getattr(error, "ctx", None)
    message = error.format_message()  # type: ignore[attr-defined]
    _fail(f"{message} See {context.command_path if context else NAME} --help.")


def _fail(message: str) -> None:
    """Print an error in one line, and exit with code 2."""
    with contextlib.suppress(OSError):
        echo(f"{NAME}: error: {' '.join(message.split())}", err=True)
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()
    sys.exit(2)


if __name__ == "__main__":
    main()
