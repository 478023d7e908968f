"""Two systems on the page: the verdict, the table, the plots, in words and figures."""

from __future__ import annotations

import re

import pytest

from bleurt_repro.metric.compare.compare import Comparison, Segment, System
from bleurt_repro.metric.demo.compare_tab import (
    FEWEST_TESTED,
    by_segment,
    compare_two,
    differences,
    distributions,
    plots_html,
    segment_table,
    spoken,
    verdict_html,
)
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.statistics import PairedTest

SEGMENTS = [Segment(i, ["r"], None, ["r", "c"], [1.0, 0.0], [1.0, 0.0], 1.0) for i in range(1, 151)]


def compared(difference=0.2, low=0.1, high=0.3, p_value=0.004, warnings=(), segments=SEGMENTS) -> Comparison:
    systems = [
        System("A", 0.5 + difference, 0.4, 0.8, 40.0, 41.0, 60.0, len(warnings), warnings),
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
        (compared(0.2, None, None, None, segments=SEGMENTS[:1]), "<b>A is ahead by 0.20</b> on 1 segment: too few to test, 20 are needed."),
        (compared(-0.2, -0.3, -0.1, 0.001, segments=SEGMENTS[:19]), "<b>B is ahead by 0.20</b> on 19 segments: too few to test, 20 are needed."),
        (compared(segments=SEGMENTS[:20]), "<b>A is ahead by 0.20</b> (0.10 to 0.30; p = 0.004)."),
        (compared(0.004, -0.1, 0.1, 0.49), "<b>A is ahead by less than 0.01</b> (\u22120.10 to 0.10; p = 0.490). This may be chance."),
        (compared(0.0, 0.0, 0.0, 1.0), "<b>A and B have the same mean.</b>"),
    ],
)  # fmt: skip
def test_the_verdict(comparison, expected):
    assert f'<p class="verdict">{expected}</p>' in verdict_html(comparison)


def test_figures_of_both_systems():
    html = verdict_html(compared(warnings=("2 pairs were <longer>",)))
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in html.split("<tr>")[2:]]
    assert rows == [
        ["A", "0.70", "0.40 to 0.80", "40.0", "41.0", "60.0", "7"],
        ["B", "0.50", "\u22120.40 to 0.60", "30.0", "31.0", "50.0", "3"],
    ]
    assert '<p class="note warned">A: 2 pairs were &lt;longer&gt;.</p>' in html
    assert "longer" not in verdict_html(compared())


def test_few_segments_have_no_p_and_no_interval():
    html = verdict_html(compared(segments=SEGMENTS[: FEWEST_TESTED - 1]))
    assert "p =" not in html and "0.40 to 0.80" not in html
    assert (
        spoken(compared(segments=SEGMENTS[:8])) == "A is ahead by 0.20 on 8 segments: too few to test, 20 are needed."
    )


def test_the_table_escapes_and_marks():
    segment = Segment(3, ["a <b> cat"], "<i>", ["a <b> cat", "a dog"], [0.25, -0.5], [100.0, 0.0], 0.75)
    table = segment_table(compared(segments=[segment]))
    assert [float(value) for value in re.findall(r'data-value="(.*?)"', table)] == [3, 0.75, 0.25, -0.5]
    assert re.findall(r'class="number (\w+)"', table) == ["first"]
    assert '<i>B</i><div dir="auto">a <mark>dog</mark></div>' in table
    assert '<i>Source</i><div dir="auto">&lt;i&gt;</div>' in table and "<b>" not in table


def test_the_table_shows_what_is_missing():
    segment = Segment(1, ["the old cat"], None, ["the old cat", "the cat"], [1.0, 0.5], [100.0, 0.0], 0.5)
    assert '<div dir="auto">the <del>old</del> cat</div>' in segment_table(compared(segments=[segment]))


def test_the_table_has_pages():
    table = segment_table(compared(segments=SEGMENTS))
    assert "100 of 150 segments" in table
    assert (table.count("<tr>"), table.count("<tr hidden>")) == (21, 80)
    assert re.findall(r"<button[^>]*>(\d+\u2013\d+)", table) == ["1–20", "21–40", "41–60", "61–80", "81–100"]
    assert "<nav" not in segment_table(compared(segments=SEGMENTS[:20]))


def test_the_plots_are_described_and_follow_the_mode_of_the_page():
    scores = ([0.1, 0.5, 0.9], [0.2, 0.4, 0.4])
    histogram, bars = distributions(scores), differences(scores)
    assert re.search(r'<svg role="img" aria-label="(.*?)"', histogram)[1] == (
        "Histogram of the scores of 3 segments: A from 0.10 to 0.90, mean 0.50; B from 0.20 to 0.40, mean 0.33."
    )
    assert re.search(r'<svg role="img" aria-label="(.*?)"', bars)[1] == (
        "Differences A \u2212 B of 3 segments, from +0.50 to \u22120.10: A is higher in 2, B is higher in 1."
    )
    for drawing in (histogram, bars):
        assert "currentColor" in drawing and "#000000" not in drawing and "#ffffff" not in drawing
        assert drawing.endswith("</svg>\n") and "<!DOCTYPE" not in drawing and "<text" in drawing
    assert "A, mean 0.50" in histogram and "A higher in 2" in bars


def test_the_legend_has_the_colour_of_a_system_that_is_nowhere_ahead():
    bars = differences(([0.1, 0.2], [0.3, 0.4]))
    assert "#0072b2" in bars.lower() and "#d55e00" in bars.lower()
    assert "#1f77b4" not in bars.lower()  # Matplotlib's first colour, which is neither system's


def test_one_segment_is_not_drawn():
    assert plots_html(compared(segments=SEGMENTS[:1])) == ""
    assert plots_html(compared(segments=SEGMENTS[:2])).count("<svg") == 2


def test_equal_scores_can_be_drawn():
    for draw in (distributions, differences):
        assert "<svg" in draw(([0.5, 0.5], [0.5, 0.5]))


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
