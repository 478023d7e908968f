"""The prose of documents, docstrings and messages is plain technical English."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

LIBRARY = (
    "bleurt_repro",
    "metric",
    "datasets_builders",
    "training",
    "hub_cards",
    "recipes",
    "fuzz",
    "benchmarks",
    "docs",
)
# each with what to write instead
WORDS = {
    r"mend(?:s|ed|ing)?": "fix",
    r"go(?:es|ing)? on": "continue, resume",
    r"went on": "continued, resumed",
    r"at hand": "available",
    r"to be had|be had": "can be obtained, available",
    r"parted": "separated",
    r"is said|are said": "is reported",
    r"will do": "is valid, works",
    r"as (?:it|they) lies?": "as is",
    r"by halves": "partially",
    r"put(?:s|ting)? out": "emit, print",
    r"foretell(?:s|ing)?|foretold": "predict",
    r"nothing is there by": "nothing was written",
    r"(?:every|each|its) bar|bars": "threshold",
    r"floors?": "layer",
    r"the cats": "name the test",
    r"who did what": "roles",
}
# a blank may be a line end, in a comment or a list too
SPACE, GAP = " ", r"\s+"
BANNED = {
    re.compile(rf"\b(?:{pattern.replace(SPACE, GAP)})\b", re.IGNORECASE): instead for pattern, instead in WORDS.items()
}
# literal names, a fire in an example, bars of a drawing or of progress
ALLOWED = re.compile(
    r"fire was put out|error[ _-]bars?|progress[ _-]bars?|bar charts?|loading bars|math\.floor|`[^`]*floor[^`]*`",
    re.IGNORECASE,
)
FIRST_WORDS = re.compile(r"(?:Gives?|Says?|Tells?)\b")


def documents() -> list[Path]:
    found = [ROOT / "fuzz" / "README.md", *ROOT.glob("*.md")]
    for folder in ("docs", "metric", "hub_cards", "datasets_builders", "training", "recipes"):
        found += (ROOT / folder).rglob("*.md")
    return sorted(found)


def sources() -> list[Path]:
    return sorted(
        path for folder in LIBRARY for path in (ROOT / folder).rglob("*.py") if "checkpoint" not in path.parts
    )


def docstrings(tree: ast.AST):
    """Yield each docstring with its line."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, kinds) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, text


def strings(tree: ast.AST):
    """Yield each text of several words, docstrings included, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value


def found_in(text: str, line: int = 1) -> list[str]:
    """Return each banned word with its line and what to write instead."""
    text = ALLOWED.sub(lambda match: "x" * len(match[0]), text)
    return [
        f"{line + text[: match.start()].count(chr(10))}: {' '.join(match[0].split())!r}: {instead}"
        for pattern, instead in BANNED.items()
        for match in pattern.finditer(text)
    ]


@pytest.mark.parametrize("path", documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_document_has_plain_words(path):
    assert found_in(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_source_has_plain_words(path):
    code = path.read_text(encoding="utf-8")
    tree = ast.parse(code)
    found = [hit for line, text in strings(tree) for hit in found_in(text, line)]
    for number, line in enumerate(code.splitlines(), start=1):
        if line.lstrip().startswith("#"):
            found += found_in(line, number)
    found += [
        f"{line}: begin with Return, Read, Write, ...: {text.split(chr(10))[0]!r}"
        for line, text in docstrings(tree)
        if FIRST_WORDS.match(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["It was mended.", "the run goes\non", "every bar is reached", "is there by halves", "Sum of the cats"]
)
def test_banned_words_are_found(text):
    assert found_in(text)


@pytest.mark.parametrize("text", ["`math.floor` of a number", "error bars of the plot", "a bar chart", "amended"])
def test_names_and_drawings_are_allowed(text):
    assert not found_in(text)
