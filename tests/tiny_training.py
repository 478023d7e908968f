"""Training runs that take seconds, by the words of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# fine-tuning that learns
QUICK = {
    "--max_steps": "120", "--eval_steps": "60", "--save_steps": "60", "--learning_rate": "3e-3",
    "--per_device_train_batch_size": "16", "--disable_tqdm": "true",
}  # fmt: skip

# pre-training
STEPS = {
    "--max_steps": "20", "--eval_steps": "10", "--save_steps": "10", "--logging_steps": "5", "--learning_rate": "1e-3",
    "--global_batch_size": "8", "--validation_segments": "3", "--disable_tqdm": "true",
}  # fmt: skip


def options(*groups: dict[str, str]) -> list[str]:
    return [word for group in groups for pair in group.items() for word in pair]


def finetune(arguments: Sequence[str]) -> dict[str, Any]:
    """Run `finetune` with options of the command line; without the card that the command draws."""
    from bleurt_repro.training.arguments import parse_config
    from bleurt_repro.training.finetune import FinetuningArguments, RatingArguments
    from bleurt_repro.training.finetune import finetune as train

    return train(*parse_config((RatingArguments, FinetuningArguments), arguments))


def pretrain(arguments: Sequence[str]) -> dict[str, Any]:
    """Run `pretrain` likewise, with `--grid` as a search."""
    from bleurt_repro.training.arguments import parse_config
    from bleurt_repro.training.pretrain import GridArguments, PairArguments, PretrainingArguments, pretrain_or_search

    return pretrain_or_search(*parse_config((PairArguments, GridArguments, PretrainingArguments), arguments))
