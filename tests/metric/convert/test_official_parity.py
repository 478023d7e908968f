"""RemBERT, the encoder of BLEURT-20, against the official graph written out independently, and what is published of it."""

from __future__ import annotations

import json
import sys

import pytest

from bleurt_repro.metric.convert.convert import MAX_DIFFERENCE
from tests.conftest import ROOT

pytest.importorskip("tensorflow", reason="writing an official checkpoint takes TensorFlow")
sys.path.insert(0, str(ROOT / "benchmarks"))
import official_parity  # noqa: E402

PUBLISHED = ROOT / "docs" / "results" / "official-parity.json"


@pytest.fixture(scope="module")
def published():
    return json.loads(PUBLISHED.read_text(encoding="utf-8"))["rows"]


@pytest.mark.parametrize("gelu", ["tanh", "erf"])
@pytest.mark.parametrize("name", [name for name in official_parity.STAND_INS if name.startswith("RemBERT")])
def test_rembert_scores_as_the_official_graph(name, gelu, published):
    found = official_parity.measure(name, gelu, seed=0)
    assert found["largest"] < MAX_DIFFERENCE < found["other_gelu"]
    assert found["spread"] > 0.1  # scores that are all alike would agree with anything
    (row,) = [row for row in published if (row["stand_in"], row["gelu"]) == (name, gelu)]
    assert row["largest_difference"] < MAX_DIFFERENCE
    # another processor sums in another order, and that is all
    assert found["largest"] < 10 * row["largest_difference"]


def test_every_stand_in_is_published(published):
    assert {row["stand_in"] for row in published} == set(official_parity.STAND_INS)
