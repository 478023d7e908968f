"""What the three teachers' scripts share: the Trainer's defaults, going on after a kill, and the record of a run."""

from __future__ import annotations

import json
import os
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState

RESULTS = "results.json"
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
    max_grad_norm: float = 1.0
    per_device_train_batch_size: int = 32
    per_device_eval_batch_size: int = 128
    logging_steps: float = 50
    save_steps: float = 250
    save_total_limit: int | None = 2
    seed: int = 1
    remove_unused_columns: bool | None = False
    report_to: None | str | list[str] = "none"  # the order that HfArgumentParser can read

    def __post_init__(self) -> None:
        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
        super().__post_init__()


class Stopwatch(TrainerCallback, ExportableState):
    """Counts the seconds of training, those before a kill included (up to the last checkpoint)."""

    def __init__(self, seconds: float = 0.0) -> None:
        self._before, self._started = seconds, time.monotonic()

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        """Start."""
        self._started = time.monotonic()

    @property
    def seconds(self) -> float:
        """Seconds so far."""
        return self._before + time.monotonic() - self._started

    def state(self) -> dict[str, Any]:
        """Give what a checkpoint keeps."""
        return {"args": {"seconds": self.seconds}, "attributes": {}}


def last_checkpoint(folder: Path) -> tuple[Path | None, float]:
    """Find the last checkpoint that was written whole.

    Args:
        folder: where a run writes its checkpoints.

    Returns:
        the checkpoint, or None if there is none; and the seconds of training up to it.
    """
    for path in sorted(folder.glob("checkpoint-*"), key=lambda path: -int(path.name.split("-")[1])):
        try:  # the Trainer writes this file last
            state = json.loads((path / "trainer_state.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return path, float(state["stateful_callbacks"].get("Stopwatch", {"args": {"seconds": 0}})["args"]["seconds"])
    return None, 0.0


def check_output(args: TeacherArguments) -> None:
    """Refuse to write over another run's checkpoints.

    Raises:
        ValueError: if there are checkpoints and the run does not go on from them.
    """
    found, _ = last_checkpoint(Path(args.output_dir))
    if found and not args.resume:
        raise ValueError(
            f"{args.output_dir} holds a run already ({found.name}): add --resume to go on from there, or choose "
            "another --output_dir"
        )


def train(trainer: Trainer, args: TeacherArguments) -> float:
    """Train, from the last whole checkpoint if `args.resume` asks for it and there is one.

    Returns:
        seconds of training, those of earlier sessions included.
    """
    checkpoint, seconds = last_checkpoint(Path(args.output_dir)) if args.resume else (None, 0.0)
    stopwatch = Stopwatch(seconds)
    trainer.add_callback(stopwatch)
    trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
    return stopwatch.seconds


def set_dropout(model: torch.nn.Module, probability: float | None) -> None:
    """Set the probability of all of a model's dropout layers, for this run only; None leaves them as they are.

    A run too short to see a text twice has nothing to guard against, and computes faster without.
    """
    for module in model.modules() if probability is not None else ():
        if isinstance(module, torch.nn.Dropout):
            module.p = probability


def fingerprint(paths: Sequence[str]) -> list[dict[str, str]]:
    """Name each file and the SHA-256 of its bytes."""
    from bleurt_repro.metric.signature import file_hash

    return [{"file": Path(path).name, "sha256": file_hash(Path(path)).hex()} for path in paths]


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
    results = {
        "quality": quality,
        "data": data,
        "parameters": sum(parameter.numel() for parameter in cast("Any", trainer.model).parameters()),
        "steps": trainer.state.global_step,
        "examples": examples,
        "seconds": round(seconds, 1),
        "examples_per_second": round(examples / seconds, 1),
        "seed": args.seed,
        "settings": _plain({**asdict(settings), **{name: getattr(args, name) for name in RECORDED}}),
        "versions": _versions(),
    }
    write_json(Path(str(args.output_dir)) / RESULTS, results)


def write_json(path: Path, content: Any) -> None:
    """Write a file as a whole or not at all."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(temporary, path)


def _plain(value: Any) -> Any:
    """Make settings fit for JSON, and leave the folders out of the names of files."""
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    value = getattr(value, "value", value)  # of an enumeration
    return re.sub(r"[^=]*/", "", value) if isinstance(value, str) else value


def _versions() -> dict[str, str]:
    import tokenizers
    import transformers

    from bleurt_repro import __version__

    return {
        "bleurt_repro": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "tokenizers": tokenizers.__version__,
    }
