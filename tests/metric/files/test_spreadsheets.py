"""CSV for spreadsheets: text stays text, numbers stay numbers."""

from __future__ import annotations

import csv
import io

import pytest

from bleurt_repro.metric.files.writing import csv_text, plain_cell


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("=1+2", "'=1+2"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("a = b", "a = b"),
        ("", ""),
        (-0.25, -0.25),
        (None, None),
    ],
)
def test_a_cell(cell, expected):
    assert plain_cell(cell) == expected


def test_a_table_with_awkward_text_is_read_back():
    text = csv_text(["=name", "score"], [['say "hi", then\nleave', -0.5], ["@x", None]])
    assert text.endswith("\r\n")
    assert list(csv.reader(io.StringIO(text, newline=""))) == [
        ["'=name", "score"],
        ['say "hi", then\nleave', "-0.5"],
        ["'@x", ""],
    ]
