"""Options for training runs that take seconds."""

from __future__ import annotations

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
