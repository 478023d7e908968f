"""docs/reproduction.md: every measured table is what its results give, and the baselines agree with the literature."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from tests.conftest import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "draw_reproduction.py"))
NOT_MEASURED, PAGES, PLOTS, SEED_RUNS, draw_document, draw_page, main = (
    SCRIPT[name] for name in ("NOT_MEASURED", "PAGES", "PLOTS", "SEED_RUNS", "draw_document", "draw_page", "main")
)

DOCUMENT = ROOT / "docs" / "reproduction.md"
RESULTS = ROOT / "docs" / "results" / "reproduction"
IMAGES = ROOT / "docs" / "images" / "reproduction"


def test_the_document_is_what_the_results_give():
    text = DOCUMENT.read_text()
    # drawn from nothing, so that the comparison fails if nothing is drawn
    emptied = re.sub(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", r"\1\3", text, flags=re.DOTALL)
    names = re.findall(r"<!-- begin (\S+) -->\n<!-- end \1 -->", emptied)
    assert draw_document(emptied, RESULTS) == text, f"redraw it: {main.__doc__}"
    assert {path.stem for path in RESULTS.glob("*.json")} <= {*names, *PAGES, *SEED_RUNS}
    for name, heading in PAGES.items():
        assert (RESULTS / f"{name}.md").read_text() == draw_page(heading, RESULTS / f"{name}.json")


def test_every_plot_stands_in_the_document_for_light_and_dark_pages():
    text = DOCUMENT.read_text()
    shown = re.findall(r"images/reproduction/(\S+?)-(light|dark)\.svg", text)
    assert sorted(shown) == sorted((name, mode) for name in PLOTS for mode in ("light", "dark"))
    assert sorted(path.name for path in IMAGES.iterdir()) == sorted(f"{name}-{mode}.svg" for name, mode in shown)


def test_plots_and_time_come_from_the_results(tmp_path):
    document, results, images = tmp_path / "d.md", tmp_path / "results", tmp_path / "images"
    results.mkdir()
    document.write_text("<!-- begin training-time -->\n<!-- end training-time -->\n")
    found = json.loads((RESULTS / "ablation.json").read_text())
    (results / "ablation.json").write_text(json.dumps(found))
    main([str(document), str(results), str(images)])
    before = {path.name: path.read_bytes() for path in images.iterdir()}
    assert set(before) == {f"figure-4-{mode}.svg" for mode in ("light", "dark")}
    assert before["figure-4-light.svg"] != before["figure-4-dark.svg"]
    runs = [*(run for row in found["rows"] for run in row["training"])]
    runs += [row["pretraining"] for row in found["rows"] if "pretraining" in row]
    seconds = [run["seconds"] for run in runs]
    minutes = sum(seconds) / 60
    time = rf"^\| Figure 4 \| {len(seconds)} +\| {minutes:.0f} +\| {minutes / len(seconds):.1f} +\|$"
    assert re.search(time, document.read_text(), re.MULTILINE)
    main([str(document), str(results), str(images)])
    assert {path.name: path.read_bytes() for path in images.iterdir()} == before
    for row in found["rows"]:
        row["training"] = [{**run, "seconds": run["seconds"] + 60} for run in row["training"]]
        row["average"]["kendall_tau"] += 0.1 * (row["name"] == "all")
    (results / "ablation.json").write_text(json.dumps(found))
    main([str(document), str(results), str(images)])
    assert (images / "figure-4-light.svg").read_bytes() != before["figure-4-light.svg"]
    tuned = sum(len(row["training"]) for row in found["rows"])  # each a minute longer
    assert f"| {minutes + tuned:.0f} " in document.read_text()


def test_a_figure_of_the_results_stands_in_the_document(tmp_path):
    results = json.loads((RESULTS / "wmt17.json").read_text())
    row = next(row for row in results["rows"] if row["name"] == "chrf++")
    row["average"]["kendall_tau"] = 0.98765
    (tmp_path / "wmt17.json").write_text(json.dumps(results))
    drawn = draw_document("<!-- begin wmt17 -->\n<!-- end wmt17 -->\n", tmp_path)
    (line,) = (line for line in drawn.splitlines() if line.startswith("| chrf++"))
    assert line.split("|")[2].split()[0] == "98.8"


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


def test_the_cost_of_what_was_not_run_follows_from_speeds_that_were_measured(tmp_path, monkeypatch):
    missing = SCRIPT["Missing"]("Figure 9", "two models", 6_400, "slow/run", 1_800, "scorer")
    monkeypatch.setitem(SCRIPT["draw_cost"].__globals__, "MISSING", (missing,))
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "run.json").write_text(json.dumps({"kind": "finetune", "steps": 10, "seconds": 64.0}))
    (tmp_path / "scorer.json").write_text(json.dumps({"kind": "b", "backends": [{"pairs_per_second": 0.5}]}))
    # 10 steps of 32 pairs in 64 s: 5 a second, so 6,400 pairs take 1,280 s, and 1,800 scores 3,600 s
    row = SCRIPT["draw_cost"](tmp_path / "reproduction").splitlines()[2]
    assert [cell.strip() for cell in row.split("|")[1:-1]] == [
        "Figure 9",
        "two models",
        "6,400",
        "5.0",
        "1,800",
        "1.4",
    ]


def test_the_pages_of_wmt_have_every_language_pair():
    for name, groups in (("wmt17", "cs-en"), ("wmt18", "et-en")):
        page = (RESULTS / f"{name}.md").read_text()
        headers = [line for line in page.splitlines() if line.startswith("|") and groups in line]
        assert len(headers) == 2, "one table a measure"
        found = json.loads((RESULTS / f"{name}.json").read_text())
        for row in found["rows"]:
            assert f"| {row['name']} " in page
            assert f"{100 * row['groups'][groups]['kendall_tau']['value']:.1f} [" in page


def test_a_year_without_our_figures_has_the_published_ones_and_says_so(tmp_path):
    drawn = draw_document("<!-- begin wmt19 -->\n<!-- end wmt19 -->\n", tmp_path)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in drawn.splitlines() if line.startswith("|")]
    assert rows[0] == ["", "Kendall tau", "daRR"]
    assert rows[2] == ["BLEURT mini", "not measured", "not measured"]
    assert ["BLEURTbase (published)", "33.6", "32.9"] in rows
    assert len(rows) == 3 + 9


def test_what_was_not_measured_says_so(tmp_path):
    marks = "a\n<!-- begin wmt99 -->\nold\n<!-- end wmt99 -->\nb\n"
    drawn = draw_document(marks, tmp_path)
    assert drawn == f"a\n<!-- begin wmt99 -->\n\n{NOT_MEASURED}\n<!-- end wmt99 -->\nb\n"
    assert draw_document(drawn, tmp_path) == drawn
    (tmp_path / "d.md").write_text(marks)
    main([str(tmp_path / "d.md"), str(tmp_path), str(tmp_path / "images")])
    assert (tmp_path / "d.md").read_text() == drawn
