"""The Trainers. They add what our models need to that of `transformers`: a stop when the loss is not finite, frozen
layers, dropout, the faster attention, and the loss of each task by its name.

Validation losses are means over pairs, whatever the number of processes. The Trainer's own are means over batches, and where
pairs are repeated so that all processes get full batches, the repeated ones count twice. So the loss (or prediction) of each
pair is gathered, without the repeated ones, and averaged at the end.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import EarlyStoppingCallback, EvalPrediction, PreTrainedModel, Trainer

from bleurt_repro.training.losses import multi_task_loss

LAYER = re.compile(r"\.(?:layer|layers|h)\.(\d+)\.")
# Parameters below the layers: embeddings, and MPNet's bias of positions, which all of its layers share.
BELOW_LAYERS = re.compile(r"embedding|relative_attention_bias")


class ScorerTrainer(Trainer):
    """Trains a scorer: a sequence classifier with one label whose loss is a mean over pairs.

    It takes the arguments of `transformers.Trainer`. `args` may be `FinetuningArguments`, whose `frozen_layers` and
    `dropout` it follows, or plain `TrainingArguments`.

    Raises:
        ValueError: if more layers are to be frozen than there are; and in training, when the loss is not finite: earlier
            checkpoints stay.

    Example:
        >>> trainer = ScorerTrainer(
        ...     model=model, args=args, train_dataset=data, data_collator=PairCollator(tokenizer, {"score": "labels"})
        ... )  # doctest: +SKIP
        >>> trainer.train()  # doctest: +SKIP
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Our losses are means over pairs: unlike those of language models, they are not yet divided among accumulated batches.
        self.model_accepts_loss_kwargs = False
        self.loss_is_scaled_for_ga = False
        # FSDP shards each layer of any encoder. Models of `transformers` name their embeddings too, which accelerate shards by
        # itself and cannot shard twice; a pre-training model would be sharded as a whole.
        model: Any = self.model
        model._no_split_modules = layer_classes(model)
        if self.args.device.type == "cpu":
            choose_attention(model, "eager")  # the backward pass of torch's own attention takes longer there
        freeze_layers(model, getattr(self.args, "frozen_layers", 0))
        dropout = getattr(self.args, "dropout", None)
        if dropout is not None:
            for module in model.modules():
                if isinstance(module, nn.Dropout):
                    module.p = dropout

    def _get_train_sampler(self, *args: Any, **kwargs: Any) -> Any:
        """Return the order of the pairs; lengths that decide it are read at once, not one by one in each epoch."""
        sampler = super()._get_train_sampler(*args, **kwargs)
        if (lengths := getattr(sampler, "lengths", None)) is not None:
            cast("Any", sampler).lengths = lengths[:]  # a list, also of a column of `datasets`
        return sampler

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """Do one step, and stop if the loss is not finite."""
        loss = super().training_step(*args, **kwargs)
        if not torch.isfinite(loss):
            raise ValueError(
                f"the loss became {loss.item()} at step {self.state.global_step + 1}: lower the learning rate, or look "
                f"for ratings out of range; checkpoints in {self.args.output_dir} are from before"
            )
        return loss

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Any],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """Return the loss of a batch; with a weight per pair, the mean of the weighted squared errors."""
        weights = inputs.pop("weight", None)
        if weights is None:
            return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)
        outputs = model(**inputs)
        errors = outputs.logits.float().squeeze(-1) - inputs["labels"]
        loss = (weights * errors.square()).mean()
        return (loss, outputs) if return_outputs else loss

    def get_batch_samples(self, *args: Any, **kwargs: Any) -> tuple[list[Any], Tensor | int | None]:
        """Return the batches of the next step; none where a resumed run was killed after its last step."""
        return ([], None) if self._is_over() else super().get_batch_samples(*args, **kwargs)

    def _is_over(self) -> bool:
        stoppings = (call for call in self.callback_handler.callbacks if isinstance(call, EarlyStoppingCallback))
        return self.state.global_step >= self.state.max_steps or any(
            call.early_stopping_patience_counter >= call.early_stopping_patience for call in stoppings
        )

    def prediction_step(self, *args: Any, **kwargs: Any) -> tuple[None, Any, Any]:
        """Predict a batch; the loss is left to `compute_metrics`, which sees each pair once."""
        _, predictions, labels = super().prediction_step(*args, **kwargs)
        return None, predictions, labels


