"""Two systems on the page: the verdict, the table, the plots, in words and figures."""

from __future__ import annotations

import re

import pytest

from bleurt_repro.metric.compare.compare import Comparison, Segment, System
from bleurt_repro.metric.demo.compare_tab import (
    by_segment,
    compare_two,
    differences,
    distributions,
    segment_table,
    verdict_html,
)
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.statistics import PairedTest


def compared(difference=0.2, low=0.1, high=0.3, p_value=0.004, truncated=0, segments=()) -> Comparison:
    systems = [
        System("A", 0.5 + difference, 0.4, 0.8, 40.0, 41.0, 60.0, truncated),
        System("B", 0.5, -0.4, 0.6, 30.0, 31.0, 50.0, 0),
    ]
    test = PairedTest("A", "B", difference, low, high, p_value, 7, 3, 0)
    return Comparison(systems, [test], list(segments), {"BLEURT": "sig"}, "convention", 1000, 0.95, 0)


@pytest.mark.parametrize(
    ("comparison", "expected"),
    [
        (compared(), "<b>A is ahead by 0.20</b> (0.10 to 0.30; p = 0.004)."),
        (compared(-0.2, -0.3, -0.1, 0.0009), "<b>B is ahead by 0.20</b> (0.10 to 0.30; p &lt; 0.001)."),
        (compared(-0.2, -0.5, 0.1, 0.2), "<b>B is ahead by 0.20</b> (\u22120.10 to 0.50; p = 0.200). This may be chance."),
        (compared(0.2, -0.01, 0.4, 0.03), "<b>A is ahead by 0.20</b> (\u22120.01 to 0.40; p = 0.030). This may be chance."),
        (compared(0.2, None, None, None), "<b>A scores higher</b> by 0.20, in a single segment: no test is possible."),
        (compared(0.004, -0.1, 0.1, 0.49), "<b>A is ahead by less than 0.01</b> (\u22120.10 to 0.10; p = 0.490). This may be chance."),
        (compared(0.0, 0.0, 0.0, 1.0), "<b>A and B have the same mean.</b>"),
    ],
)  # fmt: skip
def test_the_verdict(comparison, expected):
    assert f'<p class="verdict">{expected}</p>' in verdict_html(comparison)


def test_figures_of_both_systems():
    html = verdict_html(compared(truncated=2))
    rows = [re.findall(r"<td>(.*?)</td>", row) for row in html.split("<tr>")[2:]]
    assert rows == [
        ["A", "0.70", "0.40 to 0.80", "40.0", "41.0", "60.0", "7"],
        ["B", "0.50", "\u22120.40 to 0.60", "30.0", "31.0", "50.0", "3"],
    ]
    assert "2 pairs were longer than the checkpoint reads" in html
    assert "longer" not in verdict_html(compared())


def test_the_table_escapes_and_marks():
    segment = Segment(3, ["a <b>"], "<i>", ["a <b>", "a dog"], [0.25, -0.5], [100.0, 0.0], 0.75)
    table = segment_table(compared(segments=[segment]), ("A", "B"))
    assert [float(value) for value in re.findall(r'data-value="(.*?)"', table)] == [3, 0.75, 0.25, -0.5]
    assert re.findall(r'class="number (\w+)"', table) == ["first"]
    assert "<div><i>B</i> a <mark>dog</mark></div>" in table
    assert "<div><i>Source</i> &lt;i&gt;</div>" in table and "<b>" not in table


def test_the_table_says_how_much_it_shows():
    segments = [Segment(i, ["r"], None, ["r", "c"], [1.0, 0.0], [1.0, 0.0], 1.0) for i in range(150)]
    table = segment_table(compared(segments=segments), ("A", "B"))
    assert "100 of 150 segments" in table
    assert table.count("<tr>") == 101


def test_the_plots_show_the_scores():
    names, scores = ("A", "B"), ([0.1, 0.5, 0.9], [0.2, 0.4, 0.4])
    [axes] = distributions(names, scores).axes
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("BLEURT score", "segments")
    assert [line.get_xdata()[0] for line in axes.lines] == pytest.approx([0.5, 1 / 3])
    [axes] = differences(names, scores).axes
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0.5, 0.1, -0.1])
    assert axes.get_legend_handles_labels()[1] == ["A higher in 2", "B higher in 1"]


def test_equal_scores_can_be_drawn():
    for draw in (distributions, differences):
        assert draw(("A", "B"), ([0.5], [0.5])).axes


def test_a_comparison_reports_its_progress(tiny_scorer):
    done: list[int] = []
    shared = SharedScorer(str(tiny_scorer), "cpu")
    references = [f"the cat {i}" for i in range(130)]
    comparison = compare_two(shared, references, (references, references[::-1]), report=done.append)
    assert done == [100, 30, 100, 30]
    assert comparison.systems[0].mean == pytest.approx(
        shared.scorer.compute(references=references, candidates=references).mean_score, abs=1e-5
    )
    first, second = by_segment(comparison)
    assert sum(first) / 130 == pytest.approx(comparison.systems[0].mean)
    assert len(second) == 130
