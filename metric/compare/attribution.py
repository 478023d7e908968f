"""Estimate which words of a candidate lower its score, and which missing words do.

The candidate is aligned with its reference word by word. Each stretch where they differ is put into the reference, alone: the
fall of the score is the cost of that stretch. A stretch is a few words in place of others, words that the reference does not
have, or words that are missing from the candidate.

    reference    The minister welcomed the new law.
    candidate    The minister rejected the law.
    scored       The minister rejected the new law.     the cost of "rejected" in place of "welcomed"
                 The minister welcomed the law.         the cost of the missing "new"

Like leave-one-out erasure (Li, Monroe and Jurafsky, 2016, https://arxiv.org/abs/1612.08220, section 2) it needs only scores,
so that it works with any checkpoint, with sources and with several references. Erasure compares a candidate with one that
has a hole; this compares two whole sentences, and it finds missing words.

Its limit: words that only moved look like extra words in one place and missing words in another. The missing ones are left
out, and the costs of a candidate are scaled down if their sum is more than the candidate's distance from the reference.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, NamedTuple, Protocol

import regex

from bleurt_repro.metric.scorer import ScoringResult

# Scripts without spaces in which a letter is about a word: kana (with voicing marks) and Chinese characters (with variation
# selectors).
_LETTER_WORDS = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_VARIANTS = r"\u3099\u309a\ufe00-\ufe0f\U000e0100-\U000e01ef"
_RUN = re.compile(rf"[{_LETTER_WORDS}][{_VARIANTS}]*|[^\s{_LETTER_WORDS}]+")
# One character as a reader sees it, such as a letter with its accents or an emoji of several code points (UAX 29).
_CLUSTER = regex.compile(r"\X")

# Largest number of stretches that are scored; neighbours are merged if a candidate has more.
MAX_STRETCHES = 64


class Computes(Protocol):
    """What the attribution needs of a scorer: `BleurtScorer`, or any object with its `compute`."""

    @property
    def compute(self) -> Callable[..., ScoringResult]:
        """Score candidates, given `references=`, `candidates=` and, for a checkpoint that reads them, `sources=`."""
        ...


class Span(NamedTuple):
    """A stretch of a text: the index of its first character, and the index after its last."""

    start: int
    end: int


class Difference(NamedTuple):
    """A stretch where a candidate and its reference differ; it is empty in the text that lacks the words.

    Attributes:
        candidate: span in the candidate.
        reference: span in the reference.
    """

    candidate: Span
    reference: Span


@dataclass(frozen=True)
class Effect:
    """Effect of one stretch of the candidate on its score.

    Attributes:
        start, end: span in the candidate; equal if words are missing.
        text: words of the candidate; empty if words are missing.
        reference: words of the reference in their place; empty if it has none.
        effect: score of the reference with the candidate's words in this place, minus the score of the reference; negative if
            they lower the score.
    """

    start: int
    end: int
    text: str
    reference: str
    effect: float


def attribute(
    scorer: Computes,
    references: str | Sequence[str],
    candidate: str,
    source: str | None = None,
    *,
    max_stretches: int = MAX_STRETCHES,
) -> list[Effect]:
    """Compute the effect of each stretch of a candidate that differs from its reference.

    Args:
        scorer: `BleurtScorer`, or any object with its `compute`.
        references: references of the candidate; it is aligned with the one that it shares most words with.
        candidate: text to explain.
        source: source of the candidate, for a checkpoint that reads sources.
        max_stretches: largest number of stretches; the number of scored pairs is at most two more.

    Returns:
        the effects in the order of the text; none if the texts have the same words.
    """
    reference_list = [references] if isinstance(references, str) else list(references)
    reference = nearest(reference_list, candidate)
    stretches = _merge(differences(reference, candidate), max_stretches)
    if not stretches:
        return []
    texts = [candidate, reference, *(_insert(reference, candidate, stretch) for stretch in stretches)]
    options: dict[str, Any] = {} if source is None else {"sources": [source] * len(texts)}
    result = scorer.compute(references=[reference_list] * len(texts), candidates=texts, **options)
    candidate_score, reference_score, *scores = result.scores
    effects = _scale([score - reference_score for score in scores], candidate_score - reference_score)
    return [
        Effect(*span, candidate[slice(*span)], reference[slice(*reference_span)], effect)
        for (span, reference_span), effect in zip(stretches, effects, strict=True)
    ]


def nearest(references: Sequence[str], candidate: str) -> str:
    """Return the reference that shares most words with the candidate, in order; the first of equals."""
    return max(references, key=lambda reference: sum(block.size for block in _matched_blocks(reference, candidate)))


def differences(reference: str, candidate: str) -> list[Difference]:
    """Align two texts by their words, and find where they differ; case does not count.

    Args:
        reference, candidate: the two texts.

    Returns:
        the stretches, in order. An empty span is after the previous word, or at the beginning of the text. Words that the
        candidate has elsewhere are not missing: only the span where it has them is returned.
    """
    stretches = _unmatched(reference, candidate)
    extra_words = {word for span, _ in stretches for word in _folded_words(candidate[slice(*span)])}
    return [
        stretch
        for stretch in stretches
        if stretch.candidate.start < stretch.candidate.end
        or not extra_words.issuperset(_folded_words(reference[slice(*stretch.reference)]))
    ]


def _unmatched(reference: str, candidate: str) -> list[Difference]:
    reference_spans, candidate_spans = word_spans(reference), word_spans(candidate)
    stretches, i, j = [], 0, 0  # the next words of the reference and the candidate
    for block in _matched_blocks(reference, candidate):  # the last block is empty and ends both texts
        if i < block.a or j < block.b:
            stretches.append(Difference(_span(candidate_spans, j, block.b), _span(reference_spans, i, block.a)))
        i, j = block.a + block.size, block.b + block.size
    return stretches


def word_spans(text: str) -> list[Span]:
    """Find the words and the punctuation marks of a text.

    Args:
        text: text in any script. A word is what is between spaces, without the punctuation marks at either end, which are
            words of their own, as are emoji; each Chinese character or kana is a word.

    Returns:
        their spans, in order; together they cover all but white space.
    """
    return [span for run in _RUN.finditer(text) for span in _split_run(text, *run.span())]


def _split_run(text: str, start: int, end: int) -> list[Span]:
    """Split a text without spaces into the marks before it, the word, and the marks after it."""
    clusters = [Span(*match.span()) for match in _CLUSTER.finditer(text, start, end)]
    inner = [i for i, cluster in enumerate(clusters) if not _is_mark(text[cluster.start])]
    if not inner:
        return clusters
    first, last = inner[0], inner[-1]
    return [*clusters[:first], Span(clusters[first].start, clusters[last].end), *clusters[last + 1 :]]


def _is_mark(letter: str) -> bool:
    return unicodedata.category(letter)[0] in "PS"


def _matched_blocks(reference: str, candidate: str) -> list[Any]:
    """Return the blocks of words that two texts share in the same order; their indices count words."""
    matcher = SequenceMatcher(None, _folded_words(reference), _folded_words(candidate), autojunk=False)
    return matcher.get_matching_blocks()


def _folded_words(text: str) -> list[str]:
    """Return the words of a text without upper and lower case."""
    return [text[start:end].casefold() for start, end in word_spans(text)]


def _span(spans: Sequence[Span], first: int, last: int) -> Span:
    """Return the span of the words from `first` up to but not including `last`."""
    if first < last:
        return Span(spans[first].start, spans[last - 1].end)
    position = spans[first - 1].end if first else 0
    return Span(position, position)


def _merge(stretches: list[Difference], most: int) -> list[Difference]:
    """Merge neighbours so that there are at most `most` stretches."""
    size = max(1, math.ceil(len(stretches) / most))
    groups = [stretches[i : i + size] for i in range(0, len(stretches), size)]
    return [
        Difference(*(Span(first.start, last.end) for first, last in zip(group[0], group[-1], strict=True)))
        for group in groups
    ]


def _insert(reference: str, candidate: str, stretch: Difference) -> str:
    """Return the reference with the candidate's words in one stretch, with the spaces that text has."""
    span, reference_span = stretch
    before, after = reference[: reference_span.start], reference[reference_span.end :]
    if span.start == span.end:
        return (before.rstrip() + after) if before.strip() else after.lstrip()
    text = candidate[slice(*span)]
    if reference_span.start == reference_span.end:  # nothing is replaced: keep the space that the candidate has
        gap = candidate[span.start - 1].isspace() if span.start else not _is_mark(text[0])
        text = f" {text}" if before and gap else text
        text = f"{text} " if not before and not after[:1].isspace() else text
    return before + text + after


def _scale(costs: list[float], distance: float) -> list[float]:
    """Scale costs down if their sum is more than the candidate's distance from the reference; both are negative."""
    total = sum(cost for cost in costs if cost < 0)
    scale = min(1.0, min(distance, 0.0) / total) if total else 1.0
    return [cost * scale if cost < 0 else cost for cost in costs]
