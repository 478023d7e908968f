"""How the commands read their options and show their help, the same in all of them.

Options are written with dashes; underscores are accepted. An option of several values takes them after one another
(`--candidates a b c`) or one by one (`--candidates a --candidates b`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from operator import methodcaller
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

# Panels of `--help`.
INPUT, OUTPUT, CHECKPOINT, SHARING = "Input", "Output", "Checkpoint and machine", "Sharing the work"

DEFAULT_CHECKPOINT = "bleurt-repro-mini"
CheckpointName = Annotated[
    str,
    typer.Option(
        help="Embedded or official name, local folder, or Hub id with optional @revision.", rich_help_panel=CHECKPOINT
    ),
]
Device = Annotated[
    str | None,
    typer.Option(help="cpu, cuda, cuda:1, mps, ...; default: the best there is.", rich_help_panel=CHECKPOINT),
]
Dtype = Annotated[str | None, typer.Option(help="float32 (default), bfloat16 or float16.", rich_help_panel=CHECKPOINT)]
Backend = Annotated[
    str,
    typer.Option(help="torch (exact), onnx, or onnx-int8 (on CPUs: faster, not exact).", rich_help_panel=CHECKPOINT),
]
Aggregate = Annotated[str, typer.Option(help="Several references: max or mean.", rich_help_panel=CHECKPOINT)]
Cache = Annotated[
    str | None, typer.Option(help="Folder of scores of earlier runs, read and added to.", rich_help_panel=CHECKPOINT)
]
Progress = Annotated[
    bool | None, typer.Option(help="Progress bar; default: on a terminal.", rich_help_panel=CHECKPOINT)
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what no run of bleurt-repro wrote.", rich_help_panel=OUTPUT)
]

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


class _NoTypeOfSwitches:
    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help, in which a switch, which takes no value, shows no type."""
        for param in self.get_params(ctx):  # type: ignore[attr-defined]  # of the command it is mixed into
            if getattr(param, "is_flag", False):
                param.display_type_rich = lambda ctx: None
        super().format_help(ctx, formatter)  # type: ignore[misc]


class Group(_NoTypeOfSwitches, TyperGroup):
    """A group of commands."""


class Command(_NoTypeOfSwitches, TyperCommand):
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
