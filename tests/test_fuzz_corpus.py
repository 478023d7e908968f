"""What fuzzing has found stays mended: every stored case goes through its reader again, and only clear errors come out."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.targets import TARGETS

CASES = sorted(Path(__file__).with_name("fuzz_corpus").glob("*/*"))


def test_each_target_has_cases():
    assert {path.parent.name for path in CASES} == set(TARGETS)


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_stored_case(path):
    TARGETS[path.parent.name](path.read_bytes())
