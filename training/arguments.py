"""Read the settings of a run: defaults of dataclasses, a YAML file over them, and `--key value` options over both.

    parse_config((DataArguments, TrainingArguments), ["--config", "mini.yaml", "--learning-rate", "3e-5"])

A key that no dataclass has is an error, wherever it comes from; so is a key that a file holds twice.
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

# Options of all training runs that `--help` shows; `--help-all` shows all. Where the Trainer has no text for an option, a long
# one, or one that does not describe what happens here, the text of this table is shown.
COMMON = {
    "help": None,
    "help_all": None,
    "config": None,
    "output_dir": None,
    "overwrite": None,
    "resume": None,
    "keep_checkpoints": None,
    "learning_rate": "Learning rate of AdamW.",
    "max_steps": None,
    "num_train_epochs": None,
    "global_batch_size": None,
    "per_device_train_batch_size": None,
    "eval_steps": "Number of steps between two validations.",
    "save_steps": "Number of steps between two checkpoints; a multiple of --eval-steps.",
    "early_stopping": None,
    "seed": "Seed of the order of the data, of dropout and of new weights.",
    "bf16": "Compute in bfloat16, which is faster on recent GPUs.",
    "push_to_hub": "Publish the result on the Hub; needs --hub-model-id.",
    "hub_model_id": "Repository on the Hub to publish to, as ORG/NAME.",
}
# Options of single commands that few people use.
RARE = {"metric_for_best_model", "greater_is_better", "export_dtype", "ranking_clip", "gradient_accumulation_steps"}


class _StoreAction(argparse._StoreAction):
    """Stores the value of an option; the values of a list option that occurs several times are joined."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        earlier = getattr(namespace, self.dest)
        is_repeated = self.nargs in ("+", "*") and earlier is not self.default
        setattr(namespace, self.dest, [*earlier, *values] if is_repeated else values)


