"""The pre-training model: an encoder with one linear head per signal (BLEURT, section 4.3; the loss is in `losses.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from bleurt_repro.training.losses import classification_losses, multi_task_loss, regression_losses

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from bleurt_repro.metric.layout import Layout

TARGET = "target_"  # prefix of a signal's column among the inputs of the model


@dataclass(frozen=True)
class Task:
    """What one head learns.

    Attributes:
        name: name of the signal.
        size: numbers per pair.
        loss: "regression" or "classification".
        group: group of signals, which share a weight gamma.
        mean, std: mean and standard deviation of each number over the data, by which regression targets are standardised.
    """

    name: str
    size: int
    loss: str
    group: str
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.loss not in ("regression", "classification"):
            raise ValueError(f"signal {self.name} has loss {self.loss!r}: expected regression or classification")
        if not len(self.mean) == len(self.std) == self.size:
            raise ValueError(
                f"signal {self.name} has {self.size} numbers but {len(self.mean)} means, {len(self.std)} stds"
            )


def read_tasks(signals: Sequence[Mapping[str, Any]], leave_out: Sequence[str] = ()) -> list[Task]:
    """Return a task for each signal of a data set.

    Args:
        signals: "signals" of the data set's record: name, size, loss, group, mean, std.
        leave_out: names of signals that are not learnt, for ablations.

    Raises:
        ValueError: if there is no signal of a name to leave out, or none remains.
    """
    names = [str(signal["name"]) for signal in signals]
    if unknown := sorted(set(leave_out) - set(names)):
        raise ValueError(f"the data have no signal {', '.join(unknown)}: they have {', '.join(names)}")
    tasks = [
        Task(
            signal["name"],
            signal["size"],
            signal["loss"],
            signal["group"],
            tuple(signal["mean"]),
            tuple(signal["std"]),
        )
        for signal in signals
        if signal["name"] not in leave_out
    ]
    if not tasks:
        raise ValueError("no signal is left to learn")
    return tasks


class PretrainingModel(nn.Module):
    """An encoder whose pooled first token is the input of one linear layer per signal.

    Args:
        encoder: any `transformers` encoder; without a pooler, the vector of the first token itself is used.
        tasks: tasks to learn.
        gammas: weight of each group of tasks, 1 by default.
    """

    def __init__(
        self, encoder: PreTrainedModel, tasks: Sequence[Task], gammas: Mapping[str, float] | None = None
    ) -> None:
        super().__init__()
        groups = {task.group for task in tasks}
        if unknown := sorted(set(gammas or {}) - groups):
            raise ValueError(f"no task is in group {', '.join(unknown)}: the groups are {', '.join(sorted(groups))}")
        self.encoder = encoder
        self.config = encoder.config
        self.tasks = list(tasks)
        self.gammas = {group: 1.0 for group in groups} | dict(gammas or {})
        self.heads = nn.ModuleDict({task.name: nn.Linear(encoder.config.hidden_size, task.size) for task in tasks})
        self.dropout = nn.Dropout(getattr(encoder.config, "hidden_dropout_prob", 0.1))
        for task in tasks:
            head = self.heads[task.name]
            nn.init.normal_(head.get_parameter("weight"), std=getattr(encoder.config, "initializer_range", 0.02))
            nn.init.zeros_(head.get_parameter("bias"))
            self.register_buffer(f"mean_{task.name}", torch.tensor(task.mean), persistent=False)
            # A constant signal has a deviation of 0: its targets are then all 0.
            std = torch.tensor([value or 1.0 for value in task.std])
            self.register_buffer(f"std_{task.name}", std, persistent=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        **targets: Tensor,
    ) -> dict[str, Tensor]:
        """Predict all signals, and compute the losses of those that have targets.

        Args:
            input_ids, attention_mask, token_type_ids: shape (pairs, tokens).
            targets: "target_<signal>" of shape (pairs, size): raw numbers, or probabilities of classes.

        Returns:
            "loss": weighted sum of the tasks' losses, averaged over pairs; "loss_<signal>": unweighted loss of each pair,
            (pairs,); "<signal>": predictions, (pairs, size).
        """
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None and getattr(self.config, "type_vocab_size", 0) > 1:
            inputs["token_type_ids"] = token_type_ids
        hidden = self.encoder(**inputs)
        pooled = getattr(hidden, "pooler_output", None)
        pooled = self.dropout(hidden.last_hidden_state[:, 0] if pooled is None else pooled)
        outputs: dict[str, Tensor] = {}
        losses: dict[str, Tensor] = {}
        for task in self.tasks:
            outputs[task.name] = self.heads[task.name](pooled)  # (pairs, size)
            if TARGET + task.name in targets:
                losses[task.name] = self.task_losses(task, outputs[task.name], targets[TARGET + task.name])
        if not losses:
            return outputs
        total = multi_task_loss(losses, {task.name: self.gammas[task.group] for task in self.tasks})
        task_losses = {f"loss_{name}": loss for name, loss in losses.items()}
        return {"loss": total.mean(), **task_losses, **outputs}

    def task_losses(self, task: Task, prediction: Tensor, target: Tensor) -> Tensor:
        """Compute the loss of each pair in a task, shape (pairs,)."""
        prediction, target = prediction.float(), target.float()
        if task.loss == "classification":
            return classification_losses(prediction, target)
        standard = (target - self.get_buffer(f"mean_{task.name}")) / self.get_buffer(f"std_{task.name}")
        return regression_losses(prediction, standard)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Compute activations again in the backward pass instead of storing them; the Trainer calls this."""
        self.encoder.gradient_checkpointing_enable(**options)

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Do the same; newer versions of the Trainer call it by this name."""
        self.encoder.activation_checkpointing_enable(**options)


def export_scorer(
    config: PreTrainedConfig,
    state: Mapping[str, Tensor],
    tokenizer: PreTrainedTokenizerBase,
    layout: Layout,
    folder: str | Path,
    seed: int = 0,
) -> None:
    """Write what fine-tuning starts from: the encoder and its pooler, with a new head of one label.

    Args:
        config: configuration of the encoder.
        state: weights of a `PretrainingModel`.
        tokenizer: tokenizer of the encoder.
        layout: texts that the model reads, and the maximum number of tokens.
        folder: folder to write.
        seed: seed of the head's random weights: two exports of the same weights are equal.
    """
    from transformers import AutoModelForSequenceClassification

    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    config.num_labels = 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        scorer = AutoModelForSequenceClassification.from_config(config)
    body = getattr(scorer, scorer.base_model_prefix)
    encoder = {name.removeprefix("encoder."): value for name, value in state.items() if name.startswith("encoder.")}
    missing, surplus = body.load_state_dict(encoder, strict=False)
    # A classifier without a pooler of this form (RoBERTa's) leaves the encoder's pooler unused.
    if missing or any("pooler" not in name for name in surplus):
        raise ValueError(f"the encoder does not fit its classifier: missing are {missing}, left over {surplus}")
    prepare_scorer(scorer, tokenizer, layout)
    save_scorer(scorer, tokenizer, Path(folder))
