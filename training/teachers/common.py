"""What the three teachers' scripts share: the Trainer's defaults, and writing the model and the record of a run."""

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
from bleurt_repro.training.results import Result, plain, repeating_command

# The Trainer's settings that decide what a run gives.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay adam_beta2 max_grad_norm bf16 max_steps "
    "num_train_epochs per_device_train_batch_size gradient_accumulation_steps world_size"
).split()


@dataclass
class TeacherArguments(TrainingArguments):
    """The Trainer's arguments, with defaults for a small model on one machine."""

    output_dir: str = field(metadata={"help": "Folder for the model and for the checkpoints of the run."})
    resume: bool = field(default=False, metadata={"help": "Continue from the last whole checkpoint in output_dir."})
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
    """Open an encoder's tokenizer.

    Raises:
        ValueError: if the encoder does not read so many tokens.
    """
    tokenizer = load_tokenizer(folder)
    if max_length > tokenizer.model_max_length:
        raise ValueError(
            f"max_length {max_length} is more than the {tokenizer.model_max_length} tokens that {folder.name} reads"
        )
    return tokenizer


def set_dropout(model: torch.nn.Module, probability: float | None) -> None:
    """Set the probability of all of a model's dropout layers, for this run only; None leaves them as they are.

    A run too short to see a text twice has nothing to guard against, and computes faster without.
    """
    if probability is None:
        return
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


@contextlib.contextmanager
def saved_model(trainer: Trainer) -> Iterator[Path]:
    """Write model and tokenizer into a folder, which with what the block adds takes the place of the run's."""
    tokenizer = cast("Any", trainer.processing_class)
    with atomic_folder(Path(str(trainer.args.output_dir)), last="config.json") as folder:
        cast("Any", trainer.model).save_pretrained(folder)
        if tokenizer.is_fast:  # else it would cut and pad as in its last call for whoever loads it
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
    """Write results.json into a folder, and return what it holds.

    Args:
        folder: of the model.
        trainer: after training.
        name: of the script, such as "entailment".
        data: what was read: files with their SHA-256, counts, what was left out.
        quality: figures on held-out data.
        settings: the script's own dataclass.
        seconds: of training.
        examples: how many were trained on, repetitions included.
    """
    args = trainer.args
    given = {**asdict(settings), **{setting: getattr(args, setting) for setting in RECORDED}}
    for setting in [setting for setting, value in given.items() if isinstance(value, list)]:
        given[setting] = [re.sub(r"[^=]*/", "", item) for item in given[setting]]  # of LANGUAGE=FILE, no folder
    figures = {
        "quality": quality,
        "parameters": sum(parameter.numel() for parameter in cast("Any", trainer.model).parameters()),
        "steps": trainer.state.global_step,
        "examples": examples,
        "seconds": round(seconds, 1),
        "examples_per_second": round(examples / seconds, 1),
        "settings": plain(given),
    }
    command = repeating_command(f"python -m bleurt_repro.training.teachers.{name}", figures["settings"])
    result = Result("teacher", command, figures, args.seed, data=data)
    result.write(folder)
    return result


def parse_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Read `NAME=VALUE` words, such as the weights of sources.

    Raises:
        ValueError: if a word is not of that form, or a name occurs twice.
    """
    pairs: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not name or not equals or not value:
            raise ValueError(f"--{option} {word}: expected NAME=VALUE")
        if name in pairs:
            raise ValueError(f"--{option} names {name} twice")
        pairs[name] = value
    return pairs


def parse_weights(words: Sequence[str], option: str) -> dict[str, float]:
    """Read `NAME=NUMBER` words; no number is negative.

    Raises:
        ValueError: as `parse_pairs`, and for a value that is no such number.
    """
    weights = {}
    for name, value in parse_pairs(words, option).items():
        try:
            weights[name] = float(value)
        except ValueError:
            raise ValueError(f"--{option} {name}={value}: expected a number") from None
        if not 0 <= weights[name] < float("inf"):
            raise ValueError(f"--{option} {name}={value}: expected a number that is not negative")
    return weights
