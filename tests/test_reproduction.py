"""docs/reproduction.md: every measured table is what its results give, and the baselines agree with the literature."""

from __future__ import annotations

import json
import runpy

import pytest

from tests.conftest import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "draw_reproduction.py"))
NOT_MEASURED, draw_document, main = (SCRIPT[name] for name in ("NOT_MEASURED", "draw_document", "main"))

DOCUMENT = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "docs" / "results" / "reproduction"


def test_the_document_is_what_the_results_give():
    text = DOCUMENT.read_text()
    assert draw_document(text, RESULTS) == text, f"redraw it: {main.__doc__}"
    assert {path.stem for path in RESULTS.glob("*.json")} <= {
        line.split()[2] for line in text.splitlines() if line.startswith("<!-- begin ")
    }


@pytest.mark.parametrize(
    ("name", "row", "figures", "tolerance"),
    [
        ("wmt17", "sentbleu", {"kendall_tau": 32.4, "pearson_r": 47.5}, 0.3),
        ("wmt17", "chrf++", {"kendall_tau": 39.6, "pearson_r": 57.9}, 0.3),
        ("wmt18", "sentbleu", {"kendall_tau": 22.8, "darr": 23.2}, 0.8),
    ],
)
def test_baselines_agree_with_the_literature(name, row, figures, tolerance):
    rows = json.loads((RESULTS / f"{name}.json").read_text())["rows"]
    average = next(found["average"] for found in rows if found["name"] == row)
    assert {measure: 100 * average[measure] for measure in figures} == pytest.approx(figures, abs=tolerance)


def test_what_was_not_measured_says_so(tmp_path):
    marks = "a\n<!-- begin wmt99 -->\nold\n<!-- end wmt99 -->\nb\n"
    drawn = draw_document(marks, tmp_path)
    assert drawn == f"a\n<!-- begin wmt99 -->\n\n{NOT_MEASURED}\n<!-- end wmt99 -->\nb\n"
    assert draw_document(drawn, tmp_path) == drawn
    (tmp_path / "d.md").write_text(marks)
    main([str(tmp_path / "d.md"), str(tmp_path)])
    assert (tmp_path / "d.md").read_text() == drawn
