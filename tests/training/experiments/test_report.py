"""Tables of experiments: names of metrics are users' own, and none can end a cell."""

from __future__ import annotations

import html
import re

import markdown_it

from bleurt_repro.training.experiments.adversarial import shares_table
from bleurt_repro.training.experiments.report import markdown

NAME = "mine | and\nyours"
SHOWN = "mine | and yours"


def cells(table):
    """Return the texts of a Markdown table's cells, row by row, as a reader of Markdown sees them."""
    page = markdown_it.MarkdownIt("commonmark").enable("table").render(table)
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL) for row in page.split("<tr>")[1:]]
    return [[html.unescape(cell) for cell in row] for row in rows]


def test_a_bar_in_a_name_ends_no_cell():
    assert cells(markdown({NAME: {"a | b": "1 | 2"}, "other": {"c": "3"}})) == [
        ["", "a | b", "c"],
        [SHOWN, "1 | 2", "-"],
        ["other", "-", "3"],
    ]


def test_nor_in_the_table_of_adversarial_candidates():
    kind = {"n": 4, "passes": {"share": 0.25}, "above_output": {"share": 0.5}}
    assert cells(shares_table([{"name": NAME, "kinds": {"as_question": kind}}], ["as_question"])) == [
        ["", "candidates", f"{SHOWN}: passes for a copy", f"{SHOWN}: above the outputs"],
        ["as question", "4", "25.0", "50.0"],
    ]
