"""The Trainer with what our models need: a stop when the loss is no number, layer-wise rates, frozen layers, dropout, the faster
attention, each task's loss by name.

Validation losses are means over pairs, whatever the number of processes. The Trainer's own are means over batches, and
where pairs are repeated so that all processes get full batches, the repeated ones count twice. So each pair's loss (or
prediction) is gathered, without the repeated ones, and averaged at the end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, EvalPrediction, PreTrainedModel, Trainer

from bleurt_repro.training.losses import multi_task_loss

LAYER = re.compile(r"\.(?:layer|layers|h)\.(\d+)\.")
# Parameters below the layers: embeddings, and MPNet's bias of positions, which all of its layers share.
BELOW = re.compile(r"embedding|relative_attention_bias")


class ScorerTrainer(Trainer):
    """Trains a scorer.

    Raises:
        ValueError: at once, if more layers are to be frozen than there are; in training, once the loss is no finite number;
            what was saved before stays.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Our losses are means over pairs: unlike language models', they are yet to be divided among accumulated batches.
        self.model_accepts_loss_kwargs = False
        self.loss_is_scaled_for_ga = False
        # What FSDP shards one by one, of whatever encoder. Models of `transformers` name their embeddings too, which
        # accelerate shards by itself, and cannot shard twice; a pre-training model would be sharded as a whole.
        trained: Any = self.model
        trained._no_split_modules = layer_classes(trained)
        if self.args.device.type == "cpu":
            choose_attention(trained, "eager")  # the backward pass of torch's own takes longer there
        freeze_layers(trained, getattr(self.args, "frozen_layers", 0))
        if getattr(self.args, "frozen_head", False):
            freeze_head(trained)
        dropout = getattr(self.args, "dropout", None)
        if dropout is not None:
            for module in trained.modules():
                if isinstance(module, nn.Dropout):
                    module.p = dropout

    def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
        """Return the order of the pairs; where their lengths decide it, these are read at once, not one by one in each pass."""
        sampler = super()._get_train_sampler(*args, **kwargs)
        if (lengths := getattr(sampler, "lengths", None)) is not None:
            cast("Any", sampler).lengths = lengths[:]  # a list, of a column of `datasets` too
        return sampler

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Do one step, and stop if the loss is no finite number."""
        loss = super().training_step(*args, **kwargs)
        if not torch.isfinite(loss):
            raise ValueError(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: lower the learning rate, or look "
                f"for ratings out of range; checkpoints in {self.args.output_dir} are from before"
            )
        return loss

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Tensor | int | None]:
        """Return the batches of the next step; none where a resumed run was killed after its last step."""
        return ([], None) if self._is_over() else super().get_batch_samples(*args, **kwargs)

    def _is_over(self) -> bool:
        patient = (call for call in self.callback_handler.callbacks if isinstance(call, EarlyStoppingCallback))
        return self.state.global_step >= self.state.max_steps or any(
            call.early_stopping_patience_counter >= call.early_stopping_patience for call in patient
        )

    def prediction_step(self, *args: Any, **kwargs: Any) -> tuple[None, Any, Any]:
        """Predict a batch; the loss is left to `compute_metrics`, which sees each pair once."""
        _, predictions, labels = super().prediction_step(*args, **kwargs)
        return None, predictions, labels

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Make the Trainer's optimizer; with `layer_decay` below 1, lower layers take smaller steps."""
        decay = getattr(self.args, "layer_decay", 1.0)
        if decay != 1.0 and self.optimizer is None:
            trained: Any = self.model
            kind, options = self.get_optimizer_cls_and_kwargs(self.args, trained)
            self.optimizer = kind(
                layer_groups(trained, self.args.learning_rate, decay, self.args.weight_decay), **options
            )
        return super().create_optimizer()


def choose_attention(model: nn.Module, name: str) -> None:
    """Let the encoder of a model compute attention by the implementation of that name in `transformers`."""
    encoder = next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)
    if encoder is not None:
        encoder.set_attn_implementation(name)


