"""Every figure of README, documentation and cards stands in a results file; one that is changed by hand is found."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import figures
from tests.figures import Figure, accepted, allowed, changed, figures_of, is_carried, missing, pages, unaccepted

TRIED = 12  # figures of a page that are changed
RESULT = {
    "rows": [{"name": "ours", "tau": 0.31847}, {"name": "chrf", "tau": 0.25012}],
    "pairs": 41995,
    "seconds": 5.83,
}


def test_every_figure_stands_in_a_results_file():
    found = [figure.place for page in pages() for figure in missing(page)]
    assert not found, "no results file that the section names has:\n" + "\n".join(found)


def test_every_figure_is_the_accepted_one_and_its_result_has_not_changed():
    found = [difference for page in pages() for difference in unaccepted(page)]
    assert not found, "run `python -m tests.figures --accept` if these are right:\n" + "\n".join(found)


def test_every_allowed_number_is_needed():
    written = {page: {one.text for one in figures_of(page, (figures.ROOT / page).read_text())} for page in pages()}
    everywhere = set().union(*written.values())
    unused = {
        page: sorted(set(numbers) - written.get(page, everywhere if page == "*" else set()))
        for page, numbers in allowed().items()
    }
    assert not {page: numbers for page, numbers in unused.items() if numbers}
    assert all(str(why).strip() for numbers in allowed().values() for why in numbers.values())


@pytest.mark.parametrize("page", [name for name in pages() if name in accepted()])
def test_a_figure_that_is_changed_by_hand_is_found(page):
    """Each figure of each page is changed, one after the other, as a slip of the hand would."""
    text = (figures.ROOT / page).read_text(encoding="utf-8")
    lines = text.splitlines()
    tried = found = 0
    every = figures_of(page, text)
    for figure in every[:: max(1, len(every) // TRIED)]:
        slip = re.sub(rf"(?<![\d.,]){re.escape(figure.text)}(?!\d|[.,]\d)", changed(figure.text), figure.row)
        lines[figure.line - 1] = slip
        tried += slip != figure.row
        found += slip != figure.row and bool(unaccepted(page, "\n".join(lines)))
        lines[figure.line - 1] = figure.row
    assert found == tried > 0


@pytest.fixture
def repository(tmp_path, monkeypatch) -> Path:
    (tmp_path / "docs/results").mkdir(parents=True)
    (tmp_path / "docs/results/ours.json").write_text(json.dumps(RESULT))
    (tmp_path / "accepted.json").write_text("{}")
    monkeypatch.setattr(figures, "ACCEPTED", tmp_path / "accepted.json")
    monkeypatch.setattr(figures, "ROOT", tmp_path)
    monkeypatch.setattr(figures, "is_allowed", lambda figure: False)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("| ours | 31.8 | 0.32 | 41,995 |", []),
        ("| ours | 31.9 | 0.32 |", ["31.9"]),
        ("It takes 5.8 s for 41,996 ratings, 32 % of them in 7 cases.", ["41,996"]),
        ("In 2017, section 5.2, Table 14, Python 3.10, BLEURT-20 and `12.5`, step 12 of version 0.3.13.", []),
        ("It is 17.5 % faster, on 25 pairs.", ["17.5"]),
        ("<!-- 99.9 --> [text](https://x.org/17.3) of 1e-3", ["1e-3"]),
    ],
)
def test_numbers_are_found_and_looked_for_with_their_own_digits(repository, line, expected):
    page = f"# Title\n\nFigures: [ours](results/ours.json).\n\n{line}\n"
    assert [one.text for one in missing("docs/page.md", page, repository)] == expected


def test_a_section_takes_its_figures_from_its_own_files(repository):
    (repository / "docs/results/other.json").write_text('{"tau": 0.777}')
    page = "## A\n<!-- figures: docs/results/other.json -->\n| a | 77.7 | 31.8 |\n## B\n[x](results/ours.json)\n| b | 77.7 | 31.8 |\n"
    assert [(one.line, one.text) for one in missing("docs/page.md", page, repository)] == [(3, "31.8"), (6, "77.7")]
    page = "## A\n| a | 31.8 |\n## B\n[x](results/ours.json) [y](results/other.json)\n"
    assert missing("docs/page.md", page, repository) == []
    assert [one.text for one in missing("docs/page.md", "```\n12.5\n```\n---\n| a | 31.8 |\n", repository)] == ["31.8"]


def test_the_papers_figures_need_no_file_of_ours(monkeypatch):
    row = "| BLEURT, published | 35.6 |"
    figure = Figure("README.md", 1, "35.6", row)
    published = figures.ROOT / figures.PUBLISHED
    value = next(
        line.split("\t")[-1] for line in published.read_text().splitlines() if line.split("\t")[-1].count(".") == 1
    )
    assert is_carried(Figure("README.md", 1, value, row))
    assert not is_carried(Figure("README.md", 1, value, row.replace("published", "ours")))
    assert figure.place.startswith("README.md:1: 35.6 in")


def test_a_result_that_changes_makes_its_page_old(repository):
    (repository / "README.md").write_text("Figures: [ours](docs/results/ours.json).\n\n| ours | 31.8 |\n")
    assert unaccepted("README.md", root=repository) == ["README.md:3: 31.8 in '| ours | 31.8 |'"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "pages", lambda: ["README.md"])
        figures.accept()
    assert unaccepted("README.md", root=repository) == []
    place = "docs/results/ours.json#/rows/ours/tau"
    assert json.loads((repository / "accepted.json").read_text())["README.md"] == {"| ours | # |": [["31.8", place]]}
    for cached in (figures.values, figures.places):
        cached.cache_clear()
    (repository / "docs/results/ours.json").write_text(json.dumps({**RESULT, "rows": [{"name": "ours", "tau": 0.33}]}))
    try:
        assert unaccepted("README.md", root=repository) == ["README.md:3: 31.8 in '| ours | 31.8 |'"]
    finally:
        for cached in (figures.values, figures.places):
            cached.cache_clear()
