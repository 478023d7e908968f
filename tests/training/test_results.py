"""Results files: one form for all kinds."""

from __future__ import annotations

import json

import pytest

from bleurt_repro import __version__
from bleurt_repro.training.experiments import sanity, webnlg
from bleurt_repro.training.experiments.report import draw_table
from bleurt_repro.training.results import HEAD, RESULTS, Result, versions
from tests.conftest import ROOT

DRAWERS = {"agreement": draw_table, "wmt": draw_table, "sanity": sanity.draw_table, "webnlg": webnlg.draw_table}
SHIPPED = sorted((ROOT / "docs" / "results").rglob("*.json"))


def test_what_is_written_is_read(tmp_path):
    result = Result("speed", "make speed", {"pairs_a_second": 88.5, "rows": []}, seed=3, data={"file": "a"})
    assert result.write(tmp_path) == tmp_path / RESULTS
    written = json.loads((tmp_path / RESULTS).read_text())
    assert list(written) == [*HEAD, "pairs_a_second", "rows"]
    assert (written["kind"], written["command"], written["seed"]) == ("speed", "make speed", 3)
    assert written["versions"]["bleurt_repro"] == __version__ and "torch" in written["versions"]
    again = Result.read(tmp_path)
    assert again == result == written and again.seed == 3 and again["pairs_a_second"] == 88.5
    assert Result.read(tmp_path / RESULTS).to_json() == written
    assert {**again} == written and len(again) == len(written)


def test_versions_are_those_that_are_installed():
    import torch
    import transformers

    found = versions()
    # of builds for CUDA the package's own version does not say so
    assert found["torch"].partition("+")[0] == torch.__version__.partition("+")[0]
    assert found["transformers"] == transformers.__version__


def test_a_figure_must_not_hide_a_field():
    with pytest.raises(ValueError, match="a figure must not be called seed"):
        Result("x", None, {"seed": 1}).to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not a results file"),
        ("[1]", "expected a JSON object, found a list"),
        ("[" * 100_000, "is not a results file"),
        ('{"rows": [1]}', "damaged .*kind"),
        ('{"kind": "wmt", "signatures": 3}', "damaged"),
    ],
)
def test_other_files_are_refused(tmp_path, text, message):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(ValueError, match=message):
        Result.read(tmp_path / "x.json")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.relative_to(ROOT / "docs" / "results").as_posix())
def test_results_of_the_documentation_are_readable(path):
    result = Result.read(path)
    assert result.figures
    if result.kind == "agreement":
        assert draw_table(result)


def test_results_of_the_embedded_checkpoint_are_readable():
    result = Result.read(ROOT / "metric" / "checkpoint" / "bleurt-repro-mini")
    assert (result.kind, result.versions["bleurt_repro"]) == ("average", "0.1.0")


def test_tables_of_the_documentation_are_drawn_from_their_results():
    for path in (ROOT / "docs" / "results").glob("*.json"):
        result = Result.read(path)
        if result.kind in DRAWERS and path.with_suffix(".md").is_file():
            drawn = DRAWERS[result.kind](result)
            assert path.with_suffix(".md").read_text() == drawn, f"redraw {path.with_suffix('.md')}"
