"""The rule that cuts text into sentences."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.synthetic.segments import split_sentences


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rained. We stayed in.", ["It rained.", "We stayed in."]),
        ("History\n\nIt began in 1900. It ended.\nSee also", ["It began in 1900.", "It ended."]),
        (
            "Dr. Low met J. R. Hill at 5 p.m. on Friday. He left.",
            ["Dr. Low met J. R. Hill at 5 p.m. on Friday.", "He left."],
        ),
        ('He said "Stop!" She did.', ['He said "Stop!"', "She did."]),
        ("Was it? (It was.) 12 came.", ["Was it?", "(It was.)", "12 came."]),
        (
            "It cost 3.50 dollars, e.g. in May. \u00c9mile paid.",
            ["It cost 3.50 dollars, e.g. in May.", "\u00c9mile paid."],
        ),
        ("No full stop here", []),
        ("", []),
    ],
)
def test_split_sentences(text, expected):
    assert split_sentences(text) == expected