class _Parser(HfArgumentParser):
    """Raises ValueError where argparse prints all options and exits."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message)

    def _add_dataclass_arguments(self, dtype: Any) -> None:
        self.register("action", None, _StoreAction)  # of all options without another action
        super()._add_dataclass_arguments(dtype)


class _HelpFormatter(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Keeps the line breaks of the description, and shows the defaults and one spelling of each option."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        if action.required:
            return f"{action.help} (required)"
        return action.help if action.default in (None, []) else super()._get_help_string(action)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        spellings = action.option_strings
        dashed = [name for name in spellings if "_" not in name]
        if action.const is True and action.nargs == "?":  # a switch, which may but need not have a value
            return f"{dashed[0]}, --no-{dashed[0][2:]}" if action.default is True else dashed[0]
        action.option_strings = dashed[:1] if "--output" in dashed else dashed
        text = super()._format_action_invocation(action)
        action.option_strings = spellings
        return text


def parse_config(dataclass_types: Sequence[type], argv: Sequence[str]) -> tuple[Any, ...]:
    """Read settings from a command line: options take precedence over `--config FILE`, and that over the defaults.

    Args:
        dataclass_types: dataclasses whose fields are the settings; no two share a field. `--help` begins with the module
            docstring of the first.
        argv: arguments of the command line. FILE is a YAML file, or the name of a configuration of the package.

    Returns:
        an instance of each dataclass.

    Raises:
        FileNotFoundError: if there is no such configuration.
        ValueError: if a key is unknown (the nearest known one is named), a value has the wrong type, a required setting is
            missing, or a file is not a YAML mapping.
    """
    parser = _build_parser(dataclass_types)
    if {"--help", "-h"} & set(argv):
        _hide_rare_options(parser, dataclass_types)
    config, options = _split_config(argv)
    for option in options:
        name = option.split("=")[0]
        if name.startswith("--") and name not in parser._option_string_actions:
            raise ValueError(f"unknown option {name}{_nearest(name.lstrip('-'), _keys(parser), '--')}")
    names = {option.split("=")[0].lstrip("-").replace("-", "_") for option in options if option.startswith("--")}
    return _parse(dataclass_types, parser, config, {}, options, names)


def load_config(
    dataclass_types: Sequence[type], config: str | None = None, settings: Mapping[str, Any] | None = None
) -> tuple[Any, ...]:
    """Read settings from a mapping, which takes precedence over a configuration, and that over the defaults.

        load_config((RatingArguments, FinetuningArguments), "finetune_mini", {"model": "encoder", "output_dir": "out"})

    Args:
        dataclass_types: dataclasses whose fields are the settings, as in `parse_config`.
        config: YAML file, or the name of a configuration of the package.
        settings: values by name, as a YAML file would hold them.

    Returns:
        an instance of each dataclass.

    Raises:
        FileNotFoundError, ValueError: as `parse_config` does.
    """
    parser, settings = _build_parser(dataclass_types), settings or {}
    for key in settings:
        if key not in _keys(parser):
            raise ValueError(f"unknown setting {key}{_nearest(key, _keys(parser))}")
    return _parse(dataclass_types, parser, config, settings, [], set(settings))


def _parse(
    dataclass_types: Sequence[type],
    parser: _Parser,
    config: str | None,
    settings: Mapping[str, Any],
    options: Sequence[str],
    explicit: set[str],
) -> tuple[Any, ...]:
    """Return the dataclasses, with the values of a configuration, of settings over it, and of options over both.

    Args:
        explicit: names of the settings and options that are not of the configuration.
    """
    if config:
        prefixes = [prefix for each in dataclass_types if (prefix := getattr(each, "CONFIG_PREFIX", None))]
        values = read_yaml(find_config(config, prefixes), _keys(parser))
        is_in_epochs = "num_train_epochs" in explicit and "max_steps" not in explicit
        if is_in_epochs and parser.get_default("max_steps") is None:
            values.pop("max_steps", None)  # the Trainer would count the steps of the file, not the epochs asked for
        _set_defaults(parser, values, f"{config}: ")
    _set_defaults(parser, settings, "")
    try:
        *parsed, surplus = parser.parse_args_into_dataclasses(
            list(options), return_remaining_strings=True, look_for_args_file=False
        )
    except ValueError as error:
        raise ValueError(_explain(str(error))) from error
    if surplus:
        raise ValueError(f"unexpected {surplus[0]!r}: settings are given as --key value")
    return tuple(parsed[: len(dataclass_types)])  # another value holds --config


def _set_defaults(parser: _Parser, values: Mapping[str, Any], source: str) -> None:
    """Make values the defaults of their options, converted and checked as on the command line.

    Args:
        source: start of the message about a wrong value.
    """
    actions = {action.dest: action for action in reversed(parser._actions)}  # of `--x` and `--no_x` the former
    for key, value in values.items():
        action = actions[key]
        if value is not None and value != []:
            texts = [json.dumps(item) if isinstance(item, dict) else str(item) for item in _as_list(value)]
            if len(texts) > 1 and action.nargs not in ("+", "*"):
                raise ValueError(f"{source}{key}: expected one value, found a list of {len(texts)}")
            try:
                value = parser._get_values(action, texts)
            except argparse.ArgumentError as error:
                raise ValueError(f"{source}{key}: {error.message}") from None
        parser.set_defaults(**{key: value})
        action.required = action.required and value is None


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def run_script(main: Callable[[], None]) -> None:
    """Run a script; an error of its input ends it with one line and exit code 2, as on the package's command line.

    With BLEURT_REPRO_DEBUG=1 in the environment it ends with a traceback.
    """
    try:
        main()
    except (TypeError, ValueError, OSError) as error:
        if os.environ.get("BLEURT_REPRO_DEBUG"):
            raise
        sys.stderr.write(f"{Path(sys.argv[0]).stem}: error: {' '.join(str(error).split())}\n")
        sys.exit(2)


def run_as_command(name: str) -> None:
    """Run `python -m MODULE ...` as `bleurt-repro NAME ...`: with the same card, messages and exit codes.

    The command line is a layer above training and imports it, so it is run by its name and not imported here.

    Args:
        name: name of the command.
    """
    sys.argv = ["bleurt-repro", name, *sys.argv[1:]]
    runpy.run_module("bleurt_repro.cli", run_name="__main__")


def find_config(name: str, prefixes: Sequence[str] = ()) -> Path:
    """Find a configuration: a file, or one of the package, with or without `.yaml`.

    Args:
        name: path of a file, or name of a configuration of the package.
        prefixes: beginnings of names that may be left out: "paper" is "pretrain_paper" with the prefix "pretrain".

    Raises:
        FileNotFoundError: if there is none.
    """
    if Path(name).is_file():
        return Path(name)
    folder = Path(str(importlib.resources.files("bleurt_repro.training") / "configs"))
    for file_name in (name, f"{name}.yaml", *(f"{prefix}_{name}.yaml" for prefix in prefixes)):
        path = folder / file_name
        if path.parent == folder and path.is_file():
            return path
    available = ", ".join(sorted(path.name for path in folder.glob("*.yaml")))
    raise FileNotFoundError(
        f"no configuration {name}: give the path of a YAML file, or one of the package: {available}"
    )


def read_yaml(path: Path, allowed: Sequence[str]) -> dict[str, Any]:
    """Read a flat YAML mapping.

    Args:
        path: the file.
        allowed: keys that it may have.

    Raises:
        ValueError: naming file and line, if it is not a mapping, or has a key twice or one that is not allowed.
    """
    root, values = read_plain_yaml(path)
    if root is None:
        return {}
    if not isinstance(values, dict):
        raise ValueError(f"{path} must be a mapping of settings such as 'seed: 1', found a {type(values).__name__}")
    lines: dict[str, int] = {}
    for node, _ in root.value:
        key, line = str(node.value), node.start_mark.line + 1
        if key not in allowed:
            raise ValueError(f"{path}, line {line}: unknown setting {key!r}{_nearest(key, allowed)}")
        if key in lines:
            raise ValueError(f"{path}, line {line}: {key!r} is already set in line {lines[key]}; keep one of them")
        lines[key] = line
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
    parser.add_argument("--config", metavar="FILE", help="YAML file of settings; options take precedence over it.")
    parser.add_argument("--help-all", action="help", help="Show all options, including all of the Trainer's.")
    _describe(parser, dataclass_types)
    if folder := parser._option_string_actions.get("--output_dir"):
        parser._option_string_actions["--output"] = folder  # its name in the other commands
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
    """Set the type that help shows of each option, and the texts of `COMMON` where the dataclasses have none."""
    described = _fields(dataclass_types)
    for action in parser._actions:
        if action.nargs == 0 and action.option_strings[0].startswith("--no_"):
            action.help = argparse.SUPPRESS  # it is shown beside the switch that it turns off
        elif action.dest not in described or not action.help:
            action.help = COMMON.get(action.dest) or action.help
        if action.nargs != 0 and not action.choices and not action.metavar:
            action.metavar = {int: "INTEGER", float: "FLOAT"}.get(cast("Any", action.type), "TEXT")


def _fields(dataclass_types: Sequence[type]) -> set[str]:
    """Return the fields that the dataclasses define themselves, without those of their parents."""
    return {name for each in dataclass_types for name in vars(each).get("__annotations__", {})}


def _hide_rare_options(parser: argparse.ArgumentParser, dataclass_types: Sequence[type]) -> None:
    """Hide the options that few people use: `RARE`, and those of the Trainer that are not in `COMMON`."""
    visible = (_fields(dataclass_types) | set(COMMON)) - RARE
    for action in parser._actions:
        if action.dest not in visible:
            action.help = argparse.SUPPRESS


def _split_config(argv: Sequence[str]) -> tuple[str | None, list[str]]:
    """Separate `--config FILE` from the other arguments."""
    parser = _Parser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config")
    try:
        namespace, options = parser.parse_known_args(list(argv))
    except ValueError:
        raise ValueError("--config needs the name of a YAML file") from None
    return namespace.config, options


def _keys(parser: argparse.ArgumentParser) -> list[str]:
    return [action.dest for action in parser._actions if action.dest != "help"]


def _explain(message: str) -> str:
    """Return a message of argparse in the form of ours: with one spelling of the option, and with what to do."""
    if "arguments are required" in message:
        missing = [spelling.split("/")[0] for spelling in message.split(": ", 1)[1].split(", ")]
        return f"missing {', '.join(missing)}: give each as an option, or as a setting in a file named by --config"
    if not message.startswith("argument --"):
        return message
    spellings, problem = message.removeprefix("argument --").split(": ", 1)
    return f"--{spellings.split('/')[0]}: {problem}"


def _nearest(name: str, available: Sequence[str], prefix: str = "") -> str:
    near = difflib.get_close_matches(name.replace("-", "_"), sorted(set(available)), n=1, cutoff=0.5)
    return f"; did you mean {prefix}{near[0]}?" if near else "; --help lists what there is"
