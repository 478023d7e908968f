"""docs/reproduction/: every measured table is what its results give, and the baselines agree with the literature."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from tests.conftest import ROOT

SCRIPT = runpy.run_path(str(ROOT / "docs" / "draw_reproduction.py"))
NOT_MEASURED, PLOTS, SEED_RUNS, draw_page, main = (
    SCRIPT[name] for name in ("NOT_MEASURED", "PLOTS", "SEED_RUNS", "draw_page", "main")
)

PAGES = sorted((ROOT / "docs" / "reproduction").glob("*.md"))
RESULTS = ROOT / "docs" / "results" / "reproduction"
IMAGES = ROOT / "docs" / "images" / "reproduction"


def marked(name: str) -> str:
    """A page with marks of one name and nothing between them."""
    return f"a\n<!-- begin {name} -->\n<!-- end {name} -->\nb\n"


def cells(text: str) -> list[list[str]]:
    """The cells of each table row in a text."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def test_the_pages_are_what_the_results_give():
    names = set()
    for page in PAGES:
        text = page.read_text()
        # drawn from nothing, so that the comparison fails if nothing is drawn
        emptied = re.sub(r"(<!-- begin (\S+) -->\n).*?(<!-- end \2 -->)", r"\1\3", text, flags=re.DOTALL)
        names |= set(re.findall(r"<!-- begin ([^\s:]+)\S* -->\n<!-- end", emptied))
        assert draw_page(emptied, RESULTS) == text, f"redraw {page.name}: {main.__doc__}"
    unused = {path.stem for path in RESULTS.glob("*.json")} - names - set(SEED_RUNS)
    assert unused == {"wmt17-base-bare"}, "results that no page shows"  # one figure of table-2-base.md


def test_every_plot_is_on_a_page_for_light_and_for_dark_readers():
    text = "".join(page.read_text() for page in PAGES)
    plots = re.findall(r"images/reproduction/(\S+?)-(light|dark)\.svg", text)
    assert sorted(plots) == sorted((name, mode) for name in PLOTS for mode in ("light", "dark"))
    assert sorted(path.name for path in IMAGES.iterdir()) == sorted(f"{name}-{mode}.svg" for name, mode in plots)


def test_plots_and_time_come_from_the_results(tmp_path):
    pages, results, images = tmp_path / "pages", tmp_path / "results", tmp_path / "images"
    results.mkdir()
    pages.mkdir()
    page = pages / "data.md"
    page.write_text(marked("training-time"))
    ablation = json.loads((RESULTS / "ablation.json").read_text())
    (results / "ablation.json").write_text(json.dumps(ablation))
    main([str(pages), str(results), str(images)])
    before = {path.name: path.read_bytes() for path in images.iterdir()}
    assert set(before) == {f"figure-4-{mode}.svg" for mode in ("light", "dark")}
    assert before["figure-4-light.svg"] != before["figure-4-dark.svg"]
    runs = [*(run for row in ablation["rows"] for run in row["training"])]
    runs += [row["pretraining"] for row in ablation["rows"] if "pretraining" in row]
    minutes = sum(run["seconds"] for run in runs) / 60
    expected = ["Figure 4", str(len(runs)), f"{minutes:.0f}", f"{minutes / len(runs):.1f}"]
    assert cells(page.read_text())[2:] == [expected]
    main([str(pages), str(results), str(images)])
    assert {path.name: path.read_bytes() for path in images.iterdir()} == before
    for row in ablation["rows"]:
        row["training"] = [{**run, "seconds": run["seconds"] + 60} for run in row["training"]]
        row["average"]["kendall_tau"] += 0.1 * (row["name"] == "all")
    (results / "ablation.json").write_text(json.dumps(ablation))
    main([str(pages), str(results), str(images)])
    assert (images / "figure-4-light.svg").read_bytes() != before["figure-4-light.svg"]
    tuned = sum(len(row["training"]) for row in ablation["rows"])  # each a minute longer
    assert cells(page.read_text())[2][2] == f"{minutes + tuned:.0f}"


def test_a_figure_of_the_results_is_on_the_page(tmp_path):
    results = json.loads((RESULTS / "wmt17.json").read_text())
    row = next(row for row in results["rows"] if row["name"] == "chrf++")
    row["average"]["kendall_tau"] = 0.98765
    row["average_intervals"]["kendall_tau"] = [0.9, 0.991]
    row["groups"]["zh-en"]["kendall_tau"]["value"] = 0.1234
    (tmp_path / "wmt17.json").write_text(json.dumps(results))
    (line,) = (line for line in cells(draw_page(marked("wmt17"), tmp_path)) if line[0] == "chrf++")
    assert line[1:3] == ["98.8", "90.0 to 99.1"]
    rows = cells(draw_page(marked("wmt17:language-pairs"), tmp_path))
    (line,) = (line for line in rows if line[0] == "chrf++")
    assert dict(zip(rows[0], line, strict=True))["zh-en"] == "12.3"


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
    average = next(result["average"] for result in rows if result["name"] == row)
    assert {measure: 100 * average[measure] for measure in figures} == pytest.approx(figures, abs=tolerance)


def test_a_year_without_our_figures_has_the_published_ones_and_says_so(tmp_path):
    rows = cells(draw_page(marked("wmt19"), tmp_path))
    assert rows[0] == ["times 100", "Kendall tau", "daRR"]
    assert rows[2] == ["BLEURT mini", "not measured", "not measured"]
    assert ["BLEURTbase (published)", "33.6", "32.9"] in rows
    assert len(rows) == 3 + 9


def test_what_was_not_measured_says_so(tmp_path):
    pages = tmp_path / "pages"
    pages.mkdir()
    page_text = f"a\n<!-- begin wmt99 -->\n\n{NOT_MEASURED}\n\n<!-- end wmt99 -->\nb\n"
    assert draw_page(marked("wmt99"), tmp_path) == page_text
    assert draw_page(page_text, tmp_path) == page_text
    (pages / "d.md").write_text(marked("wmt99"))
    main([str(pages), str(tmp_path), str(tmp_path / "images")])
    assert (pages / "d.md").read_text() == page_text
