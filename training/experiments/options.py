"""Options of the experiments: which models are trained, how options are read, and the command that repeats a run."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from bleurt_repro.training.metrics.options import shorten

# Settings that no figure depends on.
NOT_IN_COMMANDS = ("output", "keep_models", "cache", "data_dir")


@dataclass
class ModelOptions:
    """Which models are trained. Without encoder and pretrained, none is."""

    _argument_group_name: ClassVar[str] = "models to train"  # heading in --help

    encoder: str | None = field(
        default=None, metadata={"help": "Encoder of the models without pre-training: folder or Hub id."}
    )
    pretrained: str | None = field(
        default=None,
        metadata={"help": "Result of `bleurt-repro pretrain` with that encoder, for the models with pre-training."},
    )
    finetune: str = field(
        default="finetune_mini", metadata={"help": "Configuration of `bleurt-repro finetune` for all models."}
    )
    seeds: list[int] = field(
        default_factory=lambda: [1], metadata={"help": "Seeds; one model is trained for each of them."}
    )
    keep_models: bool = field(
        default=False, metadata={"help": "Keep the trained models; by default only their scores are kept."}
    )
    model_name: str = field(default="BLEURT", metadata={"help": "Name of the trained models in tables."})


def read_options(dataclass_types: Sequence[type], argv: Sequence[str]) -> tuple[Any, ...]:
    """Read the options of an experiment; `parse_config` describes how.

    Args:
        dataclass_types: dataclasses of options.
        argv: arguments of the command line.

    Returns:
        an instance of each dataclass.
    """
    from bleurt_repro.training.arguments import parse_config

    return parse_config(dataclass_types, argv)


def command(experiment: str, settings: Sequence[Any]) -> str:
    """Return the command that makes results: all options that differ from the defaults, paths without their folders."""
    arguments = [f"bleurt-repro experiment {experiment}"]
    for group in settings:
        for option in dataclasses.fields(group):
            value = getattr(group, option.name)
            default = option.default_factory() if callable(option.default_factory) else option.default
            if option.name not in NOT_IN_COMMANDS and value != default:
                values = shlex.join(map(shorten, value if isinstance(value, list) else [value]))
                arguments.append(f"--{option.name.replace('_', '-')} {values}")
    return " ".join([*arguments, "--output OUT"])
