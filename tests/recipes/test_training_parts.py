"""Parts of a training set: ratings in all, each label in one, longer pairs left out on request."""

from __future__ import annotations

import json
import runpy

import pytest
import typer

from tests.conftest import ROOT

SCRIPT = runpy.run_path(str(ROOT / "recipes" / "training_parts.py"))


@pytest.fixture
def train(tmp_path):
    rows = [{"reference": f"R {i}", "candidate": f"C {i}", "score": 0.1, "system": None} for i in range(3)]
    rows += [{"reference": "a " * (i + 1), "candidate": "b", "score": 0.2, "system": "label"} for i in range(10)]
    path = tmp_path / "train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_ratings_are_in_all_parts_and_a_label_in_one(train, tmp_path):
    SCRIPT["main"](train, tmp_path / "part")
    parts = [read(tmp_path / f"part-{part}.jsonl") for part in (1, 2)]
    rated, labels = (
        [[r["reference"] for r in part if (r["system"] == "label") == kind] for part in parts]
        for kind in (False, True)
    )
    assert [sorted(some) for some in rated] == [["R 0", "R 1", "R 2"]] * 2
    assert [len(some) for some in labels] == [5, 5] and len({*labels[0], *labels[1]}) == 10
    before = (tmp_path / "part-1.jsonl").read_bytes()
    SCRIPT["main"](train, tmp_path / "part", most=2, seed=0)
    assert len(read(tmp_path / "part-1.jsonl")) == 5
    SCRIPT["main"](train, tmp_path / "part")
    assert (tmp_path / "part-1.jsonl").read_bytes() == before


def test_pairs_of_more_tokens_are_left_out(train, tmp_path, tiny_scorer):
    SCRIPT["main"](train, tmp_path / "part", parts=1, longest=9, encoder=str(tiny_scorer))
    lengths = [len(row["reference"].split()) for row in read(tmp_path / "part-1.jsonl") if row["system"] == "label"]
    assert sorted(lengths) == [1, 2, 3, 4, 5]  # with the candidate and three tokens of the tokenizer's own
    with pytest.raises(typer.BadParameter, match="--longest counts tokens of an encoder"):
        SCRIPT["main"](train, tmp_path / "part", longest=9)
