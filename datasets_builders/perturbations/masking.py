"""Which words of a text to mask: scattered ones, or a contiguous run (BLEURT, A.1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bleurt_repro.datasets_builders.perturbations import names

# BLEURT, A.1: "In both cases, we use up to 15 masks per sentence."
MAX_MASKS = 15


def choose_scattered(sizes: Sequence[int], max_masks: int, random: np.random.Generator) -> list[int]:
    """Choose random words, their number uniform from one to as many as there may be masks.

    Args:
        sizes: tokens of each word; a word takes one mask a token.
        max_masks: most tokens of the chosen words together.
        random: decides how many and which.

    Returns:
        the indices of the chosen words in ascending order; none if no word fits.
    """
    fitting = [i for i, size in enumerate(sizes) if size <= max_masks]
    if not fitting:
        return []
    wanted = random.integers(1, min(max_masks, len(fitting)), endpoint=True)
    chosen: list[int] = []
    room = max_masks
    for i in random.permutation(fitting):
        if len(chosen) < wanted and sizes[i] <= room:
            chosen.append(int(i))
            room -= sizes[i]
    return sorted(chosen)


def choose_contiguous(sizes: Sequence[int], max_masks: int, random: np.random.Generator) -> list[int]:
    """Choose adjacent words: where they start is uniform, and so is how many there are among the numbers that fit.

    Args:
        sizes: tokens of each word; a word takes one mask a token.
        max_masks: most tokens of the chosen words together.
        random: decides where and how many.

    Returns:
        the indices of the chosen words in ascending order; none if no word fits.
    """
    fitting = [i for i, size in enumerate(sizes) if size <= max_masks]
    if not fitting:
        return []
    start = int(random.choice(fitting))
    longest = int(np.searchsorted(np.cumsum(sizes[start:]), max_masks, side="right"))
    return list(range(start, start + int(random.integers(1, longest, endpoint=True))))


STRATEGIES: dict[str, Callable[[Sequence[int], int, np.random.Generator], list[int]]] = {
    names.SCATTERED: choose_scattered,
    names.CONTIGUOUS: choose_contiguous,
}
