"""The table of a paper: sacreBLEU's own figures, marks, and names that would be formatting."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from bleurt_repro.metric.compare.compare import Comparison, compare
from bleurt_repro.metric.compare.overlap import MetricScore
from bleurt_repro.metric.compare.table import Column, SystemTable
from bleurt_repro.metric.scorer import ScoringResult

SEGMENTS = 40
ODD_NAMES = ["a_b|*c*", '[50%] <b>& "q"', "*\\x{y}~^#$`--\nz"]
SIGNATURE = "checkpoint:my_tiny|hash:1%<2>"


class LengthScorer:
    """A scorer whose scores are lengths, compared with 20."""

    def compute_systems(self, *, references, systems, sources=None):
        return {
            name: ScoringResult([len(text) / 20 - 1 for text in candidates], None, SIGNATURE, 0)
            for name, candidates in systems.items()
        }


def texts() -> tuple[list[str], list[list[str]]]:
    """References, and a good and a bad translation of each; the third system is the first again."""
    vocabulary = "the cat sat on a mat it rains dog good bye hi there stock prices fell town river".split()
    generator = np.random.default_rng(0)
    references = [" ".join(generator.choice(vocabulary, 9)) for _ in range(SEGMENTS)]
    good = [f"{text} now" for text in references]
    bad = [" ".join(reversed(text.split()[::2])) for text in references]
    return references, [good, bad, good]


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    references, systems = texts()
    return compare(LengthScorer(), references, dict(zip(ODD_NAMES, systems, strict=True)), resamples=500)


@pytest.mark.long
def test_overlap_figures_are_those_of_sacrebleu(comparison):
    references, systems = texts()
    metrics = {"BLEU": BLEU(), "chrF2++": CHRF(word_order=2)}
    pairs = list(zip("abc", systems, strict=True))
    signatures, expected = PairedTest(pairs, metrics, [references], "ar", n_ar_confidence=1000)()
    for name, column in zip(metrics, comparison.table.columns[1:], strict=True):
        assert column.signature == str(signatures[name]) and "|seed:12345|" in column.signature
        for score, result in zip(column.scores, expected[name], strict=True):
            assert (score.score, score.p_value) == (result.score, result.p_value)
            assert (score.low, score.high) == pytest.approx((result.mean - result.ci, result.mean + result.ci))


def test_the_first_system_is_the_baseline(comparison):
    bleurt = comparison.table.columns[0]
    tests = {(test.first, test.second): test for test in comparison.tests}
    assert bleurt.scores[0].p_value is None
    for name, score in zip(ODD_NAMES[1:], bleurt.scores[1:], strict=True):
        assert score.p_value == tests[ODD_NAMES[0], name].p_two_sided
    assert bleurt.signature == f"{SIGNATURE}|ar:500|bs:500|seed:0"
    assert [score.score for score in bleurt.scores] == [system.mean for system in comparison.systems]


def test_csv_has_unrounded_figures(comparison):
    [row, *_] = csv.DictReader(io.StringIO(comparison.table.to_csv()))
    assert float(row["BLEURT"]) == comparison.systems[0].mean and row["BLEURT p"] == ""
    assert float(row["chrF++ low"]) == comparison.table.columns[2].scores[0].low
    assert row["BLEU signature"] == comparison.table.columns[1].signature


def small_table(*scores: MetricScore, decimals: int = 3, segments: int = 50, confidence: float = 0.95) -> SystemTable:
    names = [f"s{i}" for i in range(len(scores))]
    return SystemTable(names, [Column("BLEURT", list(scores), "sig", decimals)], segments, confidence)


def test_marks():
    """Bold: the best, and what looks the same. Marked: p below 0.05, unless the score is the baseline's."""
    scores = [
        MetricScore(0.5, 0.4, 0.6, None),
        MetricScore(0.5004, 0.4, 0.6, 0.049),
        MetricScore(-0.25, -0.35, 0, 0.05),
    ]
    table = small_table(*scores, MetricScore(0.5, 0.4, 0.6, 0.0001))
    cells = [line.split("|")[2].strip() for line in table.to_markdown().splitlines()[2:6]]
    assert cells == ["**0.500** ± 0.100", r"**0.500** ± 0.100 \*", "-0.250 ± 0.175", "**0.500** ± 0.100"]
    rows = [line.split(" & ", 1)[1] for line in table.to_latex().splitlines() if line.startswith("s")]
    assert rows == [
        r"\textbf{0.500} & ${}\pm 0.100$ \\",
        r"\textbf{0.500} & ${}\pm 0.100^{*}$ \\",
        r"$-$0.250 & ${}\pm 0.175$ \\",
        r"\textbf{0.500} & ${}\pm 0.100$ \\",
    ]


