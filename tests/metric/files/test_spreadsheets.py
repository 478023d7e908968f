"""Tables for people: CSV for spreadsheets, in which text stays text and numbers stay numbers; Markdown."""

from __future__ import annotations

import csv
import io
import unicodedata

import pytest

from bleurt_repro.cli import main
from bleurt_repro.metric.files.tables import csv_text, markdown_table, plain_cell
from bleurt_repro.training.experiments.stress import failures_table


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


FORMULAS = ("=1+2", "\uff1d1+2", " =1+2", "\u3000\uff1d1+2", "\u200b@SUM(A1)")


def is_formula(cell):
    """Return whether a spreadsheet that drops blanks and reads full-width signs takes a cell for a formula."""
    return unicodedata.normalize("NFKC", cell).lstrip(" \u200b").startswith(("=", "+", "-", "@"))


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_comparison_holds_no_formula(tmp_path, monkeypatch, tiny_scorer, formula):
    monkeypatch.chdir(tmp_path)
    for name, text in (("r.txt", "it rains"), ("a.txt", formula), ("b.txt", "it rained")):
        (tmp_path / name).write_text(f"{text}\n" * 2, encoding="utf-8")
    command = ["compare", "-r", "r.txt", "-c", "a.txt", "b.txt", "--checkpoint", str(tiny_scorer), "--resamples", "9"]
    with pytest.raises(SystemExit) as stop:
        main([*command, "--output", "out.csv"])
    assert not stop.value.code
    header, *rows = csv.reader((tmp_path / "out.csv").open(newline="", encoding="utf-8-sig"))
    column = header.index("a")
    assert {row[column].strip("' \u3000") for row in rows} == {formula.strip(" \u3000")}
    assert not [row[column] for row in rows if is_formula(row[column])]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_table_of_failures_holds_no_formula(formula):
    text = failures_table(
        ("reference", "candidate", "score"), [{"reference": formula, "candidate": formula, "score": -0.5}]
    )
    *cells, score = text.splitlines()[1].split("\t")
    assert score == "-0.5" and len(cells) == 2 and not [cell for cell in cells if is_formula(cell)]


def test_a_markdown_table_keeps_its_cells_apart_and_its_numbers_as_they_are():
    assert markdown_table(["name", "n"], [["a|b", 1], ["two\nlines", "0.10"]]) == (
        "| name      | n    |\n|-----------|------|\n| a\\|b      | 1    |\n| two lines | 0.10 |"
    )
    assert markdown_table(["x|y"], [["a"]]).splitlines()[0] == "| x\\|y   |"
