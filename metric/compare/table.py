"""The table for a paper: BLEURT, BLEU and chrF++ of each system with intervals, and tests against the first system.

The first system is the baseline, as in sacreBLEU. All tests are two-sided approximate randomisation: those of BLEU and
chrF++ are sacreBLEU's `--paired-ar` with its seed and number of trials, so that `sacrebleu` prints the same p.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from bleurt_repro.metric.compare.overlap import MetricScore
from bleurt_repro.metric.files.tables import csv_text, markdown_table
from bleurt_repro.metric.statistics import CONFIDENCE

# The p below which a system is marked as different from the baseline, as in sacreBLEU.
SIGNIFICANT = 0.05
# The first line of a LaTeX table, by which `compare` recognises a file that it wrote.
LATEX_MARK = "% bleurt-repro compare"
# Characters that Markdown reads as formatting; `markdown_table` escapes those that end a cell.
_MARKDOWN = re.compile(r"[\\`*_\[\]<>~#]")
# Characters that LaTeX reads as commands, that have another glyph in its default encoding, or, after a line end, belong to
# the command for it.
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{letter: f"{{{letter}}}" for letter in "[*"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "`": r"\textasciigrave{}",
        "|": r"\textbar{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
    }
)


@dataclass(frozen=True)
class Column:
    """Scores of all systems by one metric.

    Attributes:
        metric: name of the metric.
        scores: one per system.
        signature: signature of the metric and of its tests.
        decimals: number of decimals to show.
    """

    metric: str
    scores: list[MetricScore]
    signature: str
    decimals: int


@dataclass(frozen=True)
class SystemTable:
    """Scores of systems by several metrics.

    Attributes:
        systems: names of the systems; the first is the baseline.
        columns: one per metric.
        segments: number of segments.
        confidence: confidence level of the intervals of BLEURT; sacreBLEU's are 95 % intervals.
    """

    systems: list[str]
    columns: list[Column]
    segments: int
    confidence: float

    def to_csv(self) -> str:
        """Return the table as CSV with unrounded numbers, p-values and signatures."""
        header = ["system"]
        for column in self.columns:
            header += [column.metric, *(f"{column.metric} {name}" for name in ("low", "high", "p"))]
        header += [f"{column.metric} signature" for column in self.columns]
        rows: list[list[object]] = []
        for i, system in enumerate(self.systems):
            row: list[object] = [system]
            for column in self.columns:
                score = column.scores[i]
                row += [score.score, score.low, score.high, score.p_value]
            rows.append([*row, *(column.signature for column in self.columns)])
        return csv_text(header, rows)

    def to_markdown(self) -> str:
        """Return the table as Markdown, and below it the caption."""
        header = ["system", *(column.metric for column in self.columns)]
        rows = []
        for i, system in enumerate(self.systems):
            cells = []
            for column in self.columns:
                score, half, is_best, is_significant = _cell(column, i)
                text = f"**{score}**" if is_best else score
                text += f" ± {half}" if half else ""
                cells.append(text + (r" \*" if is_significant else ""))
            rows.append([_escape_markdown(system), *cells])
        caption = self._caption(
            _escape_markdown, lambda signature: f"`{signature}`", ("±", r"\*", _escape_markdown(f"p < {SIGNIFICANT}"))
        )
        return f"{markdown_table(header, rows, 'right')}\n\n{caption}\n"

    def to_latex(self) -> str:
        """Return the table for LaTeX with the package booktabs, with its caption."""
        header = ["System", *(rf"\multicolumn{{2}}{{c}}{{{_escape_latex(column.metric)}}}" for column in self.columns)]
        rows = []
        for i, system in enumerate(self.systems):
            row = [_escape_latex(system)]
            for column in self.columns:
                score, half, is_best, is_significant = _cell(column, i)
                score = score.replace("-", "$-$")
                mark = "^{*}" if is_significant else ""
                row += [rf"\textbf{{{score}}}" if is_best else score, rf"${{}}\pm {half}{mark}$" if half else ""]
            rows.append(" & ".join(row) + r" \\")
        caption = self._caption(_escape_latex, _latex_signature, (r"$\pm$", "$^{*}$", f"$p < {SIGNIFICANT}$"))
        lines = [
            f"{LATEX_MARK}\n% needs \\usepackage{{booktabs}}",
            r"\begin{table}",
            r"\centering",
            r"\small\setlength{\tabcolsep}{4pt}  % three metrics fit into a column of a paper",
            rf"\begin{{tabular}}{{l{'r@{}l' * len(self.columns)}}}",
            r"\toprule",
            " & ".join(header) + r" \\",
            r"\midrule",
            *rows,
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{caption}}}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def _caption(self, escape: Callable[[str], str], code: Callable[[str], str], signs: tuple[str, str, str]) -> str:
        """Return what the numbers and marks mean, with the signatures.

        Args:
            escape: function that writes a text so that it is shown as it is.
            code: function that writes a signature.
            signs: what stands before half of an interval, what marks a significant difference, and the level of p.
        """
        plus_minus, mark, level_of_p = signs
        segments = "1 segment" if self.segments == 1 else f"{self.segments:,} segments"
        sentences = [f"Scores on {segments}."]
        if self.segments > 1:
            level = f"{self.confidence:.0%}"
            if self.confidence != CONFIDENCE:
                level = f"{level} (BLEURT) or {CONFIDENCE:.0%} (BLEU and chrF++)"
            sentences[0] = f"Scores on {segments}, {plus_minus} half of the {escape(level)} bootstrap interval."
        if len(self.systems) > 1:
            sentences.append("Bold: the highest score.")
        if len(self.systems) > 1 and self.segments > 1:
            sentences.append(
                f"{mark} differs from {escape(self.systems[0])} with {level_of_p} (paired approximate randomisation, "
                "two-sided, not corrected for the number of tests)."
            )
        sentences += [f"{escape(column.metric)}: {code(column.signature)}." for column in self.columns]
        return " ".join(sentences)


def _cell(column: Column, i: int) -> tuple[str, str, bool, bool]:
    """Return score and half of its interval as text, and whether the score is the best of several and significant."""
    texts = [f"{score.score:.{column.decimals}f}" for score in column.scores]
    best = max(range(len(texts)), key=lambda i: column.scores[i].score)
    is_best = len(texts) > 1 and texts[i] == texts[best]  # scores that look the same as the best are bold, too
    low, high, p_value = column.scores[i].low, column.scores[i].high, column.scores[i].p_value
    half = "" if low is None or high is None else f"{(high - low) / 2:.{column.decimals}f}"
    # sacreBLEU gives a system with the baseline's very score the smallest p.
    is_different = column.scores[i].score != column.scores[0].score
    return texts[i], half, is_best, is_different and p_value is not None and p_value < SIGNIFICANT


def one_line(text: str) -> str:
    """Return a text without line breaks and control characters, which a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(r"\\\g<0>", text)


def _escape_latex(text: str) -> str:
    """Return a text that LaTeX shows as it is; two hyphens would become a dash."""
    return re.sub("-(?=-)", "-{}", text.translate(_LATEX))


def _latex_signature(signature: str) -> str:
    """Return a signature for LaTeX, which may break a line between its fields."""
    fields = r"|\allowbreak{}".join(map(_escape_latex, signature.split("|")))
    return rf"\texttt{{{fields}}}"
