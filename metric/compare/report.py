"""Report a comparison: as JSON with everything in it, as CSV with a row a segment, as tables, and as text for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from bleurt_repro.metric.compare.compare import Comparison, Segment, bounds, one_line
from bleurt_repro.metric.files.tables import csv_text

# How a file begins that `compare` wrote.
OUR_COMPARISON = re.compile(
    rb"\{\s*\"systems\": \[|segment,spread,score of |\| system +\| +mean |% bleurt-repro compare\n"
)


def comparison_json(comparison: Comparison) -> str:
    """Return everything a comparison holds, as JSON."""
    return json.dumps(comparison.to_dict(), ensure_ascii=False, indent=1) + "\n"


def comparison_csv(comparison: Comparison) -> str:
    """Write a row a segment, those where the systems differ most first; no cell runs as a formula.

    Of two systems, a column holds the difference with its sign and, where it is known, another one in each row the probability
    that people prefer the first. The last column is the signature of the scores.
    """
    names = [system.name for system in comparison.systems]
    several = max(len(segment.references) for segment in comparison.segments)
    header = ["segment", "spread", *(f"score of {name}" for name in names), *(f"sentBLEU of {name}" for name in names)]
    header += ["reference", *(f"reference {i}" for i in range(2, several + 1)), *names, "source"]
    header += [" - ".join(names)] if len(names) == 2 else []
    last: list[object] = [comparison.signatures["BLEURT"]]
    if len(names) == 2 and comparison.preferred is not None:
        header.append(f"P(people prefer {names[0]})")
        last.insert(0, comparison.tests[0].preferred)
    rows = ([*_row(segment, several), *last] for segment in comparison.segments)
    return csv_text([*header, "signature"], rows)


def _row(segment: Segment, several: int) -> list[object]:
    padding = [None] * (several - len(segment.references))
    figures = [segment.number, segment.spread, *segment.scores, *segment.sentbleu]
    signed = [segment.scores[0] - segment.scores[1]] if len(segment.scores) == 2 else []
    return [*figures, *segment.references, *padding, *segment.candidates, segment.source, *signed]


def comparison_text(comparison: Comparison, show: int = 5) -> str:
    """Report a comparison in words and figures, for a terminal.

    Args:
        comparison: what to report.
        show: how many of the segments where the systems differ most.
    """
    percent = f"{comparison.confidence:.0%}"
    width = max(len("system"), *(len(system.name) for system in comparison.systems))
    lines = [f"{'system':{width}}  {'mean':>7}  {percent + ' interval':>18}  sentBLEU   BLEU   chrF"]
    for system in sorted(comparison.systems, key=lambda system: -system.mean):
        ends = bounds(system.low, system.high)
        lines.append(
            f"{system.name:{width}}  {system.mean:7.4f}  {ends:>18}  "
            f"{system.sentbleu:8.2f}  {system.bleu:5.2f}  {system.chrf:5.2f}"
        )
    lines.append("")
    for test in comparison.tests:
        p_value = "not defined for one segment" if test.p_value is None else f"{test.p_value:.4f}"
        two_sided = "" if test.p_two_sided is None else f", two-sided p = {test.p_two_sided:.4f}"
        lines.append(
            f"{test.first} - {test.second}: {test.difference:+.4f} ({bounds(test.low, test.high)}), p = {p_value}{two_sided}; "
            f"higher in {test.wins}, lower in {test.losses}, the same in {test.ties}"
            f"{'' if test.preferred is None else f'; P(people prefer {test.first}) = {test.preferred:.2f}'}"
        )
    lines += ["", f"p: {comparison.convention}; {comparison.resamples} resamples, not corrected for several tests"]
    lines.append(f"two-sided p: {comparison.two_sided}; {comparison.resamples} exchanges, not corrected either")
    if comparison.preferred is not None:
        lines.append(f"P(people prefer a system): {comparison.preferred}")
    for system in comparison.systems:
        if system.truncated:
            lines.append(f"{system.name}: {system.truncated} pairs were longer than the checkpoint reads")
    for segment in comparison.segments[:show]:
        lines += ["", *_told(segment, [system.name for system in comparison.systems], width)]
    lines += ["", *(f"{name}: {signature}" for name, signature in comparison.signatures.items())]
    return "\n".join(lines)


def _told(segment: Segment, names: list[str], width: int) -> list[str]:
    """The references and what each system made of them."""
    reference_width = max(width, len("reference"))
    told = [f"segment {segment.number}, {segment.spread:.4f} apart"]
    told += [f"  {'reference':{reference_width}}           {one_line(text)}" for text in segment.references]
    for name, score, text in zip(names, segment.scores, segment.candidates, strict=True):
        told.append(f"  {name:{reference_width}}  {score:7.4f}  {one_line(text)}")
    return told


# What a comparison can be written as, by the ending of the file.
FORMS: dict[str, Callable[[Comparison], str]] = {
    ".json": comparison_json,
    ".csv": comparison_csv,
    ".md": Comparison.to_markdown,
    ".tex": Comparison.to_latex,
}
