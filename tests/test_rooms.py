"""The rooms of the library: how many files there are, and that imports go from the front door down and never in a circle.

Lazy imports, inside functions, count as those at the top of a file do. Those for types alone are never run, so that they make
no circle; upward they count, too.
"""

from __future__ import annotations

import ast
import graphlib
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT

# From the front door down: a package uses those after it.
PACKAGES = ("bleurt_repro", "hub_cards", "training", "datasets_builders", "metric")
MOST_FILES = 150
# The front door is loaded by all for the package's version, and it hands out the metric's public names.
FRONT = "bleurt_repro"


def module_name(path: Path) -> str:
    """Return the name that a file is imported by."""
    folder = ROOT / "src" if path.is_relative_to(ROOT / "src") else ROOT
    parts = list(path.relative_to(folder).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts if parts[0] == FRONT else [FRONT, *parts])


FILES = sorted(path for package in ("src", *PACKAGES[1:]) for path in (ROOT / package).rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}


def imports(code: str, own: str, modules: set[str], types: bool = False) -> set[str]:
    """Return the modules of the library that a file imports, at its top or inside its functions.

    Args:
        code: of the file.
        own: its module's name.
        modules: those of the library.
        types: count what is imported for type checkers alone, too.
    """
    found: set[str] = set()
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING" and not types:
            node.body = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{own}: a relative import"
            # `from package import module` loads the module, `from module import name` the module before the name
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (names & modules) or {node.module}
    return (found & modules) - {own}


def graph(types: bool = False) -> dict[str, set[str]]:
    return {
        name: imports(path.read_text(encoding="utf-8"), name, set(MODULES), types) for name, path in MODULES.items()
    }


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Return a circle of imports, if there is one."""
    try:
        graphlib.TopologicalSorter(edges).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def room(module: str) -> int:
    """Return how far down a module's package is."""
    return max(PACKAGES.index(name) for name in (FRONT, *module.split(".")[1:2]) if name in PACKAGES)


def upward(edges: dict[str, set[str]]) -> list[str]:
    """Return the imports of a package above; that of the version, which the front door keeps, is none."""
    return [
        f"{module} imports {other}"
        for module, others in edges.items()
        for other in others - {FRONT}
        if room(other) < room(module)
    ]


def test_there_are_at_most_150_files():
    assert len(FILES) > 100
    assert len(FILES) <= MOST_FILES, f"{len(FILES)} files: put what a reader looks for in one place into one file"


def test_no_circle_of_imports():
    edges = graph()
    edges[FRONT] = set()  # its names are loaded on first use
    assert circle(edges) == []


def test_no_import_upward():
    assert upward(graph(types=True)) == []


def test_the_front_door_is_imported_for_its_version_alone():
    names = re.compile(r"^\s*from bleurt_repro import (.+?)(?:\s*#.*)?$", re.MULTILINE)
    for module, path in MODULES.items():
        for found in names.findall(path.read_text(encoding="utf-8")):
            own = room(module) == 0 or "/examples/" in path.as_posix()
            assert found == "__version__" or own, f"{path}: {found}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from bleurt_repro.metric import scorer", {"bleurt_repro.metric.scorer"}),
        ("def f():\n    from bleurt_repro.metric.scorer import BleurtScorer", {"bleurt_repro.metric.scorer"}),
        ("import bleurt_repro.metric.scorer as s", {"bleurt_repro.metric.scorer"}),
        ("import json, numpy", set()),
        ("if TYPE_CHECKING:\n    from bleurt_repro.metric import scorer", set()),
    ],
)
def test_imports_are_found(code, expected):
    assert imports(code, "bleurt_repro.x", set(MODULES)) == expected


def test_circles_and_imports_upward_are_found():
    scorer, cli = "bleurt_repro.metric.scorer", "bleurt_repro.cli"
    assert circle({scorer: {cli}, cli: {scorer}})
    assert upward({scorer: {cli}, cli: {scorer}}) == [f"{scorer} imports {cli}"]
