"""Tell a lack of memory, by whichever name a library gives it, from other errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from bleurt_repro.metric.encoding import Encoded

# Of torch's CPU allocator, of CUDA where it is no OutOfMemoryError (pinned memory), of oneDNN and of ONNX Runtime.
MESSAGES = (
    "can't allocate memory",
    "not enough memory",
    "out of memory",
    "failed to allocate memory",
    "bad_alloc",
    "bad allocation",
)


def is_lack_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that memory ran short."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, Exception) and any(message in str(error).lower() for message in MESSAGES)


def scored_if_it_fits(forward: Callable[[Sequence[Encoded]], Tensor], batch: Sequence[Encoded]) -> Tensor | None:
    """Score a batch, or give None if memory does not suffice for it; what was taken for it is then free again.

    Args:
        forward: gives (pairs,) scores.
        batch: the model's inputs.
    """
    import torch

    try:
        return forward(batch)
    except Exception as error:
        if not is_lack_of_memory(error):
            raise
    # Only here, for within the handler the error holds on to the tensors of what failed.
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return None
