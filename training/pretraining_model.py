"""The pre-training model: an encoder and one linear head per signal (BLEURT, section 4.3; the loss is in `losses`)."""

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

# Prefix of a signal's column among the model's inputs.
TARGET = "target_"


@dataclass(frozen=True)
class Task:
    """What one head learns, read from the record of the synthetic pairs.

    Attributes:
        name: of the signal.
        size: numbers a pair.
        loss: "regression" or "classification".
        group: the group whose weight gamma it shares.
        mean, std: of each number over the data, by which regression targets are standardised.
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
    """Return the tasks of a data set's signals.

    Args:
        signals: the "signals" of its record: name, size, loss, group, mean, std.
        leave_out: names of signals not to learn, for ablations.

    Raises:
        ValueError: if a name to leave out is none of the signals, or none remains.
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
    """An encoder whose pooled first token feeds one linear layer per signal.

    Args:
        encoder: any `transformers` encoder; its pooler's output is used, or without a pooler its first token.
        tasks: what to learn.
        gammas: weight of each group of tasks; 1 for those not named.
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
            # A constant signal has nothing to standardise by; its targets are then all 0.
            std = torch.tensor([value or 1.0 for value in task.std])
            self.register_buffer(f"std_{task.name}", std, persistent=False)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        token_type_ids: Tensor | None = None,
        **targets: Tensor,
    ) -> dict[str, Tensor]:
        """Predict every signal and, where targets are given, compute the losses.

        Args:
            input_ids, attention_mask, token_type_ids: shape (pairs, tokens).
            targets: "target_<signal>" of shape (pairs, size): raw numbers, or probabilities of classes.

        Returns:
            "loss": the weighted total, averaged over pairs; "loss_<signal>": each pair's loss of a task, unweighted
            (pairs,); "<signal>": predictions (pairs, size).
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
        named = {f"loss_{name}": loss for name, loss in losses.items()}
        return {"loss": total.mean(), **named, **outputs}

    def task_losses(self, task: Task, prediction: Tensor, target: Tensor) -> Tensor:
        """Compute each pair's loss of a task, shape (pairs,)."""
        prediction, target = prediction.float(), target.float()
        if task.loss == "classification":
            return classification_losses(prediction, target)
        standard = (target - self.get_buffer(f"mean_{task.name}")) / self.get_buffer(f"std_{task.name}")
        return regression_losses(prediction, standard)

    def gradient_checkpointing_enable(self, **options: Any) -> None:
        """Trade time for memory, as the Trainer asks."""
        self.encoder.gradient_checkpointing_enable(**options)

    def activation_checkpointing_enable(self, **options: Any) -> None:
        """Do the same under the name that the Trainer of newer versions of transformers calls."""
        self.encoder.activation_checkpointing_enable(**options)


def export_scorer(
    config: PreTrainedConfig,
    state: Mapping[str, Tensor],
    tokenizer: PreTrainedTokenizerBase,
    layout: Layout,
    folder: str | Path,
    seed: int = 0,
) -> None:
    """Write what fine-tuning starts from: the encoder and its pooler under a new head of one label.

    Args:
        config: the encoder's.
        state: weights of a `PretrainingModel`.
        tokenizer: the encoder's.
        layout: which texts it read, and how long.
        folder: where to.
        seed: of the head's random weights: two exports of the same weights are equal.
    """
    from transformers import AutoModelForSequenceClassification

    from bleurt_repro.metric.loading.save import prepare_scorer, save_scorer

    config.num_labels = 1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        scorer = AutoModelForSequenceClassification.from_config(config)
    body = getattr(scorer, scorer.base_model_prefix)
    encoder = {name.removeprefix("encoder."): value for name, value in state.items() if name.startswith("encoder.")}
    lacking, surplus = body.load_state_dict(encoder, strict=False)
    # A classifier without a pooler of its own kind (RoBERTa's) leaves the encoder's pooler unused.
    if lacking or any("pooler" not in name for name in surplus):
        raise ValueError(f"the encoder does not fit its classifier: lacking {lacking}, left over {surplus}")
    prepare_scorer(scorer, tokenizer, layout)
    save_scorer(scorer, tokenizer, Path(folder))
