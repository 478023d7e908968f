"""How the commands read their options and show their help, the same in all of them.

Options are written with dashes; underscores are accepted. An option of several values takes them after one another
(`--candidates a b c`) or one by one (`--candidates a --candidates b`).
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

# Panels of `--help`, with the options in them. An option that means something else in one command names its panel there.
PANELS = {
    "Input": "references candidates sources scores data_dir hub_dataset hub_revision language_pairs input column parallel "
    "ratings reliability test validation training results leave_out config_name given",
    "Output": "output json report system overwrite show format repo_id private revision create_pr dry_run requirement name max_shard_size",
    "Checkpoint and machine": "checkpoint aggregate calibrated interval judgements group error_free device dtype backend "
    "batch_tokens progress cache masked_lm translator prefix bertscore_model entailment_model teacher",
    "Sharing the work": "num_shards shard_index engine address workers",
    "How it is made": "config pairs seed share method within year validation_ratio one_record_per_system "
    "average_duplicates min_difference training_systems training_inputs reordered mirrored turned beam_size masks_per_pass "
    "max_segments most_texts dropping_rate max_records lp weight mixed_layouts max_difference gelu",
    "Statistics": "resamples confidence",
    "Contents of the card": "recipe license data_terms domain base_model dataset source title",
    "Server": "port",
}
PANEL_OF = {option: panel for panel, options in PANELS.items() for option in options.split()}

DEFAULT_CHECKPOINT = "bleurt-repro-mini"
CheckpointName = Annotated[
    str,
    typer.Option(help="Embedded or official name, local folder, or Hub id with optional @revision."),
]
Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1, mps, ...; default: the best there is."),
]
Dtype = Annotated[str | None, typer.Option(help="float32 (default), bfloat16 or float16.")]
Backend = Annotated[
    str,
    typer.Option(help="torch (exact), onnx, or onnx-int8 (on CPUs: faster, not exact)."),
]
Aggregate = Annotated[str, typer.Option(help="Several references: max or mean.")]
Cache = Annotated[str | None, typer.Option(help="Folder of scores of earlier runs, read and added to.")]
Progress = Annotated[bool | None, typer.Option(help="Progress bar; default: on a terminal.")]
Engine = Annotated[str, typer.Option(help="local (this process), or ray: all cores or GPUs of a machine or cluster.")]
Address = Annotated[
    str | None, typer.Option(help="Of a Ray cluster, or auto; default: a Ray of its own on this machine's cores.")
]
Workers = Annotated[int | None, typer.Option(help="Ray's processes, a model each; default: one a GPU, or a core.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what no run of bleurt-repro wrote.")]

# The name of an option or command as it is shown.
with_dashes = methodcaller("replace", "_", "-")

# Access tokens of the Hub, which a server's answer or a file of settings may hold.
TOKEN = re.compile(r"\bhf_[A-Za-z0-9_]{4,}")


def masked(text: str) -> str:
    """Hide access tokens of the Hub in a text that is printed."""
    return TOKEN.sub("hf_***", text)


def echo(text: str, err: bool = False) -> None:
    """Print a text without access tokens."""
    typer.echo(masked(text), err=err)


def examples(*commands: str) -> str:
    """Format commands for the end of `--help`."""
    return "\n\n".join(["Examples:", *(f"$ {command}" for command in commands)])


class _Help:
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help: options in panels; a switch, which takes no value, shows no type."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # of the command it is mixed into
            if param.param_type_name == "option" and not getattr(param, "rich_help_panel", None):
                param.rich_help_panel = PANEL_OF.get(param.name)
            if getattr(param, "is_flag", False):
                param.display_type_rich = lambda ctx: None
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Group(_Help, TyperGroup):
    """A group of commands."""


class Command(_Help, TyperCommand):
    """A command whose options of several values take all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of a command line."""
        return super().parse_args(ctx, spread(args, self.params))


def spread(words: Sequence[str], params: Sequence[Any]) -> list[str]:
    """Write `--option a b` as `--option a --option b`.

    Args:
        words: of the command line.
        params: of the command. Beside positional arguments only numbers are taken: other words may be arguments.
    """
    several = {name: param for param in params if getattr(param, "multiple", False) for name in param.opts}
    has_arguments = any(param.param_type_name == "argument" for param in params)
    written: list[str] = []
    option = ""
    for i, word in enumerate(words):
        if word == "--":
            return [*written, *words[i:]]
        name, value, _ = word.partition("=")
        name = f"--{with_dashes(name[2:])}" if name.startswith("--") else name
        if name in several:
            option = name
        elif word.startswith("-") and word != "-" and not _is_number(word):
            option = ""
        elif option and written[-1] != option and (not has_arguments or _is_number(word)):
            written.append(option)
        written.append(name if name in several and not value else word)
    return written


def _is_number(word: str) -> bool:
    return re.fullmatch(r"-?(\d+\.?\d*|\.\d+)(e-?\d+)?", word) is not None


def chosen_engine(engine: str, address: str | None, workers: int | None) -> RayEngine | None:
    """Return what --engine, --address and --workers ask for; None is this process alone.

    Raises:
        ValueError: if they do not fit together, or Ray is not installed.
    """
    if (engine, address, workers) == ("local", None, None):
        return None
    from bleurt_repro.metric.bulk.ray_engine import RayEngine

    return RayEngine.of(engine, address, workers)
