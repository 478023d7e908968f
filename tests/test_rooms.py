"""The packages of the library: imports go from the front door down, and never in a circle.

Imports inside functions and those for type checkers count as those at the top of a file do.
"""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest

from tests.conftest import ROOT

# From the front door down: a package uses those after it.
PACKAGES = ("bleurt_repro", "hub_cards", "training", "datasets_builders", "metric")
# All packages read the version from the front door, which loads its other names on first use.
FRONT = "bleurt_repro"


def module_name(path: Path) -> str:
    """Return the name that a file is imported by."""
    folder = ROOT / "src" if path.is_relative_to(ROOT / "src") else ROOT
    parts = list(path.relative_to(folder).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts if parts[0] == FRONT else [FRONT, *parts])


FILES = sorted(path for folder in ("src", *PACKAGES[1:]) for path in (ROOT / folder).rglob("*.py"))
MODULES = {module_name(path): path for path in FILES}


def imports(code: str, module: str) -> set[str]:
    """Return the modules of the library that a file imports; of the front door, other names than the version."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert not node.level, f"{module}: a relative import"
            # `from package import module` loads the module, `from module import name` the module before the name
            full_names = {f"{node.module}.{alias.name}" for alias in node.names} - {f"{FRONT}.__version__"}
            names |= {name if name in MODULES else node.module for name in full_names}
    return (names & MODULES.keys()) - {module}


GRAPH = {name: imports(path.read_text(encoding="utf-8"), name) for name, path in MODULES.items()}


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return a circle of imports, if there is one."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def floor(module: str) -> int:
    """Return how far down a module's package is."""
    return max(PACKAGES.index(name) for name in (FRONT, *module.split(".")[1:2]) if name in PACKAGES)


def upward(graph: dict[str, set[str]]) -> list[str]:
    """Return the imports of a package above."""
    return [f"{module} imports {name}" for module in graph for name in graph[module] if floor(name) < floor(module)]


def test_no_circle_of_imports():
    assert len(MODULES) > 100
    assert circle({**GRAPH, FRONT: set()}) == []


def test_no_import_upward():
    # the examples and the `evaluate` module run outside the package, and use it as a user does
    outside = ("bleurt_repro.metric.examples.", "bleurt_repro.metric.bleurt_repro.")
    assert upward({module: names for module, names in GRAPH.items() if not module.startswith(outside)}) == []


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("from bleurt_repro.metric import scorer", {"bleurt_repro.metric.scorer"}),
        ("def f():\n    from bleurt_repro.metric.scorer import BleurtScorer", {"bleurt_repro.metric.scorer"}),
        ("import bleurt_repro.metric.scorer as s", {"bleurt_repro.metric.scorer"}),
        ("if TYPE_CHECKING:\n    from bleurt_repro.metric import scorer", {"bleurt_repro.metric.scorer"}),
        ("from bleurt_repro import BleurtScorer", {FRONT}),
        ("import json, numpy\nfrom bleurt_repro import __version__", set()),
    ],
)
def test_imports_are_found(code, expected):
    assert imports(code, "bleurt_repro.x") == expected


def test_circles_and_imports_upward_are_found():
    scorer, cli = "bleurt_repro.metric.scorer", "bleurt_repro.cli"
    assert circle({scorer: {cli}, cli: {scorer}})
    assert upward({scorer: {cli}, cli: {scorer}}) == [f"{scorer} imports {cli}"]
