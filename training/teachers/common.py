"""What the three teachers' scripts share: the Trainer's defaults, and writing the model and the record of a run."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from transformers import Trainer, TrainingArguments

from bleurt_repro.datasets_builders.open_models import load_tokenizer
from bleurt_repro.metric.files.writing import write_text
from bleurt_repro.training.run import RESULTS, plain, versions

# The Trainer's settings that decide what a run gives.
RECORDED = (
    "learning_rate lr_scheduler_type warmup_steps weight_decay adam_beta2 max_grad_norm bf16 max_steps "
    "num_train_epochs per_device_train_batch_size gradient_accumulation_steps world_size"
).split()


@dataclass
class TeacherArguments(TrainingArguments):
    """The Trainer's arguments, with defaults for a small model on one machine."""

    output_dir: str = field(metadata={"help": "Folder for the model; checkpoints of the run lie in it too."})
    resume: bool = field(default=False, metadata={"help": "Go on from the last whole checkpoint in output_dir."})
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


def save_model(trainer: Trainer) -> Path:
    """Write model and tokenizer into the run's folder, and name it."""
    folder, tokenizer = Path(str(trainer.args.output_dir)), cast("Any", trainer.processing_class)
    cast("Any", trainer.model).save_pretrained(folder)
    if tokenizer.is_fast:  # else it would cut and pad as in its last call for whoever loads it
        tokenizer.backend_tokenizer.no_truncation()
        tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(folder)
    return folder


def write_results(
    trainer: Trainer,
    data: dict[str, Any],
    quality: dict[str, Any],
    settings: Any,
    seconds: float,
    examples: int,
) -> None:
    """Write results.json into the run's folder.

    Args:
        trainer: after training.
        data: what was read: files with their SHA-256, counts, what was left out.
        quality: figures on held-out data.
        settings: the script's own dataclass.
        seconds: of training.
        examples: how many were trained on, repetitions included.
    """
    args = trainer.args
    settings = {**asdict(settings), **{name: getattr(args, name) for name in RECORDED}}
    for name in [name for name, value in settings.items() if isinstance(value, list)]:
        settings[name] = [re.sub(r"[^=]*/", "", item) for item in settings[name]]  # of LANGUAGE=FILE, no folder
    results = {
        "quality": quality,
        "data": data,
        "parameters": sum(parameter.numel() for parameter in cast("Any", trainer.model).parameters()),
        "steps": trainer.state.global_step,
        "examples": examples,
        "seconds": round(seconds, 1),
        "examples_per_second": round(examples / seconds, 1),
        "seed": args.seed,
        "settings": plain(settings),
        "versions": versions(),
    }
    write_text(Path(str(args.output_dir)) / RESULTS, json.dumps(results, indent=2, ensure_ascii=False) + "\n")
