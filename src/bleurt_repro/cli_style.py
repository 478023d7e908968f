"""What all commands share: their common options, how options are read, and how help is shown.

Options are written with dashes; underscores are accepted. An option with several values takes them in a row
(`--candidates a b c`) or repeated (`--candidates a --candidates b`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import methodcaller
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from bleurt_repro.metric.bulk.ray_engine import RayEngine

# The panels of `--help` and the options in each. An option with another meaning in one command names its panel there.
PANELS = {
    "Input": "references candidates sources scores data_dir hub_dataset hub_revision language_pairs input column "
    "parallel ratings reliability test validation training results leave_out config_name given",
    "Output": "output json keep_above report system overwrite format disagreements worst by repo_id private revision "
    "create_pr dry_run requirement name max_shard_size scale",
    "Model and hardware": "checkpoint aggregate calibrated device dtype backend batch_tokens progress cache masked_lm "
    "translator pivots likelihood_pivots prefix bertscore_model entailment_model teacher",
    "Distributed work": "num_shards shard_index engine address workers",
    "Settings": "config pairs seed share method prune within year validation_ratio one_record_per_system average_duplicates "
    "min_difference training_systems training_inputs reordered turned beam_size masks_per_pass "
    "max_segments most_texts dropping_rate max_records lp weight mixed_layouts max_difference gelu check",
    "Statistics": "resamples confidence",
    "Card contents": "recipe license data_terms domain language known_language base_model dataset source title",
    "Server": "port",
}
PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options.split()}

CheckpointName = Annotated[
    str,
    typer.Option(
        help="Name of an embedded or official checkpoint, local folder, or Hub id with an optional @revision."
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="Device to compute on: cpu, cuda, cuda:1, mps, ...", show_default="the best one available"),
]
Dtype = Annotated[
    str | None,
    typer.Option(
        help="Precision: float32, bfloat16, float16, or auto (bfloat16 where it is fast).", show_default="float32"
    ),
]
Backend = Annotated[
    str,
    typer.Option(
        help="Inference backend: torch, compile (torch.compile, for many pairs on a GPU), onnx, or onnx-int8 (CPU only; "
        "faster, scores differ slightly)."
    ),
]
Aggregate = Annotated[str, typer.Option(help="How to combine the scores of several references: max or mean.")]
Cache = Annotated[
    str | None,
    typer.Option(
        help="Folder that keeps scores between runs; pairs in it are not scored again.", show_default="no cache"
    ),
]
Progress = Annotated[bool | None, typer.Option(help="Show a progress bar.", show_default="on a terminal")]
Engine = Annotated[
    str,
    typer.Option(help="Where to compute: local (this process), or ray (all cores or GPUs of a machine or a cluster)."),
]
Address = Annotated[
    str | None,
    typer.Option(
        help="Address of a Ray cluster, or auto for the one that is running.", show_default="a new Ray on this machine"
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        help="Number of Ray workers; each holds a copy of the models.", show_default="one per GPU, or one per core"
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace existing files even if bleurt-repro did not write them.")
]

# Writes the name of an option or command as help shows it.
with_dashes = methodcaller("replace", "_", "-")

# Access tokens of the Hub: a server's answer or a settings file may contain one.
TOKEN = re.compile(r"\bhf_[A-Za-z0-9_]{4,}")


def masked(text: str) -> str:
    """Return a text with the Hub's access tokens hidden."""
    return TOKEN.sub("hf_***", text)


def echo(text: str, err: bool = False) -> None:
    """Print a text with the Hub's access tokens hidden."""
    typer.echo(masked(text), err=err)


def examples(*commands: str) -> str:
    """Return example commands as the epilog of `--help`."""
    return "\n\n".join(["Examples:", *(f"$ {command}" for command in commands)])


class _Help:
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with options in panels; a switch takes no value, so no type is shown for it."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # of the command it is mixed into
            if param.param_type_name == "option" and not getattr(param, "rich_help_panel", None):
                param.rich_help_panel = PANEL_OF.get(param.name)
            if getattr(param, "is_flag", False):
                param.display_type_rich = lambda ctx: None
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Group(_Help, TyperGroup):
    """A group of commands."""


class Command(_Help, TyperCommand):
    """A command whose options with several values take all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments of a command line."""
        return super().parse_args(ctx, spread(args, self.params))


def spread(arguments: Sequence[str], params: Sequence[Any]) -> list[str]:
    """Return a command line with `--option a b` written as `--option a --option b`.

    Args:
        arguments: words of the command line.
        params: parameters of the command. If it has positional arguments, an option takes only numbers in a row, since
            any other word may be a positional argument.
    """
    repeatable = {name for param in params if getattr(param, "multiple", False) for name in param.opts}
    has_positional = any(param.param_type_name == "argument" for param in params)
    result: list[str] = []
    option = ""  # the repeatable option whose values are being read
    for i, argument in enumerate(arguments):
        if argument == "--":
            return [*result, *arguments[i:]]
        name, value, _ = argument.partition("=")
        name = f"--{with_dashes(name[2:])}" if name.startswith("--") else name
        if name in repeatable:
            option = name
        elif argument.startswith("-") and argument != "-" and not _is_number(argument):
            option = ""
        elif option and result[-1] != option and (not has_positional or _is_number(argument)):
            result.append(option)  # the second value or a later one
        result.append(name if name in repeatable and not value else argument)
    return result


def _is_number(argument: str) -> bool:
    return re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e-?\d+)?", argument) is not None


def make_engine(engine: str, address: str | None, workers: int | None) -> RayEngine | None:
    """Make the engine that --engine, --address and --workers describe; None stands for this process alone.

    Raises:
        ValueError: if they do not fit together, or Ray is not installed.
    """
    if (engine, address, workers) == ("local", None, None):
        return None
    from bleurt_repro.metric.bulk.ray_engine import RayEngine

    return RayEngine.from_options(engine, address, workers)
