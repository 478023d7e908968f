"""Read a script's settings: dataclasses of defaults, a YAML file over them, `--key value` options over both.

    parse_config((DataArguments, TrainingArguments), ["--config", "mini.yaml", "--learning-rate", "3e-5"])

A key that no dataclass has is an error, wherever it stands; so is a key given twice in a file.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.resources
import json
import os
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn, cast

from transformers import HfArgumentParser

from bleurt_repro.metric.files.records import read_plain_yaml

# Options of all training runs that `--help` shows; `--help-all` shows all. Where the Trainer's own text is missing, long or
# not what happens here, this one is shown.
COMMON = {
    "help": None,
    "help_all": None,
    "config": None,
    "output_dir": None,
    "overwrite": None,
    "resume": None,
    "learning_rate": "Of the optimizer, AdamW.",
    "max_steps": None,
    "num_train_epochs": None,
    "global_batch_size": None,
    "per_device_train_batch_size": "Examples a process takes at once; lower it if memory runs out.",
    "eval_steps": "Steps between two validations; --save-steps must be a multiple of it.",
    "save_steps": "Steps between two checkpoints to resume from.",
    "early_stopping": None,
    "seed": "Of the order of the data, of dropout and of new weights.",
    "bf16": "Compute in bfloat16: faster on recent GPUs.",
    "push_to_hub": "Publish the result on the Hub; needs --hub-model-id.",
    "hub_model_id": "Where to publish it: ORG/NAME.",
}
# Options of single scripts that few people use.
RARE = {"metric_for_best_model", "greater_is_better", "export_dtype", "ranking_clip"}


class _Parser(HfArgumentParser):
    """Raises instead of printing hundreds of options and leaving."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the description, and shows the defaults and one spelling of each option."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.required:
            return f"{action.help} (required)"
        return action.help if action.default in (None, []) else super()._get_help_string(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        shown = [name for name in action.option_strings if "_" not in name]
        if action.const is True and action.nargs == "?":  # a switch, which may but need not have a value
            return f"{shown[0]}, --no-{shown[0][2:]}" if action.default is True else shown[0]
        every, action.option_strings = action.option_strings, shown[:1] if "--output" in shown else shown
        text = super()._format_action_invocation(action)
        action.option_strings = every
        return text


def parse_config(dataclass_types: Sequence[type], argv: Sequence[str]) -> tuple[Any, ...]:
    """Read settings from the defaults of dataclasses, `--config FILE` and further options, the later the stronger.

    Args:
        dataclass_types: dataclasses whose fields are the settings; no two share a field. The module docstring of the
            first is what `--help` begins with.
        argv: the words of the command line. FILE is a YAML file, or the name of one that comes with the package.

    Returns:
        an instance of each dataclass.

    Raises:
        FileNotFoundError: if there is no such configuration.
        ValueError: for an unknown key (the nearest known one is named), a value of the wrong type, a required key
            that is missing, or a file that is not a YAML mapping.
    """
    parser = _build_parser(dataclass_types)
    if {"--help", "-h"} & set(argv):
        _keep_common_help(parser, dataclass_types)
    lists = {action.dest for action in parser._actions if action.nargs in ("+", "*")}
    config, options = _take_config(merge_repeated(argv, lists))
    _check_options(options, parser)
    return _parse(dataclass_types, parser, config, options)


def load_config(
    dataclass_types: Sequence[type], config: str | None = None, settings: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """Read settings from the defaults of dataclasses, a configuration and a mapping, the later the stronger.

        load_config((RatingArguments, FinetuningArguments), "finetune_mini", {"model": "encoder", "output_dir": "out"})

    Args:
        dataclass_types: as in `parse_config`.
        config: a YAML file, or the name of one that comes with the package.
        settings: values by name, as a YAML file would hold them.

    Returns:
        an instance of each dataclass.

    Raises:
        FileNotFoundError, ValueError: as `parse_config`.
    """
    parser, settings = _build_parser(dataclass_types), settings or {}
    words = [word for key, value in settings.items() for word in _as_options(key, value)]
    _check_options([f"--{key}" for key in settings], parser)
    return _parse(dataclass_types, parser, config, words, {k: v for k, v in settings.items() if _is_empty(v)})


def _parse(
    dataclass_types: Sequence[type],
    parser: _Parser,
    config: str | None,
    options: Sequence[str],
    emptied: Mapping[str, Any] | None = None,
) -> tuple[Any, ...]:
    """Read a configuration, and options over it.

    Args:
        dataclass_types: what to fill.
        parser: made for them.
        config: a YAML file or its name, if there is one.
        options: words of a command line.
        emptied: settings over those of the configuration that are None or [], which no option can write.
    """
    settings = read_yaml(find_config(config), _keys(parser)) if config else {}
    settings |= emptied or {}
    given = {word.partition("=")[0].lstrip("-").replace("-", "_") for word in options if word.startswith("--")}
    if "num_train_epochs" in given and "max_steps" not in given and parser.get_default("max_steps") is None:
        settings.pop("max_steps", None)  # steps of the file would count in place of the passes that were asked for
    for key in [key for key, value in settings.items() if _is_empty(value)]:
        parser.set_defaults(**{key: settings.pop(key)})
    words = [word for key, value in settings.items() for word in _as_options(key, value)]
    try:
        parsed = parser.parse_args_into_dataclasses(
            [*words, *options], return_remaining_strings=True, look_for_args_file=False
        )
    except ValueError as error:
        raise ValueError(_explain(str(error), config, settings, options)) from error
    if parsed[-1]:
        raise ValueError(f"unexpected {parsed[-1][0]!r}: settings are given as --key value")
    return parsed[: len(dataclass_types)]


def run_script(main: Callable[[], None]) -> None:
    """Run a script; input errors end in one line and exit code 2, as they do on the package's command line.

    With BLEURT_REPRO_DEBUG=1 in the environment they end in a traceback.
    """
    try:
        main()
    except (TypeError, ValueError, OSError) as error:
        if os.environ.get("BLEURT_REPRO_DEBUG"):
            raise
        sys.stderr.write(f"{Path(sys.argv[0]).stem}: error: {' '.join(str(error).split())}\n")
        sys.exit(2)


def run_as_command(name: str) -> None:
    """Run `python -m MODULE ...` as `bleurt-repro NAME ...`: the same card, messages and exit codes.

    The command line stands above training and imports it; so it is run by name here, and not imported.

    Args:
        name: of the command.
    """
    sys.argv = ["bleurt-repro", name, *sys.argv[1:]]
    runpy.run_module("bleurt_repro.cli", run_name="__main__")


def find_config(name: str) -> Path:
    """Find a configuration: a file, or one that comes with the package, with or without `.yaml`.

    Raises:
        FileNotFoundError: if it is neither.
    """
    if Path(name).is_file():
        return Path(name)
    shipped = Path(str(importlib.resources.files("bleurt_repro.training") / "configs"))
    for candidate in (shipped / name, shipped / f"{name}.yaml"):
        if candidate.parent == shipped and candidate.is_file():
            return candidate
    names = ", ".join(sorted(path.name for path in shipped.glob("*.yaml")))
    raise FileNotFoundError(f"no configuration {name}: give the path of a YAML file, or one that is here: {names}")


def read_yaml(path: Path, known: Sequence[str]) -> dict[str, Any]:
    """Read a flat YAML mapping.

    Args:
        path: the file.
        known: the keys it may have.

    Raises:
        ValueError: if it is no mapping, or has a key twice or one that is not known; file and line are named.
    """
    root, values = read_plain_yaml(path)
    if root is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of settings such as 'seed: 1', found a {type(values).__name__}")
    seen: dict[str, int] = {}
    for node, _ in root.value:
        key, line = str(node.value), node.start_mark.line + 1
        if key not in known:
            raise ValueError(f"{path}, line {line}: unknown setting {key!r}{_nearest(key, known)}")
        if key in seen:
            raise ValueError(f"{path}, line {line}: {key!r} stands already in line {seen[key]}; keep one of them")
        seen[key] = line
    return values


def _build_parser(dataclass_types: Sequence[type]) -> _Parser:
    description = sys.modules[dataclass_types[0].__module__].__doc__
    parser = _Parser(
        cast("Any", dataclass_types),
        prog=_program(),
        usage="%(prog)s [--config FILE] [--key value ...]",
        description=description,
        allow_abbrev=False,
        formatter_class=_HelpFormatter,
    )
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings; options override it.")
    parser.add_argument("--help-all", action="help", help="Show all options, those of the Trainer too.")
    _describe(parser, dataclass_types)
    if folder := parser._option_string_actions.get("--output_dir"):
        parser._option_string_actions["--output"] = folder  # as the other commands name it
        folder.option_strings = ["--output", *folder.option_strings]
    return parser


def _program() -> str | None:
    """Return the command as it was called on the package's command line; None where a script was run."""
    try:
        from typer._click.globals import get_current_context
    except ImportError:  # typer before it had a copy of click
        from click import get_current_context  # type: ignore[no-redef]
    context = get_current_context(silent=True)
    return context.command_path if context else None


def _describe(parser: argparse.ArgumentParser, dataclass_types: Sequence[type]) -> None:
    """Name what each option takes, and describe those that their dataclass does not, by `COMMON`."""
    own = _own_fields(dataclass_types)
    for action in parser._actions:
        if action.nargs == 0 and action.option_strings[0].startswith("--no_"):
            action.help = argparse.SUPPRESS  # it is shown beside the switch that it turns off
        elif action.dest not in own or not action.help:
            action.help = COMMON.get(action.dest) or action.help
        if action.nargs != 0 and not action.choices and not action.metavar:
            action.metavar = {int: "INTEGER", float: "FLOAT"}.get(cast("Any", action.type), "TEXT")


def _own_fields(dataclass_types: Sequence[type]) -> set[str]:
    """Return the fields that the dataclasses define themselves, without those of their parents."""
    return {name for kind in dataclass_types for name in vars(kind).get("__annotations__", {})}


def _keep_common_help(parser: argparse.ArgumentParser, dataclass_types: Sequence[type]) -> None:
    """Hide the options that few people use: `RARE`, and those of the Trainer but for `COMMON`."""
    own = _own_fields(dataclass_types)
    for action in parser._actions:
        if action.dest not in (own | set(COMMON)) - RARE:
            action.help = argparse.SUPPRESS


def merge_repeated(words: Sequence[str], lists: set[str]) -> list[str]:
    """Join the values of options that occur several times.

    Args:
        words: of the command line.
        lists: names of the options that take several values.
    """
    others: list[str] = []
    values: dict[str, list[str]] = {}
    place = others
    for word in words:
        key, sign, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            place.append(word)
        elif (name := key.replace("-", "_")) in lists:
            place = values.setdefault(name, [])
            place += [value] if sign else []
        else:
            place = others
            place.append(word)
    return [*others, *(word for name, found in values.items() for word in (f"--{name}", *found))]


def _take_config(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Separate `--config FILE` from the other words."""
    reader = _Parser(add_help=False, allow_abbrev=False)
    reader.add_argument("--config")
    try:
        found, options = reader.parse_known_args(list(argv))
    except ValueError:
        raise ValueError("--config needs the name of a YAML file") from None
    return found.config, options


def _keys(parser: argparse.ArgumentParser) -> list[str]:
    return [action.dest for action in parser._actions if action.dest != "help"]


def _is_empty(value: Any) -> bool:
    """Return whether a value cannot be written as an option."""
    return value is None or value == []


def _as_options(key: str, value: Any) -> list[str]:
    """Write a YAML value as the words of a command line, so that both are checked alike."""
    if _is_empty(value):
        return []
    if isinstance(value, list):
        return [f"--{key}", *map(str, value)]
    if isinstance(value, dict):
        return [f"--{key}={json.dumps(value)}"]
    return [f"--{key}={value}"]


def _explain(message: str, config: str | None, settings: dict[str, Any], options: Sequence[str]) -> str:
    """Return the message with the place of the wrong value, or with how to give what is missing."""
    if "arguments are required" in message:
        missing = [word.split("/")[0] for word in message.split(": ", 1)[1].split(", ")]
        return f"missing {', '.join(missing)}: give each as an option, or as a setting in a file named by --config"
    given = {word.split("=")[0].lstrip("-").replace("-", "_") for word in options if word.startswith("--")}
    if not message.startswith("argument --"):
        return message
    names, problem = message.removeprefix("argument --").split(": ", 1)
    key = names.split("/")[0]
    return f"{config}: {key}: {problem}" if key in settings and key not in given else f"--{key}: {problem}"


def _check_options(options: Sequence[str], parser: argparse.ArgumentParser) -> None:
    for word in options:
        option = word.split("=")[0]
        if option.startswith("--") and option not in parser._option_string_actions:
            raise ValueError(f"unknown option {option}{_nearest(option.lstrip('-'), _keys(parser), '--')}")


def _nearest(name: str, known: Sequence[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name.replace("-", "_"), sorted(set(known)), n=1, cutoff=0.5)
    return f"; did you mean {prefix}{near[0]}?" if near else "; --help lists what there is"
