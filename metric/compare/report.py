"""Report a comparison: as JSON with all results, as CSV of segments or groups, and as text for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence

from bleurt_repro.metric.compare.compare import Comparison, Segment, p_text
from bleurt_repro.metric.compare.segments import Group
from bleurt_repro.metric.compare.table import LATEX_MARK, one_line
from bleurt_repro.metric.files.tables import csv_text
from bleurt_repro.metric.statistics import interval_text

# The first bytes of the files that `compare` writes; the column of scores was called "mean" before.
OUR_COMPARISON = re.compile(
    rb"\{\s*\"systems\": \[|segment,spread,score of |\| system +\| +(BLEURT|mean) |" + LATEX_MARK.encode() + rb"\n"
)


def comparison_json(comparison: Comparison) -> str:
    """Return all results of a comparison as JSON."""
    return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1) + "\n"


def comparison_csv(comparison: Comparison, segments: Sequence[Segment] | None = None) -> str:
    """Return one CSV row per segment; no cell runs as a formula.

    With two systems, a column has the signed difference of their scores and, if the checkpoint has a fit of preferences, a
    column repeats the probability that people prefer the first system. The last column is the signature of the scores.

    Args:
        comparison: comparison to report.
        segments: segments to write; by default all, those where the systems differ most first.
    """
    segments = comparison.segments if segments is None else segments
    names = [system.name for system in comparison.systems]
    reference_count = max(len(segment.references) for segment in comparison.segments)
    header = [
        "segment",
        "spread",
        *(f"score of {name}" for name in names),
        *(f"sentence BLEU of {name}" for name in names),
    ]
    header += ["reference", *(f"reference {i}" for i in range(2, reference_count + 1)), *names, "source"]
    header += [" - ".join(names)] if len(names) == 2 else []
    constants: list[object] = [comparison.signatures["BLEURT"]]
    if len(names) == 2 and comparison.preferred is not None:
        header.append(f"P(people prefer {names[0]})")
        constants.insert(0, comparison.tests[0].preferred)
    rows = ([*_row(segment, reference_count), *constants] for segment in segments)
    return csv_text([*header, "signature"], rows)


def _row(segment: Segment, reference_count: int) -> list[object]:
    padding = [None] * (reference_count - len(segment.references))
    scores = [segment.number, segment.spread, *segment.scores, *segment.sentence_bleu]
    difference = [segment.scores[0] - segment.scores[1]] if len(segment.scores) == 2 else []
    return [*scores, *segment.references, *padding, *segment.candidates, segment.source, *difference]


def groups_csv(groups: Sequence[Group], column: str, names: Sequence[str]) -> str:
    """Return one CSV row per group, with the mean score of each system and its interval.

    Args:
        groups: groups to write.
        column: name of what the groups share.
        names: names of the systems.
    """
    header = [column, "segments", *(f"{label} of {name}" for name in names for label in ("mean", "low", "high"))]
    rows: list[list[object]] = []
    for group in groups:
        figures = [figure for mean, ends in zip(group.means, group.intervals, strict=True) for figure in (mean, *ends)]
        rows.append([group.name, group.segments, *figures])
    return csv_text(header, rows)


def comparison_text(
    comparison: Comparison,
    segments: Sequence[Segment] = (),
    groups: Sequence[Group] = (),
    column: str = "",
    title: str = "",
) -> str:
    """Return a comparison as text for a terminal.

    Args:
        comparison: comparison to report.
        segments: segments to show.
        groups: groups of segments to show.
        column: name of what the groups share.
        title: line above the segments.
    """
    names = [system.name for system in comparison.systems]
    width = max(map(len, ("system", *names)))
    lines = _system_lines(comparison, width)
    if comparison.tests:
        lines += ["", *_test_lines(comparison)]
    for system in comparison.systems:
        if system.truncated:
            lines.append(f"{system.name}: {system.truncated} pairs were longer than the checkpoint reads")
    if groups:
        lines += ["", *_group_lines(groups, column, names)]
    if title:
        lines += ["", one_line(title)]
    for segment in segments:
        lines += ["", *_segment_lines(segment, names, width)]
    lines += ["", *(f"{name}: {signature}" for name, signature in comparison.signatures.items())]
    return "\n".join(lines)


def _system_lines(comparison: Comparison, width: int) -> list[str]:
    """Return the scores of each system, the highest first."""
    percent = f"{comparison.confidence:.0%}"
    lines = [f"{'system':{width}}  {'mean':>7}  {percent + ' interval':>18}  sentence BLEU   BLEU  chrF++"]
    for system in sorted(comparison.systems, key=lambda system: -system.mean):
        ends = interval_text(system.low, system.high)
        lines.append(
            f"{system.name:{width}}  {system.mean:7.4f}  {ends:>18}  "
            f"{system.sentence_bleu:13.2f}  {system.bleu:5.2f}  {system.chrf_plus_plus:6.2f}"
        )
    return lines


def _test_lines(comparison: Comparison) -> list[str]:
    """Return the test of every two systems, and how the tests are computed."""
    lines = []
    for test in comparison.tests:
        p_value = (
            "p is not defined for one segment" if test.p_value is None else _p_equation("one-sided p", test.p_value)
        )
        two_sided = "" if test.p_two_sided is None else f", {_p_equation('two-sided p', test.p_two_sided)}"
        lines.append(
            f"{test.first} - {test.second}: {test.difference:+.4f} ({interval_text(test.low, test.high)}), "
            f"{p_value}{two_sided}; higher in {test.wins}, lower in {test.losses}, the same in {test.ties}"
            f"{'' if test.preferred is None else f'; P(people prefer {test.first}) = {test.preferred:.2f}'}"
        )
    lines += [
        "",
        f"one-sided p: {comparison.convention}; {comparison.resamples} resamples, not corrected for several tests",
    ]
    lines.append(f"two-sided p: {comparison.two_sided}; {comparison.resamples} exchanges, not corrected either")
    if comparison.preferred is not None:
        lines.append(f"P(people prefer a system): {comparison.preferred}")
    return lines


def _group_lines(groups: Sequence[Group], column: str, names: Sequence[str]) -> list[str]:
    """Return the mean score of each system, and its interval, per group."""
    labels = [one_line(group.name) or "(empty)" for group in groups]
    width = max(map(len, (column, *labels)))
    columns = [max(len("-0.0000 (-0.0000 to -0.0000)"), len(name)) for name in names]
    lines = [f"{column:{width}}  segments  " + "  ".join(map("{:>{}}".format, names, columns))]
    for label, group in zip(labels, groups, strict=True):
        figures = zip(group.means, group.intervals, columns, strict=True)
        cells = (f"{f'{mean:.4f} ({interval_text(*ends)})':>{size}}" for mean, ends, size in figures)
        lines.append(f"{label:{width}}  {group.segments:8}  " + "  ".join(cells))
    return lines


def _p_equation(name: str, p: float) -> str:
    text = p_text(p)
    return f"{name} {text}" if text.startswith("<") else f"{name} = {text}"


def _segment_lines(segment: Segment, names: list[str], width: int) -> list[str]:
    """Return the references, and the text and score of each system."""
    width = max(width, len("reference"))
    lines = [f"segment {segment.number}" + (f", {segment.spread:.4f} apart" if len(names) > 1 else "")]
    lines += [f"  {'reference':{width}}           {one_line(text)}" for text in segment.references]
    for name, score, text in zip(names, segment.scores, segment.candidates, strict=True):
        lines.append(f"  {name:{width}}  {score:7.4f}  {one_line(text)}")
    return lines


# The format of a comparison by the extension of the file.
FORMS: dict[str, Callable[[Comparison], str]] = {
    ".json": comparison_json,
    ".csv": comparison_csv,
    ".md": Comparison.to_markdown,
    ".tex": Comparison.to_latex,
}
