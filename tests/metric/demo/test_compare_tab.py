"""Two systems on the page: the verdict, the table, the plots, in words and figures."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bleurt_repro.metric.compare.compare import Comparison, Segment, System
from bleurt_repro.metric.demo.compare_tab import (
    COLOURS,
    FEWEST_TESTED,
    KEYS,
    compare_two,
    differences,
    distributions,
    plots_html,
    scores_by_system,
    segment_table,
    spoken,
    system_names,
    verdict_html,
)
from bleurt_repro.metric.demo.page import STYLE
from bleurt_repro.metric.demo.shared_scorer import SharedScorer
from bleurt_repro.metric.statistics import PairedTest

SEGMENTS = [Segment(i, ["r"], None, ["r", "c"], [1.0, 0.0], [1.0, 0.0], 1.0) for i in range(1, 151)]


def compared(
    difference=0.2, low=0.1, high=0.3, p_value=0.004, warnings=(), segments=SEGMENTS, names=("A", "B")
) -> Comparison:
    systems = [
        System(names[0], 0.5 + difference, 0.4, 0.8, 40.0, 41.0, 60.0, len(warnings), warnings),
        System(names[1], 0.5, -0.4, 0.6, 30.0, 31.0, 50.0, 0),
    ]
    test = PairedTest(*names, difference, low, high, p_value, 7, 3, 0)
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
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in html.split("<tr>")[2:4]]
    assert [[cell.split("<small>")[0] for cell in row] for row in rows] == [
        ["A", "0.70", "0.40 to 0.80", "40.0", "41.0", "60.0", "7"],
        ["B", "0.50", "\u22120.40 to 0.60", "30.0", "31.0", "50.0", "3"],
    ]
    assert '<p class="note warned">A: 2 pairs were &lt;longer&gt;.</p>' in html
    assert "longer" not in verdict_html(compared())


def test_the_parts_of_bleu_stand_below_its_number():
    comparison = compared()
    systems = [replace(system, precisions=(75, 50, 25, 12.5), brevity_penalty=0.85) for system in comparison.systems]
    assert (
        "<td>41.0<small>unsmoothed n-gram precision<br>75.0 / 50.0 / 25.0 / 12.5<br>brevity penalty 0.85</small></td>"
    ) in verdict_html(replace(comparison, systems=systems))


def test_a_metric_has_one_name_on_the_page():
    comparison = replace(compared(), signatures={"BLEURT": "x", "sentence BLEU": "y", "BLEU": "z"})
    html = verdict_html(comparison)
    assert '<th scope="col">sentence BLEU</th>' in html and "sentence BLEU: y" in html and "sentBLEU" not in html


@pytest.mark.parametrize(
    ("uploads", "names"),
    [
        ((None, None), ["A", "B"]),
        (("/tmp/x/big.model.txt", None), ["big.model", "B"]),
        (("/tmp/x/big.txt", "/tmp/y/small.jsonl"), ["big", "small"]),
        (("/tmp/x/out.txt", "/tmp/y/out.txt"), ["out (A)", "out (B)"]),
        (("/tmp/x/B.txt", None), ["B (A)", "B (B)"]),
    ],
)
def test_systems_are_called_by_their_files(uploads, names):
    assert system_names(uploads) == names


def test_names_of_files_are_escaped_everywhere():
    comparison = compared(names=("<img src=x>", "_b$x$"), warnings=("w",))
    for html in (verdict_html(comparison), plots_html(comparison), segment_table(comparison), spoken(comparison)):
        assert "&lt;img src=x&gt;" in html and "<img" not in html
    assert "_b$x$, mean" in plots_html(comparison) and "_b$x$ higher in" in plots_html(comparison)


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
    assert '>B</i><div dir="auto">a <mark>dog</mark></div>' in table
    assert '>Source</i><div dir="auto">&lt;i&gt;</div>' in table and "<b>" not in table


def test_the_table_shows_what_is_missing():
    segment = Segment(1, ["the old cat"], None, ["the old cat", "the cat"], [1.0, 0.5], [100.0, 0.0], 0.5)
    assert '<div dir="auto">the <del>old</del> cat</div>' in segment_table(compared(segments=[segment]))


def test_the_table_has_pages():
    table = segment_table(compared(segments=SEGMENTS))
    assert "100 of 150 segments" in table
    assert (table.count("<tr>"), table.count("<tr hidden>")) == (21, 80)
    assert re.findall(r"<button[^>]*>(\d+\u2013\d+)", table) == ["1–20", "21–40", "41–60", "61–80", "81–100"]
    assert "<nav" not in segment_table(compared(segments=SEGMENTS[:20]))


def test_the_table_has_the_lowest_scores_of_each_system():
    """They would be missing if the systems differ more in others: here the last 100 segments differ by nothing."""
    others = [Segment(i, ["r"], None, ["a", "b"], [-float(i), -float(i)], [0.0, 0.0], 0.0) for i in range(151, 251)]
    table = segment_table(compared(segments=[*SEGMENTS, *others]))
    assert "150 of 250 segments" in table
    assert all(f'data-value="{number}"' in table for number in (1, 100, 201, 250)) and 'data-value="200"' not in table


def test_means_by_length_of_the_reference():
    short = [Segment(i, ["r"], None, ["a", "b"], [0.5, 0.25], [0.0, 0.0], 0.25) for i in range(1, 21)]
    long = Segment(21, ["r " * 60], None, ["a", "b"], [-0.5, 0.75], [0.0, 0.0], 1.25)
    html = verdict_html(compared(segments=[*short, long]))
    table = html[html.index("Mean scores by length") :]
    rows = [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in table.split("<tr>")[1:]]
    assert rows == [
        ["words", "segments", "A", "B"],
        ["0 to 9", "20", "0.50", "0.25"],
        ["50 or more", "1", "\u22120.50", "0.75"],
    ]
    assert "by length" not in verdict_html(compared(segments=short[:19]))


def test_the_plots_are_described_and_follow_the_mode_of_the_page():
    scores = {"A": [0.1, 0.5, 0.9], "B": [0.2, 0.4, 0.4]}
    histogram, bars = distributions(scores), differences(scores)
    assert re.search(r'<svg role="img" aria-label="(.*?)"', histogram)[1] == (
        "Histogram of the scores of 3 segments: A from 0.10 to 0.90, mean 0.50; B from 0.20 to 0.40, mean 0.33."
    )
    assert re.search(r'<svg role="img" aria-label="(.*?)"', bars)[1] == (
        "Differences A \u2212 B of 3 segments, from +0.50 to \u22120.10: A is higher in 2, B is higher in 1."
    )
    for drawing in (histogram, bars):
        assert "currentColor" in drawing and "#000000" not in drawing and "#ffffff" not in drawing
        assert "</svg>\n<figcaption>" in drawing and "<!DOCTYPE" not in drawing and "<text" in drawing
    assert "A, mean 0.50" in histogram and "A higher in 2" in bars


def test_the_keys_have_the_colours_of_the_plots():
    style = STYLE.read_text()
    for key, colour in zip(KEYS, COLOURS, strict=True):
        assert f".key-line.{key}, .key-bar.{key} {{ color: {colour}; }}" in style
    bars = differences({"A": [0.1, 0.2], "B": [0.3, 0.4]})
    assert [f'key-bar {key}"' in bars for key in KEYS] == [True, True]  # also of a system that is nowhere ahead


def test_one_segment_is_not_drawn():
    assert plots_html(compared(segments=SEGMENTS[:1])) == ""
    assert plots_html(compared(segments=SEGMENTS[:2])).count("<svg") == 2


def test_equal_scores_can_be_drawn():
    for draw in (distributions, differences):
        assert "<svg" in draw({"A": [0.5, 0.5], "B": [0.5, 0.5]})


def test_a_comparison_reports_its_progress(tiny_scorer):
    reports: list[tuple[int, int]] = []
    shared = SharedScorer(str(tiny_scorer), "cpu")
    references = [f"the cat {i}" for i in range(130)]
    systems = {"good": references, "bad": references[::-1]}
    comparison = compare_two(shared, references, systems, report=lambda *counts: reports.append(counts))
    assert all(scored <= total for scored, total in reports) and reports[-1][0] == reports[-1][1]
    assert len(reports) > 2
    assert comparison.systems[0].mean == pytest.approx(
        shared.scorer.compute(references=references, candidates=references).mean_score, abs=1e-5
    )
    scores = scores_by_system(comparison)
    assert sum(scores["good"]) / 130 == pytest.approx(comparison.systems[0].mean)
    assert len(scores["bad"]) == 130