def test_one_system_or_one_segment_has_less_to_explain():
    alone = small_table(MetricScore(0.5, 0.4, 0.6, None)).to_markdown()
    assert "**" not in alone and "Bold" not in alone and "differs" not in alone and "95% bootstrap interval" in alone
    segment = small_table(MetricScore(1, None, None, None), MetricScore(0, None, None, None), segments=1)
    assert (
        "±" not in segment.to_markdown()
        and "Scores on 1 segment. Bold: the highest score. BLEURT" in segment.to_markdown()
    )
    assert r"0.000 &  \\" in segment.to_latex()
    assert (
        "90% (BLEURT) or 95% (BLEU and chrF++)"
        in small_table(MetricScore(0, 0, 0, None), confidence=0.9).to_markdown()
    )


def test_markdown_shows_every_name_as_it_is(comparison):
    markdown = pytest.importorskip("markdown_it", reason="needs markdown-it-py, of the demo extra")
    page = markdown.MarkdownIt("commonmark").enable("table").render(comparison.to_markdown())
    rows = re.findall(r"<td[^>]*>(.*?)</td>", page)[::4]
    assert rows == ["a_b|*c*", "[50%] &lt;b&gt;&amp; &quot;q&quot;", "*\\x{y}~^#$`-- z"]
    assert f"<code>{SIGNATURE.replace('<', '&lt;').replace('>', '&gt;')}|ar:500" in page
    assert "* differs from a_b|*c* with p &lt; 0.05 (paired" in page and "<em>" not in page


def test_latex_escapes_names_and_signatures(comparison):
    lines = comparison.to_latex().splitlines()
    assert lines[0] == "% bleurt-repro compare"
    names = [line.split(" & ")[0] for line in lines if line.endswith(r"\\")][1:]
    assert names == [
        r"a\_b\textbar{}{*}c{*}",
        r'{[}50\%] \textless{}b\textgreater{}\& "q"',
        r"{*}\textbackslash{}x\{y\}\textasciitilde{}\textasciicircum{}\#\$\textasciigrave{}-{}- z",
    ]
    assert (
        r"\texttt{checkpoint:my\_tiny|\allowbreak{}hash:1\%\textless{}2\textgreater{}|\allowbreak{}ar:500" in lines[-2]
    )


def test_latex_compiles_and_shows_the_names(comparison, tmp_path):
    if not shutil.which("pdflatex") or not shutil.which("pdftotext"):
        pytest.skip("needs pdflatex and pdftotext (Debian: texlive-latex-recommended, poppler-utils)")
    (tmp_path / "table.tex").write_text(comparison.to_latex())
    paper = r"\documentclass{article}\usepackage{booktabs}\begin{document}\input{table}\end{document}"
    (tmp_path / "paper.tex").write_text(paper)
    command = ["pdflatex", "-halt-on-error", "-interaction=nonstopmode", "paper.tex"]
    latex = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert latex.returncode == 0 and "Overfull" not in latex.stdout, latex.stdout[-3000:]
    page = subprocess.run(["pdftotext", "-layout", "paper.pdf", "-"], cwd=tmp_path, capture_output=True, text=True)
    text = re.sub(r"\s+", "", page.stdout)
    # LaTeX draws underscores as lines, which are no text.
    for name in ("ab|*c*", "[50%]<b>&", "#$`--z", "checkpoint:mytiny|hash:1%<2>|ar:500|bs:500|seed:0.", "p<0.05"):
        assert name in text, page.stdout
