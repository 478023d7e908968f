"""Batches of about equal length under a token budget, so that little is computed on padding."""

from __future__ import annotations

from collections.abc import Sequence


def batches_by_tokens(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Group items of similar length so that each padded batch stays within a budget.

    Args:
        lengths: tokens of each item.
        batch_tokens: most tokens of a batch, padding included; an item longer than that gets a batch of its own.

    Returns:
        indices of the items of each batch, the longest items first (memory runs short at once or not at all).
    """
    batches: list[list[int]] = []
    for i in sorted(range(len(lengths)), key=lambda i: (-lengths[i], i)):
        if batches and (len(batches[-1]) + 1) * lengths[batches[-1][0]] <= batch_tokens:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches
