"""Cut running text into sentences, by a rule that is short enough to state.

A line is a paragraph; lines that do not end in . ! or ? (headings, list items, captions) are left out. A paragraph is
cut after . ! or ?, with closing quotes and brackets, where a blank and then a capital letter, a digit, or an opening
quote or bracket follow - but not after a single capital (an initial), nor after a common abbreviation.
"""

from __future__ import annotations

import re

# Written before the full stop, lower-cased.
ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof st sr jr gen col lt sgt capt rev hon sen rep gov pres vs etc cf al ca approx no vol pp ed eds "
    "fig inc ltd co corp dept univ est mt ft jan feb mar apr jun jul aug sep sept oct nov dec e.g i.e u.s u.k".split()
)
ENDS = re.compile(r"[.!?][\"')\]\u201d\u2019]*$")
CUTS = re.compile(r"([.!?][\"')\]\u201d\u2019]*)\s+(?=[\"'(\[\u201c\u2018]?[A-Z\u00c0-\u00de0-9])")
LAST_WORD = re.compile(r"([^\s(\[\"'\u201c\u2018]+)$")


def split_sentences(text: str) -> list[str]:
    """Give the sentences of a text in order.

    Args:
        text: paragraphs, one a line.
    """
    return [
        sentence for line in text.splitlines() if ends_sentence(line) for sentence in _split_paragraph(line.strip())
    ]


def ends_sentence(line: str) -> bool:
    """Say whether a line ends as a sentence does."""
    return ENDS.search(line.strip()) is not None


def _split_paragraph(paragraph: str) -> list[str]:
    sentences, start = [], 0
    for cut in CUTS.finditer(paragraph):
        if cut.group(1).startswith(".") and _abbreviated(paragraph[start : cut.start()]):
            continue
        sentences.append(paragraph[start : cut.end(1)])
        start = cut.end()
    return [*sentences, paragraph[start:]]


def _abbreviated(before: str) -> bool:
    """Whether the full stop after this text belongs to an abbreviation or an initial."""
    found = LAST_WORD.search(before)
    word = found.group(1) if found else ""
    return word.lower() in ABBREVIATIONS or (len(word) == 1 and word.isupper())
