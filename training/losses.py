"""The losses, and what validation measures: squared error and ranking for ratings, the multi-task loss for signals.

Fine-tuning minimises the squared error (BLEURT, section 3), which is the loss of `transformers`' own regression head, or
with `--loss ranking` the ranking loss of the official release. Pre-training minimises the multi-task loss (BLEURT,
section 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from bleurt_repro.training.metrics.statistics import darr, kendall_tau, pearson_r

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import EvalPrediction
    from transformers.modeling_outputs import SequenceClassifierOutput

    from bleurt_repro.datasets_builders.ratings.relative_ranks import RankIndices

    Measure = Callable[[EvalPrediction], dict[str, float]]

# The official release cuts predictions to this range when it trains for ranking; the loss itself does not bound them
# (https://github.com/google-research/bleurt/blob/master/bleurt/model.py).
RANKING_RANGE = (0.0, 1.0)
RANKED_TOGETHER = 128  # validation ratings that are compared with each other when the ranking loss is measured


def multi_task_loss(losses: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """Compute the weighted sum of the tasks' losses (BLEURT, section 4.3).

    Args:
        losses: loss of each task, all of the same shape.
        weights: weight gamma by task, that of the task's group.

    Returns:
        the total loss, of the same shape.
    """
    return torch.stack([weights[name] * loss for name, loss in losses.items()]).sum(dim=0)


def regression_losses(predictions: Tensor, targets: Tensor) -> Tensor:
    """Compute the squared error of each pair, averaged over the numbers of a signal.

    Args:
        predictions, targets: shape (pairs, size); targets are standardised.

    Returns:
        shape (pairs,).
    """
    return functional.mse_loss(predictions, targets, reduction="none").mean(dim=-1)


def classification_losses(predictions: Tensor, targets: Tensor) -> Tensor:
    """Compute the cross-entropy of each pair with the probabilities of a teacher.

    Args:
        predictions: logits, shape (pairs, classes).
        targets: probabilities, shape (pairs, classes).

    Returns:
        shape (pairs,).
    """
    return functional.cross_entropy(predictions, targets, reduction="none")


def ranking_loss(predictions: Tensor, ratings: Tensor, clip: tuple[float, float] | None = RANKING_RANGE) -> Tensor:
    """Compute the mean of -log sigmoid(better - worse) over all pairs of a batch that people rated differently.

    Stiennon et al., 2020, https://arxiv.org/abs/2009.01325, section 3.4. The official release counts a pair of equal
    ratings as if the second were better; here such pairs are left out.

    Args:
        predictions, ratings: shape (pairs,).
        clip: range that predictions are cut to first, or None.

    Returns:
        the loss, of shape (); 0 for a batch whose ratings are all equal.
    """
    if clip is not None:
        predictions = predictions.clamp(*clip)
    gaps = predictions[:, None] - predictions[None, :]  # (pairs, pairs)
    better = ratings[:, None] > ratings[None, :]
    if not better.any():
        return predictions.sum() * 0.0  # keeps the graph, so that the step can be taken
    return functional.softplus(-gaps[better]).mean()  # softplus(-x) = -log sigmoid(x)


def loss_function(name: str, clip: bool = True) -> Callable[..., Tensor] | None:
    """Return a loss of ratings for the Trainer; None for the model's own, the squared error.

    Args:
        name: "regression" or "ranking".
        clip: whether the ranking loss cuts predictions to `RANKING_RANGE`.
    """
    if name == "regression":
        return None

    def compute(outputs: SequenceClassifierOutput, labels: Tensor, **_: Any) -> Tensor:
        assert outputs.logits is not None
        return ranking_loss(outputs.logits.float().squeeze(-1), labels, RANKING_RANGE if clip else None)

    return compute


def validation_measures(
    name: str, clip: bool = True, ranks: RankIndices | None = None, compute_metrics: Measure | None = None
) -> Measure:
    """Return the function that computes loss, Kendall tau and Pearson r of a validation, for the Trainer.

    Args:
        name, clip: loss, as `loss_function` takes it.
        ranks: indices of better and of worse validation ratings; with them, daRR is computed too.
        compute_metrics: function that computes further measures.
    """

    def measure(prediction: EvalPrediction) -> dict[str, float]:
        scores, targets = np.ravel(prediction.predictions), np.ravel(prediction.label_ids)
        if name == "regression":
            loss = float(np.mean((scores - targets) ** 2))
        else:
            limits = RANKING_RANGE if clip else None
            batches = zip(
                *(torch.as_tensor(values).split(RANKED_TOGETHER) for values in (scores, targets)), strict=True
            )
            loss = float(np.mean([ranking_loss(predicted, rated, limits).item() for predicted, rated in batches]))
        measures = {"loss": loss, "kendall_tau": 0.0, "pearson_r": 0.0}
        if np.ptp(scores) > 0:  # a model may be constant at the start: no agreement, but no reason to end the run
            measures |= {"kendall_tau": kendall_tau(scores, targets), "pearson_r": pearson_r(scores, targets)}
        if ranks:
            measures["darr"] = darr(*(scores[indices] for indices in ranks))
        return measures | (compute_metrics(prediction) if compute_metrics else {})

    return measure
