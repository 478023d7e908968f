"""How to install the package: one place says it, and everything that names an extra takes it from there."""

from __future__ import annotations

import re

import pytest

from bleurt_repro.metric.install import SOURCE_VARIABLE, install_command, install_hint
from tests.conftest import ROOT

KNOWN = "git+https://host/org/name"


@pytest.mark.parametrize(
    ("extra", "source", "command"),
    [
        ("", None, "pip install -c constraints.txt ."),
        ("demo", None, "pip install -c constraints.txt '.[demo]'"),
        ("", KNOWN, f'pip install "bleurt-repro @ {KNOWN}"'),
        ("demo", KNOWN, f'pip install "bleurt-repro[demo] @ {KNOWN}"'),
    ],
)
def test_the_command(extra, source, command, monkeypatch):
    monkeypatch.delenv(SOURCE_VARIABLE, raising=False)
    assert install_command(extra, source) == command


def test_an_address_replaces_the_clone_in_error_messages(monkeypatch):
    monkeypatch.delenv(SOURCE_VARIABLE, raising=False)
    assert install_hint("onnx") == "`pip install -c constraints.txt '.[onnx]'` in a clone of the repository"
    monkeypatch.setenv(SOURCE_VARIABLE, KNOWN)
    assert install_hint("onnx") == f'`pip install "bleurt-repro[onnx] @ {KNOWN}"`'


@pytest.mark.parametrize("folder", ["metric", "datasets_builders", "training", "hub_cards", "bleurt_repro", "docs"])
def test_nothing_asks_a_registry_for_the_package(folder):
    """No registry has it, so that anyone could publish something else under its name."""
    bare = re.compile(r"pip install [\"'`]?bleurt-repro(\[\w+\])?[\"'`]?(?! @| finds nothing)(\s|$|\))", re.MULTILINE)
    found = [
        f"{path.relative_to(ROOT)}: {match[0].strip()}"
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md", ".txt", ".yaml")
        for match in bare.finditer(path.read_text(encoding="utf-8"))
    ]
    assert found == []


def test_the_readme_asks_no_registry_either():
    assert not re.search(r"pip install [\"'`]?bleurt-repro", (ROOT / "README.md").read_text(encoding="utf-8"))
