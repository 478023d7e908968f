"""Find the figures in README, documentation and cards, and check that each stands in a results file.

    python -m tests.figures             # print the figures that no results file carries, with their places
    python -m tests.figures --accept    # write figures_sources.json, of the pages without such a figure

A page's figures are looked for in the results files (JSON, Markdown) under docs/results that the same section links, or that
a comment in it names (`<!-- figures: docs/results/wmt18.json -->`); in a section without either, in those that the page
links anywhere. A line or table row that says "published" or "paper" may take its figures from the papers' tables
(`training/experiments/published.tsv`). Tables between `<!-- begin X -->` and `<!-- end X -->` are drawn from results by
`docs/draw_reproduction.py`, which has a test of its own. What is no measurement (versions, sizes, settings) stands in
`figures_allowed.yaml` with its reason.

Among hundreds of results some number is always near. So `figures_sources.json` keeps, for each figure, where in which file
it was found: a figure that is changed by hand is not in it, and one whose result has changed is no longer the number there.
Both fail until somebody accepts the page as it is.
"""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
ALLOWED = Path(__file__).with_name("figures_allowed.yaml")
ACCEPTED = Path(__file__).with_name("figures_sources.json")
PUBLISHED = "training/experiments/published.tsv"
RESULTS = "docs/results"
NO_MEASUREMENT = "no measurement"
# Pages whose numbers are not looked at: diaries of what was tried, and the list of packages with their versions.
LEFT_OUT = ("docs/results/", "docs/development/", "docs/reference/licences.md")
# Cards are drawn from results and link none: these are what they were drawn from.
DRAWN_FROM = {
    "metric/checkpoint/bleurt-repro-mini/README.md": (
        "docs/results/wmt18.json",
        "docs/results/webnlg.json",
        "docs/results/sanity.json",
        "docs/results/adversarial.json",
        "docs/results/reliability-mini.json",
        "docs/results/mini-training",
        "metric/checkpoint/bleurt-repro-mini/results.json",
    ),
    "metric/checkpoint/bleurt-repro-base/README.md": (
        "docs/results/wmt18-base.json",
        "docs/results/webnlg-base.json",
        "docs/results/sanity-base.json",
        "docs/results/adversarial-base.json",
        "docs/results/reliability-base.json",
        "docs/results/base-training",
        "metric/checkpoint/bleurt-repro-base/results.json",
    ),
    "metric/bleurt_repro/README.md": ("docs/results/wmt18.json", "docs/results/webnlg.json"),
}

# A number that is no part of a word, a version or a name: not "BLEURT-20", "0.3.13", "WMT17", "A.1", "3.10.2".
NUMBER = re.compile(r"(?<![\w.@/#§:-])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w]|\.\d|-\w|/\w)")
# What makes a whole number in running text a measurement.
UNIT = re.compile(
    r"\s?(?:%|(?:percent|points?|pairs?|ratings|segments|sentences|steps|hours?|minutes?|seconds?|s|ms|KB|MB|GB|KiB|MiB|"
    r"GiB|tokens|times|of \d|cases|kills|mutants|lines|branches|requests|files|models|rounds|texts|outputs|rows|records|"
    r"triples|words|parameters|million)\b)"
)
# Numbers that count or name, whatever follows.
ORDINAL = re.compile(
    r"(?:sections?|tables?|figures?|steps?|lines?|python|page|chapter|version|CVE)\W+$", re.IGNORECASE
)
SOURCE_COMMENT = re.compile(r"<!--\s*figures:\s*(.*?)-->", re.DOTALL)


