"""The losses: squared error and ranking for ratings, the multi-task loss for signals.

Fine-tuning minimises the squared error (BLEURT, section 3), which is the loss of `transformers`' own regression head, or
with `--loss ranking` the ranking loss of the official release. Pre-training minimises the multi-task loss (BLEURT,
section 4.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

# The official release cuts predictions to this range when it trains for ranking; the loss itself does not bound them
# (https://github.com/google-research/bleurt/blob/master/bleurt/model.py).
RANKING_RANGE = (0.0, 1.0)


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
