"""Which words of a candidate pull its score up or down: what the score is without each of them.

Leave-one-out erasure (Li, Monroe and Jurafsky, 2016, https://arxiv.org/abs/1612.08220, section 2): the effect of a word
is the score of the whole candidate minus the score of the candidate without the word. It was chosen over integrated
gradients (https://arxiv.org/abs/1703.01365) because it asks nothing of a model but scores, so that it holds for any
checkpoint, with sources and with several references, and because the number means what it says: it depends on no
baseline input and no number of steps. It costs one more pair for each word. Its limits: words that say the same hide
each other, since without one the other still says it; and a word that grammar needs may seem better than it is, since
the candidate without it loses points of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bleurt_repro.metric.compare import Scores
from bleurt_repro.metric.words import Span, without, words

# Most pieces a candidate is taken apart into, and so most pairs that an attribution scores beside the whole.
MAX_PIECES = 64


@dataclass(frozen=True)
class Effect:
    """What one piece of the candidate does to the score.

    Attributes:
        start, end: its place in the candidate.
        text: the piece: a word, a punctuation mark or, in a long candidate, several words in a row.
        effect: the whole's score minus the score without it; positive if it pulls the score up.
    """

    start: int
    end: int
    text: str
    effect: float


def attribute(
    scorer: Scores,
    references: str | Sequence[str],
    candidate: str,
    source: str | None = None,
    *,
    max_pieces: int = MAX_PIECES,
) -> list[Effect]:
    """Say what each word of a candidate does to its score.

    Args:
        scorer: what scores.
        references: of the candidate.
        candidate: the text to take apart.
        source: what it was made from, for a checkpoint that reads sources.
        max_pieces: the bound on the cost: a longer candidate is taken apart into runs of words.

    Returns:
        the effects in the order of the text; none for a blank candidate. A piece beyond what the checkpoint reads has 0.
    """
    spans = pieces(candidate, max_pieces)
    if not spans:
        return []
    texts = [candidate, *(without(candidate, span) for span in spans)]
    several = [references] if isinstance(references, str) else list(references)
    options: dict[str, Any] = {} if source is None else {"sources": [source] * len(texts)}
    whole, *rest = scorer.compute(references=[several] * len(texts), candidates=texts, **options).scores
    return [
        Effect(span.start, span.end, candidate[span.start : span.end], whole - score)
        for span, score in zip(spans, rest, strict=True)
    ]


def pieces(text: str, most: int = MAX_PIECES) -> list[Span]:
    """Take a text apart into its words or, if they are more than `most`, into runs of as many words as it takes."""
    spans = words(text)
    size = math.ceil(len(spans) / most)
    return [Span(spans[i].start, spans[min(i + size, len(spans)) - 1].end) for i in range(0, len(spans), size or 1)]
