"""Pages: their commands run, in order, and print what the pages show; every page names what exists.

`make smoke` runs README after a plain, not editable, installation. The other pages run in the test environment.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.pages import README, ROOT, assert_printed, read_blocks, run_page

TUTORIAL = ROOT / "docs" / "tutorials" / "first-steps.md"
SCORES = ROOT / "docs" / "explanation" / "scores.md"
COMPARE = ROOT / "docs" / "how-to" / "compare-systems.md"


@pytest.fixture
def folder(tmp_path):
    """Return a folder in place of a clone: with the example files, and nothing else."""
    shutil.copytree(ROOT / "metric" / "examples", tmp_path / "clone" / "metric" / "examples")
    return tmp_path / "clone"


@pytest.mark.long
def test_the_page_on_scores_does_what_it_shows(folder, tmp_path):
    run_page(SCORES, folder, Path(sys.executable), tmp_path)


@pytest.mark.long
def test_the_tutorial_does_what_it_shows(folder, tmp_path):
    run_page(TUTORIAL, folder, Path(sys.executable), tmp_path)
    assert (folder / "my-metric" / "curves.png").is_file()
    assert "bleurt-repro-mini" in (folder / "report" / "table.md").read_text()


@pytest.mark.long
def test_the_page_on_comparisons_does_what_it_shows(folder, tmp_path):
    for block in read_blocks(TUTORIAL):
        if block.kind == "file":
            (folder / block.note).write_text(block.body, encoding="utf-8")
    run_page(COMPARE, folder, Path(sys.executable), tmp_path)


def test_the_table_of_the_readme_is_drawn_from_results():
    sys.path.insert(0, str(ROOT / "docs"))
    try:
        from draw_readme import with_table
    finally:
        sys.path.pop(0)
    page = README.read_text(encoding="utf-8")
    assert "| **bleurt-repro-mini** |" in page or "| **bleurt-repro-mini**" in page
    assert with_table(page) == page, "run: python docs/draw_readme.py README.md"


def test_the_comparison_of_outputs_can_fail():
    assert_printed("a 0.9597 b\n", "a 0.96 b\n", "here")
    assert_printed("a 1.0\nmore\nlast\n", "a 1.0\n...\nlast\n", "here")
    assert_printed("a 1.0\nmore\n", "a 1.0\n...\n", "here")
    for printed, shown in [
        ("a 0.93", "a 0.96"),
        ("b 0.96", "a 0.96"),
        ("a 0.96 b", "a 0.96"),
        ("a", "a 0.96"),
        ("x\ny", "...\nz"),
    ]:
        with pytest.raises(AssertionError):
            assert_printed(printed, shown, "here")


# pages that a command draws, and what is named there only as an example
DRAWN = ("licences.md",)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted(page for page in (ROOT / "docs").rglob("*.md") if page.name not in DRAWN and "results" not in page.parts),
    ROOT / "fuzz" / "README.md",
]
ROOMS = "src|metric|datasets_builders|training|hub_cards|recipes|tests|benchmarks|fuzz|docs"
NAMED_PATH = re.compile(rf"(?<![\w./-])(?:{ROOMS})/[\w./-]*\w")
NAMED_TEST = re.compile(r"\btest_\w+\.py")
TESTS = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
NAMED_MODULE = re.compile(r"\bbleurt_repro(?:\.\w+)+")
LINK = re.compile(r"\]\(([^)#\s:]+)(#[^)\s]*)?\)")
# a word in capitals stands for a name
PLACEHOLDER = re.compile(r"/[A-Z]{2,}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_names_what_exists(page):
    text = page.read_text(encoding="utf-8")
    # the beginning of an existing name is enough: experiment_*.yaml, or an output's name without its ending
    named = [path for path in NAMED_PATH.findall(text) if not PLACEHOLDER.search(path)]
    wrong = [path for path in named if not any(ROOT.glob(f"{path}*"))]
    wrong += [name for name in NAMED_TEST.findall(text) if name not in TESTS]
    wrong += [name for name in set(NAMED_MODULE.findall(text)) if not _importable(name)]
    for target, anchor in LINK.findall(text):
        linked = (page.parent / target).resolve()
        if not linked.exists():
            wrong.append(target)
        elif anchor and linked.suffix == ".md" and anchor[1:] not in _anchors(linked):
            wrong.append(target + anchor)
    assert wrong == []


def _importable(name: str) -> bool:
    """Whether a dotted name is a module of the package, or an attribute of one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        if spec is not None:
            rest = parts[end:]
            return not rest or rest[0] in Path(spec.origin).read_text(encoding="utf-8")
    return False


def _anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower()).replace(" ", "-") for heading in headings}
