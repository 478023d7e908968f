"""The ranking loss that the official release offers beside squared error (`--loss ranking`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.nn import functional

if TYPE_CHECKING:
    from torch import Tensor

# The official release trains for ranking with predictions cut to this range: the loss itself does not hold them
# (https://github.com/google-research/bleurt/blob/master/bleurt/model.py).
RANKING_RANGE = (0.0, 1.0)


def ranking_loss(predictions: Tensor, ratings: Tensor, clip: tuple[float, float] | None = RANKING_RANGE) -> Tensor:
    """Give the mean of -log sigmoid(better - worse) over all pairs of a batch that people rated differently.

    Stiennon et al., 2020, https://arxiv.org/abs/2009.01325, section 3.4. The official release counts a pair of equal
    ratings as if the second were better; here such pairs say nothing and are left out.

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
        return predictions.sum() * 0.0
    return functional.softplus(-gaps[better]).mean()
