"""Word dropping, which imitates void or truncated outputs of a generator (BLEURT, section 4.1 and A.1)."""

from __future__ import annotations

import numpy as np

# BLEURT, A.1: "about 30 % of the data generated with the previous method".
DROPPING_RATE = 0.3


def drop_words(text: str, random: np.random.Generator) -> str:
    """Drop random words of a text; their number is uniform from none to all.

    Args:
        text: words separated by blanks.
        random: generator that decides how many words are dropped, and which.

    Returns:
        The remaining words in order, separated by one blank; empty if all were dropped.
    """
    tokens = text.split()
    dropped = random.integers(0, len(tokens), endpoint=True)
    remaining = np.sort(random.permutation(len(tokens))[dropped:])
    return " ".join(tokens[i] for i in remaining)
