"""Word dropping: void or cut-off outputs of a generator, imitated (BLEURT, section 4.1 and A.1)."""

from __future__ import annotations

import numpy as np

# BLEURT, A.1: "about 30 % of the data generated with the previous method".
DROPPING_RATE = 0.3


def drop_words(text: str, random: np.random.Generator) -> str:
    """Drop a number of words, uniform from none to all, from random places.

    Args:
        text: words between blanks.
        random: decides how many and which.

    Returns:
        the words that remain, in order, one blank between them; empty if all were dropped.
    """
    words = text.split()
    dropped = random.integers(0, len(words), endpoint=True)
    kept = np.sort(random.permutation(len(words))[dropped:])
    return " ".join(words[i] for i in kept)