@dataclass(frozen=True)
class Figure:
    """A number of a page.

    Attributes:
        page: relative to the repository.
        line: from 1.
        text: as it is written, without sign and unit.
        row: the line it stands on, for messages and for "published".
        sources: the results files that its section names.
    """

    page: str
    line: int
    text: str
    row: str
    sources: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it stands, and in what line."""
        return f"{self.page}:{self.line}: {self.text} in {self.row.strip()[:90]!r}"


def pages(root: Path = ROOT) -> list[str]:
    """Return README, the documentation and the cards, except what `LEFT_OUT` names."""
    found = [root / "README.md", *sorted((root / "docs").rglob("*.md"))]
    found += [*sorted((root / "metric/checkpoint").glob("*/README.md")), root / "metric/bleurt_repro/README.md"]
    names = (path.relative_to(root).as_posix() for path in found if path.is_file())
    return [name for name in names if not name.startswith(LEFT_OUT)]


def figures_of(page: str, text: str) -> list[Figure]:
    """Find the figures of a page.

    Args:
        page: its name, relative to the repository.
        text: its Markdown.
    """
    found: list[Figure] = []
    every = [*_sources(page, text), *DRAWN_FROM.get(page, ())]
    for section in _sections(text):
        own = _sources(page, "\n".join(line for _, line in section)) or every
        for number, line in section:
            found += [Figure(page, number, value, line, tuple(own)) for value in _numbers(line)]
    return found


def _sections(text: str) -> Iterator[list[tuple[int, str]]]:
    """Cut a page at its headings; front matter, code blocks and headings themselves have no figures."""
    section: list[tuple[int, str]] = []
    fence = front = drawn = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() == "---" and (number == 1 or front):
            front = not front
        elif line.lstrip().startswith("```"):
            fence = not fence
        elif re.match(r"<!-- (?:begin|end) ", line):
            drawn = line.startswith("<!-- begin ")
        elif line.startswith("#") and not fence and not front:
            yield section
            section = [(number, line)] if SOURCE_COMMENT.search(line) else []
        elif not fence and not front and not drawn:
            section.append((number, line))
    yield section


def _sources(page: str, text: str) -> list[str]:
    """Return the results files that a text links or names in a comment."""
    folder = Path(page).parent
    linked = [(folder / target).as_posix() for target in re.findall(r"\]\(([^)#\s]+)", text)]
    named = [name for names in SOURCE_COMMENT.findall(text) for name in names.split()]
    paths = [_normal(path) for path in (*linked, *named)]
    # A table is drawn from the file beside it.
    paths += [path.removesuffix(".md") + ".json" for path in paths if path.endswith(".md")]
    return [path for path in dict.fromkeys(paths) if path.startswith(RESULTS)]


def _normal(path: str) -> str:
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts:
            parts.pop()
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def _numbers(line: str) -> Iterator[str]:
    """Return the numbers of a line that are figures: all in a table, in running text those with decimals or a unit."""
    table = line.lstrip().startswith("|")
    line = re.sub(r"<!--.*?-->|`[^`]*`|\]\([^)]*\)|https?://\S+|<[^>]*>", lambda gone: " " * len(gone.group()), line)
    line = re.sub(r"^\s*\d+\. ", "", line)
    for found in NUMBER.finditer(line):
        text = found.group().lstrip("+-").rstrip(",")
        plain = text.replace(",", "")
        whole = re.fullmatch(r"\d+", plain) is not None
        if ORDINAL.search(line[: found.start()]) or (
            whole and "," not in text and re.fullmatch(r"(?:19|20)\d\d", plain)
        ):
            continue
        after = UNIT.match(line, found.end())
        if not whole or "," in text or (int(plain) > 9 and (table or after)) or (after and "%" in after.group()):
            yield text


@functools.cache
def values(path: str, root: Path = ROOT) -> tuple[tuple[float, str], ...]:
    """Return the numbers of a results file, or of all files in a folder of results, each with its place.

    Args:
        path: relative to the repository: JSON, of which every number counts, or a text.
        root: of the repository.
    """
    file = root / path
    if file.is_dir():
        inner = (p.relative_to(root).as_posix() for p in sorted(file.iterdir()))
        return tuple(one for name in inner for one in values(name, root))
    if not file.is_file() or file.suffix not in (".json", ".md", ".tsv"):
        return ()
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".json":
        return tuple((value, f"{path}#{place}") for value, place in _leaves(json.loads(text), ""))
    found = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
    lines = enumerate(text.splitlines(), start=1)
    return tuple(
        (
            float(n.rstrip(",").replace(",", "")),
            f"{path}#{number}: {line.split('|')[1].strip() if '|' in line else ''}",
        )
        for number, line in lines
        for n in found.findall(line)
    )


def _leaves(value: Any, place: str) -> Iterator[tuple[float, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{place}/{name}")
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            named = inner.get("name", number) if isinstance(inner, dict) else number
            yield from _leaves(inner, f"{place}/{named}")
        yield float(len(value)), f"{place}/length"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield abs(float(value)), place


@functools.cache
def places(figure: Figure, root: Path = ROOT) -> list[str]:
    """Return the places in its sources that have the figure, as it is or as a share of 100, rounded to its own digits.

    The places come first whose names share most words with the figure's own row.
    """
    sources = list(figure.sources)
    if re.search(r"publish|paper", figure.row, re.IGNORECASE):
        sources.append(PUBLISHED)
    plain = figure.text.replace(",", "")
    mantissa, _, exponent = plain.partition("e")
    step = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    wanted, slack = float(plain), 0.500001 * step
    # Whole numbers of four digits and more are counts: no share of 100 is so large.
    scales = (1.0,) if wanted >= 1000 else (1.0, 100.0)
    found = [
        place
        for path in sources
        for value, place in values(path, root)
        if any(abs(scale * value - wanted) <= slack for scale in scales)
    ]
    own = _words(figure.row)
    return sorted(dict.fromkeys(found), key=lambda place: -len(own & _words(place)))


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{2,}", text.lower()))


def is_carried(figure: Figure, root: Path = ROOT) -> bool:
    """Check whether a source has the figure."""
    return bool(places(figure, root))


@functools.cache
def allowed() -> dict[str, dict[str, str]]:
    """Read the list of numbers that are no measurements: by page ("*" is every page), the number and why."""
    listed: dict[str, dict[str, str]] = yaml.safe_load(ALLOWED.read_text(encoding="utf-8")) or {}
    return {page: {str(text): why for text, why in numbers.items()} for page, numbers in listed.items()}


def is_allowed(figure: Figure) -> bool:
    """Check whether the list names the number, for its page or for all."""
    return any(figure.text in allowed().get(page, {}) for page in (figure.page, "*"))


def missing(page: str, text: str | None = None, root: Path = ROOT) -> list[Figure]:
    """Return the figures of a page that nothing carries and the list does not name.

    Args:
        page: relative to the repository.
        text: its Markdown; by default what the file holds.
    """
    text = (root / page).read_text(encoding="utf-8") if text is None else text
    return [one for one in figures_of(page, text) if not is_allowed(one) and not is_carried(one, root)]


def accepted() -> dict[str, dict[str, list[list[str]]]]:
    """Read where each figure was found: by page and line without numbers, the figures in order, each with its place."""
    known: dict[str, dict[str, list[list[str]]]] = json.loads(ACCEPTED.read_text(encoding="utf-8"))
    return known


def line_without_numbers(figure: Figure) -> str:
    """Return the figure's line with a # for each number, by which it is known whatever stands in it.

    The first cell of a table's row stays: it may be a number and say which row this is.
    """
    line = " ".join(figure.row.split())
    first, rest = line, ""
    if line.startswith("|"):
        first, _, rest = line[1:].partition("|")
    shown = re.sub(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?", "#", rest or first)
    return (f"|{first}|{shown}" if rest else shown)[:160]


def unaccepted(page: str, text: str | None = None, root: Path = ROOT) -> list[str]:
    """Return what differs from the accepted figures of a page: other or missing figures, and results that have changed.

    Args:
        page: relative to the repository.
        text: its Markdown; by default what the file holds.
        root: of the repository.
    """
    text = (root / page).read_text(encoding="utf-8") if text is None else text
    known, now = accepted().get(page, {}), _by_line(page, text)
    found = []
    for line in dict.fromkeys([*now, *known]):
        before, after = known.get(line, []), now.get(line, [])
        if [one for one, _ in before] != [figure.text for figure in after]:
            shown = [figure.place for figure in after] or [f"{page}: gone: {line!r}"]
            found += shown
            continue
        for (_, place), figure in zip(before, after, strict=True):
            if not (is_allowed(figure) if place == NO_MEASUREMENT else place in places(figure, root)):
                found.append(figure.place)
    return found


def accept() -> None:
    """Write where each figure was found, of every page that has none which is nowhere."""
    found = {}
    for page in pages():
        lines = _by_line(page, (ROOT / page).read_text(encoding="utf-8"))
        if not lines or missing(page, root=ROOT):
            continue
        found[page] = {
            line: [[one.text, NO_MEASUREMENT if is_allowed(one) else places(one, ROOT)[0]] for one in figures]
            for line, figures in lines.items()
        }
    ACCEPTED.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _by_line(page: str, text: str) -> dict[str, list[Figure]]:
    found: dict[str, list[Figure]] = {}
    for figure in figures_of(page, text):
        found.setdefault(line_without_numbers(figure), []).append(figure)
    return found


def changed(text: str) -> str:
    """Return a number as a slip of the hand would leave it: one more in its second digit, or its only one."""
    at = [i for i, character in enumerate(text) if character.isdigit()][:2][-1]
    return text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :]


def main(words: list[str]) -> int:
    """Run as the module's docstring says."""
    named = [word for word in words if not word.startswith("-")]
    found = [figure for page in named or pages() for figure in missing(page)]
    for figure in found:
        sys.stdout.write(f"{figure.place}\n")
    sys.stderr.write(f"{len(found)} figures that no results file carries\n")
    if "--accept" in words:
        accept()
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
