"""Averages and ensembles over older ones: killed before any file operation, the folder holds the old one or the new one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bleurt_repro.training.combine import average_scorers, make_ensemble
from tests.conftest import make_tiny_scorer
from tests.killed import kill_at_every_operation


@pytest.fixture
def members(tmp_path):
    return [str(make_tiny_scorer(tmp_path / name, spread=spread)) for name, spread in (("a", 0.3), ("b", 0.2))]


@pytest.fixture
def validation(tmp_path):
    rows = [("it rains", "it rains", 1.0), ("the cat sat", "a dog", -1.0), ("good dog", "the dog", 0.2)]
    path = tmp_path / "validation.jsonl"
    lines = [json.dumps({"reference": r, "candidate": c, "score": score}) for r, c, score in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def contents(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def check(write, out: Path) -> None:
    """Let `write` make an old and a new result of its argument, and kill it in between."""
    states = {}
    for name, weights in (("new", [1, 3]), ("old", [3, 1])):
        write(weights)
        states[name] = contents(out)
    assert states["old"] != states["new"]
    beside = {path.name for path in out.parent.iterdir()}
    seen = []
    for number in kill_at_every_operation(lambda: write([1, 3])):
        found = contents(out)
        assert found in states.values(), number
        seen.append(found == states["new"])
        if seen[-1]:
            write([3, 1])
            assert contents(out) == states["old"]
    assert {path.name for path in out.parent.iterdir()} == beside, "left after the run that was not killed"
    assert contents(out) == states["new"]
    assert set(seen) == {False, True} and len(seen) > 20


def test_an_average_is_old_or_new(members, tmp_path):
    out = tmp_path / "out"
    check(lambda weights: average_scorers(members, out, weights), out)


def test_an_ensemble_is_old_or_new(members, validation, tmp_path):
    out = tmp_path / "out"
    check(lambda weights: make_ensemble(members, validation, out, weights=weights), out)
