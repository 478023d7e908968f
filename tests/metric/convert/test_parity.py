"""Comparing scores with published ones."""

from __future__ import annotations

import json
import math

import pytest

from bleurt_repro import BleurtScorer
from bleurt_repro.metric.convert.convert import measure_parity, read_scored_pairs
from bleurt_repro.metric.forward.encoding import PairEncoder

REFERENCES = ["the cat sat on the mat", "it rains", "good bye " * 40]
CANDIDATES = ["the dog sat", "it rains", "hi there " * 40]


@pytest.fixture
def published(tiny_scorer, tmp_path):
    """A function that writes the scorer's own scores, moved by `shifts`, with token ids for the first pairs."""
    scorer = BleurtScorer(str(tiny_scorer))
    encoder = PairEncoder(scorer.tokenizer, scorer.layout)

    def write(shifts=(0, 0, 0), ids=2):
        with pytest.warns(UserWarning, match="longer than"):
            scores = scorer.score(references=REFERENCES, candidates=CANDIDATES)
        file = tmp_path / "scores.jsonl"
        with file.open("w") as out:
            out.write("\n")
            for i, (reference, candidate) in enumerate(zip(REFERENCES, CANDIDATES, strict=True)):
                row = {"reference": reference, "candidate": candidate, "score": scores[i] + shifts[i], "note": "x"}
                if i < ids:
                    tokens = encoder.tokenize([reference, candidate])
                    row["input_ids"] = list(encoder.encode([tokens[reference], tokens[candidate]]).ids)
                out.write(json.dumps(row) + "\n")
        return file

    return write


def test_own_scores_are_met(tiny_scorer, published):
    parity = measure_parity(str(tiny_scorer), published())
    assert (parity.pairs, parity.with_ids, parity.same_ids) == (3, 2, 2)
    assert parity.largest < 1e-6
    assert str(parity).startswith("3 pairs, largest difference ")
    assert str(parity).endswith("token ids identical in 2 of 2")


def test_the_largest_difference_and_its_line_are_found(tiny_scorer, published):
    parity = measure_parity(str(tiny_scorer), published(shifts=(0.01, -0.25, 0.1), ids=0))
    assert parity.largest == pytest.approx(0.25, abs=1e-6)
    assert parity.worst_line == 3
    assert str(parity) == "3 pairs, largest difference 2.5e-01"


def test_other_token_ids_are_counted(tiny_scorer, published):
    file = published()
    lines = file.read_text().splitlines()
    row = json.loads(lines[1])
    row["input_ids"][1] += 1
    file.write_text("\n".join([json.dumps(row), *lines[2:]]))
    assert measure_parity(str(tiny_scorer), file).same_ids == 1


def test_a_score_that_is_no_number_is_no_match(tiny_scorer, published):
    assert measure_parity(str(tiny_scorer), published(shifts=(0, math.nan, 0))).largest == math.inf


@pytest.mark.parametrize(
    "line, message",
    [
        ("{", r"line 2: not JSON \("),
        ("[1]", r"line 2: not a scored pair \("),
        ('{"reference": "a", "candidate": "b"}', r"line 2: not a scored pair \('score'\)"),
        ('{"reference": "a", "candidate": null, "score": 1}', "line 2: not a scored pair; each line is"),
        ('{"reference": "a", "candidate": "b", "score": "1"}', "line 2: not a scored pair; each line is"),
        ('{"reference": "a", "candidate": "b", "score": true}', "line 2: not a scored pair; each line is"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, line, message):
    file = tmp_path / "scores.jsonl"
    file.write_text('{"reference": "a", "candidate": "b", "score": 1}\n' + line + "\n")
    with pytest.raises(ValueError, match=message):
        read_scored_pairs(file)


def test_no_scores_are_no_comparison(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file of scores"):
        read_scored_pairs(tmp_path / "none")
    (tmp_path / "empty").write_text("\n \n")
    with pytest.raises(ValueError, match="holds no scores"):
        read_scored_pairs(tmp_path / "empty")