def layer_classes(model: nn.Module) -> list[str]:
    """Return the class names of a model's transformer layers, such as "BertLayer"."""
    modules = model.named_modules()
    return sorted(
        {
            type(module).__name__
            for name, module in modules
            if (found := LAYER.search(f"{name}.")) and found.end() > len(name)
        }
    )


def freeze_layers(model: nn.Module, number: int) -> None:
    """Keep the weights of the lowest layers, and of the embeddings, from training; 0 freezes nothing.

    Args:
        model: whose parameters are named "...layer.N..." within the encoder.
        number: of layers.

    Raises:
        ValueError: if it has not so many.
    """
    layers = {name: int(found[1]) for name, _ in model.named_parameters() if (found := LAYER.search(name))}
    depth = 1 + max(layers.values(), default=-1)
    if not 0 <= number <= depth:
        raise ValueError(f"frozen_layers must be from 0 to the model's {depth} layers, found {number}")
    for name, parameter in model.named_parameters() if number else ():
        if layers.get(name, depth) < number or (name not in layers and BELOW.search(name)):
            parameter.requires_grad_(False)


def freeze_head(model: nn.Module) -> None:
    """Keep what stands above the encoder from training, so that two models differ within the encoder alone."""
    encoder = next(module for module in model.modules() if isinstance(module, PreTrainedModel)).base_model
    inside = {id(parameter) for parameter in encoder.parameters()}
    for parameter in model.parameters():
        if id(parameter) not in inside:
            parameter.requires_grad_(False)


def layer_groups(model: nn.Module, rate: float, decay: float, weight_decay: float = 0.0) -> list[dict[str, Any]]:
    """Group the parameters by layer, each with its learning rate: the head's is full, each layer below takes `decay` of it.

    Args:
        model: whose parameters are named "...layer.N..." within the encoder.
        rate: of the head.
        decay: factor from a layer to the one below it.
        weight_decay: of all.

    Returns:
        parameter groups for an optimizer, the embeddings' last.
    """
    depth = 1 + max(
        (int(found[1]) for name, _ in model.named_parameters() if (found := LAYER.search(name))), default=-1
    )
    groups: dict[int, list[nn.Parameter]] = defaultdict(list)
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            found = LAYER.search(name)
            # steps below the head: 0 for the head and the pooler, `depth + 1` for the embeddings
            below = depth - int(found[1]) if found else (depth + 1 if "embedding" in name else 0)
            groups[below].append(parameter)
    return [
        {"params": groups[below], "lr": rate * decay**below, "weight_decay": weight_decay} for below in sorted(groups)
    ]


class PretrainingTrainer(ScorerTrainer):
    """Trains a `PretrainingModel`, and logs the loss of each task by its name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs, compute_metrics=self._mean_losses)
        self._task_losses: dict[str, list[Tensor]] = defaultdict(list)
        trained: Any = self.model
        self._weights = {task.name: trained.gammas[task.group] for task in trained.tasks}

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the total loss; keep those of the tasks for the log."""
        outputs = model(**inputs)
        for name in self._weights if model.training else ():
            self._task_losses[f"loss_{name}"].append(outputs[f"loss_{name}"].detach().mean())
        return (outputs["loss"], outputs) if return_outputs else outputs["loss"]

    def prediction_step(
        self, model: nn.Module, inputs: dict[str, Any], *_: Any, **__: Any
    ) -> tuple[None, Tensor, Tensor]:
        """Compute each held-out pair's loss of each task, (pairs, tasks), in the place of predictions."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            outputs = model(**inputs)
        losses = torch.stack([outputs[f"loss_{name}"] for name in self._weights], dim=-1)
        return None, losses, losses  # the Trainer computes measures only where there are labels too

    def _mean_losses(self, prediction: EvalPrediction) -> dict[str, float]:
        means = dict(zip(self._weights, torch.as_tensor(prediction.predictions).mean(dim=0), strict=True))
        named = {f"loss_{name}": mean.item() for name, mean in means.items()}
        return {"loss": multi_task_loss(means, self._weights).item(), **named}

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log, with the mean loss of each task since the last time."""
        if "loss" in logs:
            for name, values in self._task_losses.items():
                logs[name] = torch.stack(values).mean().item()
            self._task_losses.clear()
        super().log(logs, *args, **kwargs)
