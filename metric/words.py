"""Words of a text with their places in it, for showing what a score is made of; no tokeniser of any checkpoint."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

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
