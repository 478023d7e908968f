"""README and tutorials: their commands run, in order, and print what the pages show; every page names what exists.

README runs after a plain, not editable, installation, inside a clone and in another folder. The other pages run in the test
environment. HOME is an empty folder.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorials" / "first-steps.md"
SCORES = ROOT / "docs" / "explanation" / "scores.md"
# `<!-- file: NAME -->` and `<!-- not run: REASON -->` stand before a block that is no command to run here
BLOCK = re.compile(
    r"(?:^<!-- (?P<kind>file|not run): (?P<note>[^>]+?) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```", re.M | re.S
)
NUMBER = re.compile(r"-?\d+\.\d+")
# scores differ between processors by less than 1e-4
TOLERANCE = 0.011


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with the output shown below it."""

    line: int
    kind: str
    note: str
    language: str
    body: str
    shown: str = ""


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for match in BLOCK.finditer(text):
        block = Block(
            text[: match.start()].count("\n") + 1,
            match["kind"] or "",
            match["note"] or "",
            match["language"],
            match["body"],
        )
        if block.language == "text" and not block.kind:
            assert found and found[-1].language in ("sh", "python"), f"{page.name}:{block.line}: output of what?"
            found[-1] = Block(**{**vars(found[-1]), "shown": block.body})
        else:
            found.append(block)
    return found


def assert_printed(printed: str, shown: str, where: str) -> None:
    """Compare word by word, numbers with a tolerance; a line of three dots stands for any lines."""
    parts = [part.split() for part in re.split(r"^\.\.\.$", shown, flags=re.M)]
    words = printed.split()
    for number, part in enumerate(parts):
        starts = range(len(words) - len(part) + 1) if number else [0]
        at = next((i for i in starts if _same(words[i : i + len(part)], part)), None)
        assert at is not None, f"{where} shows\n{shown}\nbut printed\n{printed}"
        words = words[at + len(part) :]
    assert not words or not parts[-1], f"{where} prints more than it shows:\n{printed}"


def _same(printed: list[str], shown: list[str]) -> bool:
    return len(printed) == len(shown) and all(
        NUMBER.sub("0", one) == NUMBER.sub("0", other)
        and all(
            abs(float(a) - float(b)) < TOLERANCE
            for a, b in zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
        )
        for one, other in zip(printed, shown, strict=True)
    )


@pytest.fixture
def place(tmp_path):
    """A folder in place of a clone: with the example files, and nothing else."""
    shutil.copytree(ROOT / "metric" / "examples", tmp_path / "clone" / "metric" / "examples")
    (tmp_path / "home").mkdir()
    return tmp_path


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A fresh clone without the larger checkpoint, and beside it an environment in which it is installed."""
    folder = tmp_path_factory.mktemp("fresh")
    left_out = shutil.ignore_patterns(".*", "build", "*.egg-info", "__pycache__", "bleurt-repro-base")
    shutil.copytree(ROOT, folder / "clone", symlinks=True, ignore=left_out)
    (folder / "home").mkdir()
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    packages = next(folder.glob("venv/lib/python*/site-packages"))
    # the dependencies are those of the test environment; its own, editable installation of the package must not be found
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = folder / "venv" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*install, folder / "clone"], check=True)
    return folder


def environment(place: Path, python: Path) -> dict[str, str]:
    kept = ("OMP_NUM_THREADS", "TMPDIR", "LANG")
    return {name: os.environ[name] for name in kept if name in os.environ} | {
        "HOME": str(place / "home"),
        "PATH": f"{python.parent}:/usr/bin:/bin",
        "HF_HUB_OFFLINE": "1",
        "HF_EVALUATE_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TQDM_DISABLE": "1",
    }


def run_page(page: Path, place: Path, python: Path) -> None:
    """Write the files of a page and run its commands, each where the one before left off."""
    clone = place / "clone"
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.kind == "file":
            (clone / block.note).write_text(block.body, encoding="utf-8")
        if block.kind or block.language not in ("sh", "python"):
            continue
        if block.language == "sh":
            words = ["bash", "-euo", "pipefail", "-c", block.body]
        else:
            words = [str(python), "-c", block.body]
        done = subprocess.run(
            words, cwd=clone, env=environment(place, python), capture_output=True, text=True, timeout=900
        )
        assert done.returncode == 0, f"{where} fails:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
        if block.shown:
            assert_printed(done.stdout, block.shown, where)


def python_of(clone: Path) -> Path:
    return clone / "venv" / "bin" / "python"


def test_the_readme_does_what_it_shows_inside_a_clone(clone):
    printed = subprocess.run(
        [python_of(clone), "-c", "import bleurt_repro; print(bleurt_repro.__file__)"],
        cwd=clone / "clone",
        env=environment(clone, python_of(clone)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert printed.startswith(str(clone / "venv")), "the clone shadows the installed package"
    run_page(README, clone, python_of(clone))


def test_the_readme_does_what_it_shows_in_another_folder(clone, place):
    run_page(README, place, python_of(clone))


def test_the_package_runs_as_a_module_inside_a_clone(clone):
    said = subprocess.run(
        [python_of(clone), "-m", "bleurt_repro", "--version"],
        cwd=clone / "clone",
        env=environment(clone, python_of(clone)),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("bleurt-repro ")


def test_the_page_on_scores_does_what_it_shows(place):
    run_page(SCORES, place, Path(sys.executable))


@pytest.mark.long
def test_the_tutorial_does_what_it_shows(clone):
    run_page(TUTORIAL, clone, python_of(clone))
    assert (clone / "clone" / "my-metric" / "curves.png").is_file()
    assert "bleurt-repro-mini" in (clone / "clone" / "report" / "table.md").read_text()


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