def choose_attention(model: nn.Module, name: str) -> None:
    """Let the encoder of a model compute attention by one of the implementations in `transformers`, such as "eager"."""
    encoder = next((module for module in model.modules() if isinstance(module, PreTrainedModel)), None)
    if encoder is not None:
        encoder.set_attn_implementation(name)


def layer_classes(model: nn.Module) -> list[str]:
    """Return the class names of a model's transformer layers, such as "BertLayer"."""
    classes = set()
    for name, module in model.named_modules():
        match = LAYER.search(f"{name}.")
        if match and match.end() > len(name):  # the layer itself, not a module inside it
            classes.add(type(module).__name__)
    return sorted(classes)


def freeze_layers(model: nn.Module, number: int) -> None:
    """Exclude the lowest layers and the embeddings from training; 0 freezes nothing.

    Args:
        model: model whose parameters are called "...layer.N..." in the encoder.
        number: number of layers.

    Raises:
        ValueError: if the model has fewer layers.
    """
    layers = {name: int(match[1]) for name, _ in model.named_parameters() if (match := LAYER.search(name))}
    depth = 1 + max(layers.values(), default=-1)
    if not 0 <= number <= depth:
        raise ValueError(f"frozen_layers must be from 0 to the model's {depth} layers, found {number}")
    for name, parameter in model.named_parameters() if number else ():
        if layers.get(name, depth) < number or (name not in layers and BELOW_LAYERS.search(name)):
            parameter.requires_grad_(False)


class PretrainingTrainer(ScorerTrainer):
    """Trains a `PretrainingModel`, and logs the loss of each task by its name.

    It takes the arguments of `transformers.Trainer`. Validation measures are the losses; `compute_metrics` may add others: it
    gets the losses of each pair as predictions, of shape (pairs, tasks).
    """

    def __init__(
        self,
        *args: Any,
        compute_metrics: Callable[[EvalPrediction], dict[str, float]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs, compute_metrics=self._mean_losses)
        self._more_metrics = compute_metrics
        self._task_losses: dict[str, list[Tensor]] = defaultdict(list)
        model: Any = self.model
        self._weights = {task.name: model.gammas[task.group] for task in model.tasks}

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
        """Compute the loss of each held-out pair and task, shape (pairs, tasks), in place of predictions."""
        inputs = self._prepare_inputs(inputs)
        with torch.no_grad(), self.compute_loss_context_manager():
            outputs = model(**inputs)
        losses = torch.stack([outputs[f"loss_{name}"] for name in self._weights], dim=-1)
        return None, losses, losses  # the Trainer computes measures only where there are labels too

    def _mean_losses(self, prediction: EvalPrediction) -> dict[str, float]:
        means = dict(zip(self._weights, torch.as_tensor(prediction.predictions).mean(dim=0), strict=True))
        losses = {f"loss_{name}": mean.item() for name, mean in means.items()}
        further = self._more_metrics(prediction) if self._more_metrics else {}
        return {"loss": multi_task_loss(means, self._weights).item(), **losses, **further}

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """Log, with the mean loss of each task since the last time, over all processes."""
        if "loss" in logs:
            for name, values in self._task_losses.items():
                mean = self.accelerator.gather(torch.stack(values).mean())
                logs[name] = cast("Tensor", mean).mean().item()
            self._task_losses.clear()
        super().log(logs, *args, **kwargs)
