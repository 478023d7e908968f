"""Which words of a candidate pull its score up or down: what the score is without each of them.

Leave-one-out erasure (Li, Monroe and Jurafsky, 2016, https://arxiv.org/abs/1612.08220, section 2): the effect of a word
is the score of the whole candidate minus the score of the candidate without the word. It was chosen over integrated
gradients (https://arxiv.org/abs/1703.01365) because it asks nothing of a model but scores, so that it holds for any
checkpoint, with sources and with several references, and because the number means what it says: it depends on no
baseline input and no number of steps. It costs one more pair for each word. Its limits: words that say the same hide
each other, since without one the other still says it; and a word that grammar needs may seem better than it is, since
the candidate without it loses points of its own.

Words of a text with their places in it, for showing what a score is made of; no tokeniser of any checkpoint.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bleurt_repro.metric.compare.compare import Scores

# Scripts written without spaces in which a letter is about a word: kana and Chinese characters.
LETTER_WORDS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"[{LETTER_WORDS}]|[^\s{LETTER_WORDS}]+")


class Span(NamedTuple):
    """A stretch of a text: the index of its first character and that after its last."""

    start: int
    end: int


def words(text: str) -> list[Span]:
    """Find the words and the punctuation marks of a text.

    Args:
        text: of any script: what stands between spaces is a word, without the marks at either end, which stand for
            themselves; each Chinese character or kana is a word.

    Returns:
        their places, in order; together they cover everything but white space.
    """
    return [span for run in _RUN.finditer(text) for span in _parts(text, *run.span())]


def without(text: str, span: Span) -> str:
    """Take a word out of a text so that what is left is spaced as text is: no gap, no words run together."""
    before, after = text[: span.start], text[span.end :]
    spaced = not before or before[-1].isspace()
    if spaced and (not after or after[0].isspace()):
        return f"{before.rstrip()}{after}" if before.strip() else after.lstrip()
    if spaced and _is_mark(after[0]) and not _is_mark(text[span.start]):
        return before.rstrip() + after  # "the mat." becomes "the."
    return before + after


def _parts(text: str, start: int, end: int) -> list[Span]:
    first, last = start, end
    while first < last and _is_mark(text[first]):
        first += 1
    while last > first and _is_mark(text[last - 1]):
        last -= 1
    marks_before = [Span(i, i + 1) for i in range(start, first)]
    marks_after = [Span(i, i + 1) for i in range(last, end)]
    return [*marks_before, *([Span(first, last)] if first < last else []), *marks_after]


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "PS"


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
