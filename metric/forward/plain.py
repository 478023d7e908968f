"""The forward pass of any checkpoint, on any device, by its own `transformers` model: one padded batch per call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from bleurt_repro.metric.forward.encoding import Encoded
from bleurt_repro.metric.layout import readable_positions

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# On a GPU lengths are rounded up: tensor cores want multiples of 8, and few shapes mean few choices of kernels.
GPU_LENGTH_STEP = 8


class PlainForward:
    """Score pairs by the model's own forward method.

    Args:
        model: sequence classifier of one label.
        padding_id: id of the token that fills the ends of the shorter pairs.
    """

    def __init__(self, model: PreTrainedModel, padding_id: int | None) -> None:
        self._model = model
        self._padding_id = padding_id or 0
        self._on_gpu = model.device.type == "cuda"
        self._reads_segments = getattr(model.config, "type_vocab_size", 0) > 1
        self._most_positions = readable_positions(model.config)

    def __call__(self, pairs: Sequence[Encoded]) -> Tensor:
        """Score pairs; nothing here waits for a GPU.

        Args:
            pairs: inputs of the model.

        Returns:
            (pairs,) float32, on the model's device.
        """
        names = ("input_ids", "attention_mask") + (("token_type_ids",) if self._reads_segments else ())
        inputs = dict(zip(names, self._padded(pairs), strict=False))
        if self._on_gpu:  # pinned memory lets the copy run beside the computation
            inputs = {name: tensor.pin_memory() for name, tensor in inputs.items()}
        inputs = {name: tensor.to(self._model.device, non_blocking=True) for name, tensor in inputs.items()}
        return self._model(**inputs).logits[:, 0].float()

    def _padded(self, pairs: Sequence[Encoded]) -> tuple[Tensor, Tensor, Tensor]:
        """Return token ids, attention mask and segment ids; (pairs, longest) each."""
        longest = padded_length(max(len(pair.ids) for pair in pairs), self._on_gpu, self._most_positions)
        ids = torch.full((len(pairs), longest), self._padding_id)
        mask, segments = torch.zeros_like(ids), torch.zeros_like(ids)
        for row, pair in enumerate(pairs):
            length = len(pair.ids)
            ids[row, :length] = torch.tensor(pair.ids)
            segments[row, :length] = torch.tensor(pair.segments)
            mask[row, :length] = 1
        return ids, mask, segments


def padded_length(longest: int, on_gpu: bool, most: int | None = None) -> int:
    """Return the length that the pairs of a batch are padded to.

    Args:
        longest: number of tokens of the longest pair.
        on_gpu: whether to round up to one of few lengths.
        most: number of positions that the model has.
    """
    if not on_gpu:
        return longest
    rounded = -(-longest // GPU_LENGTH_STEP) * GPU_LENGTH_STEP
    return rounded if most is None else max(longest, min(rounded, most))
