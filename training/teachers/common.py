"""What the scripts of the three teachers share: defaults of the Trainer, and writing the model and the record of a run."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from transformers import Trainer, TrainingArguments

from bleurt_repro.datasets_builders.open_models import load_tokenizer
from bleurt_repro.metric.files.writing import atomic_folder
from bleurt_repro.training.results import Result
from bleurt_repro.training.run import plain, repeating_command

# Settings of the Trainer that decide the result of a run.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay adam_beta2 max_grad_norm bf16 max_steps "
    "num_train_epochs per_device_train_batch_size gradient_accumulation_steps world_size"
).split()


@dataclass
class TeacherArguments(TrainingArguments):
    """The Trainer's arguments, with defaults for a small model on one machine."""

    output_dir: str = field(metadata={"help": "Folder for the model and for the checkpoints of the run."})
    resume: bool = field(
        default=False, metadata={"help": "Continue from the last complete checkpoint in the output folder."}
    )
    learning_rate: float = 3e-4
    warmup_steps: float = 0.06
    per_device_train_batch_size: int = 32
    per_device_eval_batch_size: int = 128
    logging_steps: float = 50
    save_steps: float = 250
    save_total_limit: int | None = 2
    seed: int = 1
    remove_unused_columns: bool = False
    report_to: None | str | list[str] = "none"  # the order that HfArgumentParser can read

    def __post_init__(self) -> None:
        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
        super().__post_init__()


def open_tokenizer(folder: Path, max_length: int) -> Any:
    """Open the tokenizer of an encoder.

    Raises:
        ValueError: if the encoder reads fewer tokens than `max_length`.
    """
    tokenizer = load_tokenizer(folder)
    if max_length > tokenizer.model_max_length:
        raise ValueError(
            f"max_length {max_length} is more than the {tokenizer.model_max_length} tokens that {folder.name} reads"
        )
    return tokenizer


def set_dropout(model: torch.nn.Module, probability: float | None) -> None:
    """Set the probability of all dropout layers of a model, for this run only; None leaves them as they are.

    A run that is too short to see a text twice does not need dropout, and is faster without it.
    """
    if probability is None:
        return
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


@contextlib.contextmanager
def saved_model(trainer: Trainer) -> Iterator[Path]:
    """Write model and tokenizer, and the files that the block adds to the folder, to the folder of the run."""
    tokenizer = cast("Any", trainer.processing_class)
    with atomic_folder(Path(str(trainer.args.output_dir)), last="config.json") as folder:
        cast("Any", trainer.model).save_pretrained(folder)
        if tokenizer.is_fast:  # otherwise it would truncate and pad as in its last call here
            tokenizer.backend_tokenizer.no_truncation()
            tokenizer.backend_tokenizer.no_padding()
        tokenizer.save_pretrained(folder)
        yield folder


def write_results(
    folder: Path,
    trainer: Trainer,
    name: str,
    data: dict[str, Any],
    quality: dict[str, Any],
    settings: Any,
    seconds: float,
    examples: int,
) -> Result:
    """Write results.json, and return what it holds.

    Args:
        folder: folder of the model.
        trainer: the Trainer after training.
        name: name of the script, such as "entailment".
        data: record of the data: files with their SHA-256, counts, what was left out.
        quality: figures on held-out data.
        settings: dataclass of the script.
        seconds: seconds of training.
        examples: number of examples that were trained on, including repetitions.
    """
    args = trainer.args
    values = {**asdict(settings), **{setting: getattr(args, setting) for setting in RECORDED}}
    for setting in [setting for setting, value in values.items() if isinstance(value, list)]:
        values[setting] = [re.sub(r"[^=]*/", "", item) for item in values[setting]]  # LANGUAGE=FILE without the folder
    figures = {
        "quality": quality,
        "parameters": sum(parameter.numel() for parameter in cast("Any", trainer.model).parameters()),
        "steps": trainer.state.global_step,
        "examples": examples,
        "seconds": round(seconds, 1),
        "examples_per_second": round(examples / seconds, 1),
        "settings": plain(values),
    }
    command = repeating_command(f"python -m bleurt_repro.training.teachers.{name}", figures["settings"])
    result = Result("teacher", command, figures, args.seed, data=data)
    result.write(folder)
    return result


def parse_pairs(arguments: Sequence[str], option: str) -> dict[str, str]:
    """Return the values of `NAME=VALUE` arguments by name.

    Raises:
        ValueError: if an argument is not of that form, or a name occurs twice.
    """
    pairs: dict[str, str] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"--{option} {argument}: expected NAME=VALUE")
        if name in pairs:
            raise ValueError(f"--{option} names {name} twice")
        pairs[name] = value
    return pairs


def parse_weights(arguments: Sequence[str], option: str) -> dict[str, float]:
    """Return the values of `NAME=NUMBER` arguments by name.

    Raises:
        ValueError: as `parse_pairs` does, and if a value is not a number of 0 or more.
    """
    weights = {}
    for name, value in parse_pairs(arguments, option).items():
        try:
            weights[name] = float(value)
        except ValueError:
            raise ValueError(f"--{option} {name}={value}: expected a number") from None
        if not 0 <= weights[name] < float("inf"):
            raise ValueError(f"--{option} {name}={value}: expected a number that is not negative")
    return weights
