"""Words and their places in texts of any script."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleurt_repro.metric.compare.attribution import word_spans

FAMILY, FLAG, THUMB = "\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\U0001f44d\U0001f3fd"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat sat.", ["The", "cat", "sat", "."]),
        ('"It\'s a well-known (old) story!"', ['"', "It's", "a", "well-known", "(", "old", ")", "story", "!", '"']),
        ("  two\n words ", ["two", "words"]),
        ("3.5 % of €20", ["3.5", "%", "of", "€", "20"]),
        ("我爱你。ok", ["我", "爱", "你", "。", "ok"]),
        ("は\u3099か", ["は\u3099", "か"]),
        ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
        ("שלום, עולם!", ["שלום", ",", "עולם", "!"]),
        ("...", [".", ".", "."]),
        (f"hi{FAMILY}{FLAG}{THUMB}", ["hi", FAMILY, FLAG, THUMB]),
        (f"{THUMB}{THUMB} ok", [THUMB, THUMB, "ok"]),
        (" ", []),
    ],
)
def test_words(text, expected):
    assert [text[start:end] for start, end in word_spans(text)] == expected


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=40))
def test_words_cover_all_but_white_space(text):
    covered = "".join(text[start:end] for start, end in word_spans(text))
    assert covered == "".join(text.split())
