"""Settings of all training: the Trainer's arguments with the papers' defaults, and checks of what contradicts itself."""

from __future__ import annotations

import importlib.util
import math
import re
import warnings
from dataclasses import dataclass, field
from typing import ClassVar, cast

from transformers import TrainingArguments

BATCH = 32  # pairs per step (BLEURT, B.1)


@dataclass
class RunArguments(TrainingArguments):
    """The Trainer's arguments, with the defaults of BLEURT, section B.1: Adam, learning rate 1e-5, batches of 32 pairs.

    A step has `global_batch_size` pairs: `per_device_train_batch_size` times `gradient_accumulation_steps` times the number
    of processes. What is not given follows from what is. Nothing that is given is changed without a warning.

    Raises:
        ValueError: if settings contradict each other, no step would be made, or a package is not installed.
    """

    _argument_group_name: ClassVar[str] = "training"  # heading in --help

    # Measures by which the best checkpoint may be chosen, as patterns.
    MEASURES: ClassVar[tuple[str, ...]] = ("loss",)
    # Number of steps if neither steps nor epochs are given.
    DEFAULT_STEPS: ClassVar[int] = -1

    output_dir: str = field(metadata={"help": "Folder for the checkpoint, and for those of the run while it lasts."})
    resume: bool = field(
        default=False,
        metadata={"help": "Continue from the last complete checkpoint in the output folder, if there is one."},
    )
    keep_checkpoints: bool = field(
        default=False,
        metadata={"help": "Keep the intermediate checkpoints; by default they are removed when the best is written."},
    )
    num_proc: int | None = field(
        default=None,
        metadata={"help": "Number of processes for tokenisation; default: one per core, fewer for few rows."},
    )
    overwrite: bool = field(default=False, metadata={"help": "Write to a folder that already holds other files."})
    global_batch_size: int | None = field(
        default=None, metadata={"help": f"Number of pairs per step, over all processes; default: {BATCH}."}
    )
    frozen_layers: int = field(
        default=0,
        metadata={"help": "Number of lowest layers that are not trained, nor the embeddings; saves time."},
    )
    dropout: float | None = field(
        default=None, metadata={"help": "Dropout probability; default: the one that the model records."}
    )
    early_stopping: int = field(
        default=0, metadata={"help": "Stop after this number of validations without improvement; 0: never."}
    )
    max_steps: int | None = None  # type: ignore[assignment]
    num_train_epochs: float | None = field(  # type: ignore[assignment]
        default=None, metadata={"help": "Number of epochs; ignored if --max-steps is above 0."}
    )
    learning_rate: float = 1e-5
    lr_scheduler_type: str = "constant"
    weight_decay: float = 0.0  # AdamW without decay is Adam
    per_device_train_batch_size: int | None = field(  # type: ignore[assignment]
        default=None,
        metadata={
            "help": f"Number of pairs that a process computes at once; default: at most {BATCH}. Lower it to save memory."
        },
    )
    gradient_accumulation_steps: int | None = field(  # type: ignore[assignment]
        default=None,
        metadata={"help": "Number of batches per step and process; default: as many as --global-batch-size needs."},
    )
    per_device_eval_batch_size: int = 128
    eval_strategy: str = "steps"
    eval_steps: float | None = 1_500
    save_steps: float = 1_500
    save_total_limit: int | None = 2
    load_best_model_at_end: bool = True
    remove_unused_columns: bool = False
    report_to: None | str | list[str] = "none"  # the order that HfArgumentParser can read

    def __post_init__(self) -> None:
        import torch

        from bleurt_repro.metric.install import require_extra
        from bleurt_repro.metric.options import has_bfloat16

        require_extra("train", "training")  # transformers would advise another package than the extra
        self._choose_length()
        self._check_values()
        if not (torch.cuda.is_available() or torch.backends.mps.is_available()):
            self.use_cpu = True  # the Trainer computes in bf16 on a CPU only when told that it is one
            if self.bf16 and not has_bfloat16(torch.device("cpu")):
                warnings.warn(
                    "this processor has no instructions for bfloat16, which would take several times as long: training "
                    "computes in float32 (bf16 is off)",
                    stacklevel=3,
                )
                self.bf16 = False
        size, accumulation = self.per_device_train_batch_size, self.gradient_accumulation_steps
        self.per_device_train_batch_size, self.gradient_accumulation_steps = size or BATCH, accumulation or 1
        super().__post_init__()  # the number of processes is known afterwards
        self._check_packages()
        self._choose_batches(size, accumulation)

    def _choose_length(self) -> None:
        """Set steps and epochs as the Trainer reads them: it ignores epochs if steps are above 0."""
        if self.max_steps is None:
            self.max_steps = self.DEFAULT_STEPS if self.num_train_epochs is None else -1
        if self.num_train_epochs is None:
            self.num_train_epochs = 3.0  # the Trainer's own default
        if self.max_steps == 0 or self.num_train_epochs <= 0:
            raise ValueError(
                f"max_steps {self.max_steps} with num_train_epochs {self.num_train_epochs:g} makes no step, or is a mistake: "
                "give one of them, above 0"
            )

    def _check_values(self) -> None:
        for name in ("global_batch_size", "per_device_train_batch_size", "gradient_accumulation_steps"):
            if (value := getattr(self, name)) is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, found {value}")
        if not 0 <= self.learning_rate < math.inf:
            raise ValueError(f"learning_rate must be 0 or more, found {self.learning_rate:g}")
        for name in ("seed", "early_stopping"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be 0 or more, found {getattr(self, name)}")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be from 0 to below 1, found {self.dropout:g}")
        measure = (self.metric_for_best_model or "loss").removeprefix("eval_")
        if not any(re.fullmatch(pattern, measure) for pattern in self.MEASURES):
            raise ValueError(
                f"metric_for_best_model must be one of {', '.join(self.MEASURES)}, found {self.metric_for_best_model!r}"
            )
        if self.deepspeed and importlib.util.find_spec("deepspeed") is None:
            raise ValueError(
                "--deepspeed needs the package deepspeed, which is not installed: pip install deepspeed, or use FSDP"
            )

    def _check_packages(self) -> None:
        """Check that the packages which follow a run are installed; the Trainer would do so only when it starts."""
        from transformers.integrations.integration_utils import (
            INTEGRATION_TO_CALLBACK,
            get_available_reporting_integrations,
        )

        for name in self.report_to or ():
            if name not in INTEGRATION_TO_CALLBACK:
                available = ", ".join(sorted(INTEGRATION_TO_CALLBACK))
                raise ValueError(f"--report-to {name} is unknown; available are {available}, all and none")
            if name not in get_available_reporting_integrations():
                raise ValueError(
                    f"--report-to {name} needs a package that is not installed: pip install {name}, or --report-to none"
                )

    def _choose_batches(self, size: int | None, accumulation: int | None) -> None:
        """Set the three batch sizes such that a step has `global_batch_size` pairs.

        Args:
            size: `per_device_train_batch_size`, if it was given.
            accumulation: `gradient_accumulation_steps`, if it was given.
        """
        processes = self.world_size
        if self.global_batch_size is None:
            # Batches that were given may be larger than the default: then a step is as large as they ask for.
            smallest = (size or 1) * (accumulation or 1) * processes
            self.global_batch_size = smallest if size and accumulation else max(BATCH, smallest)
            if self.global_batch_size != BATCH:
                self._warn(
                    f"a step has {self.global_batch_size} pairs, as the batch sizes ask for, and not the default {BATCH}; "
                    "--global-batch-size sets it"
                )
        share, remainder = divmod(self.global_batch_size, processes)
        if size is None and accumulation is None:  # the largest batch that divides the share of a process
            size = next((n for n in range(min(BATCH, share), 0, -1) if share % n == 0), 1)
        if size and accumulation is None and size > share > 0:
            self._warn(
                f"a process computes {share} pairs at once, and not per_device_train_batch_size {size}: a step has "
                f"{self.global_batch_size} pairs (global_batch_size) on {processes} process(es)"
            )
            size = share
        size = size or max(share // cast("int", accumulation), 1)
        accumulation = accumulation or max(share // size, 1)
        if remainder or size * accumulation != share:
            raise ValueError(
                f"a step of {self.global_batch_size} pairs (global_batch_size) is not {size} (per_device_train_batch_size) x "
                f"{accumulation} (gradient_accumulation_steps) x {processes} (processes): leave one of them out, or choose "
                "numbers that divide"
            )
        self.per_device_train_batch_size, self.gradient_accumulation_steps = size, accumulation

    def _warn(self, message: str) -> None:
        """Warn where the dataclass was made; once, where several processes train."""
        if self.process_index == 0:
            warnings.warn(message, stacklevel=6)
