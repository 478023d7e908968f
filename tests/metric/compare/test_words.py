"""Words, their places, and texts without them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleurt_repro.metric.compare.attribution import without, words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ('"It\'s a well-known (old) story!"', ['"', "It's", "a", "well-known", "(", "old", ")", "story", "!", '"']),
        ("  two\n words ", ["two", "words"]),
        ("3.5 % of €20", ["3.5", "%", "of", "€", "20"]),
        ("我爱你。ok", ["我", "爱", "你", "。", "ok"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("...", [".", ".", "."]),
        (" ", []),
    ],
)
def test_words(text, expected):
    assert [text[start:end] for start, end in words(text)] == expected


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("the old cat", "old", "the cat"),
        ("the cat", "the", "cat"),
        ("the cat", "cat", "the"),
        ("on the mat.", "mat", "on the."),
        ("on the mat.", ".", "on the mat"),
        ('say "yes" now', '"', 'say yes" now'),
        ("a (big) cat", "big", "a () cat"),
        ("我爱你", "爱", "我你"),
        ("  cat sat", "cat", "sat"),
        ("word", "word", ""),
    ],
)
def test_without_a_word(text, word, expected):
    span = next(span for span in words(text) if text[span.start : span.end] == word)
    assert without(text, span) == expected


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_words_cover_all_but_white_space(text):
    covered = "".join(text[start:end] for start, end in words(text))
    assert covered == "".join(text.split())
    for span in words(text):
        assert len(without(text, span)) < len(text)
