"""Sentences and their opposites: which agree, what a turned meaning costs, and that all templates are whole."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders import opposite_sentences
from bleurt_repro.datasets_builders.contrast_pairs import CHANGED, COPY, JOINED_WEIGHT, SAME
from bleurt_repro.datasets_builders.opposite_sentences import make_opposite_pairs

KEPT, TURNED = "contrast: meaning kept", "contrast: meaning turned"


@pytest.fixture(scope="module")
def rows():
    return make_opposite_pairs(6_000, seed=1)


def test_the_opposite_costs_what_a_changed_meaning_costs(rows):
    scores = {kind: {row["score"] for row in rows if row["system"] == kind} for kind in (KEPT, TURNED)}
    lost = [CHANGED, CHANGED * JOINED_WEIGHT]
    assert scores[KEPT] == {SAME}
    assert scores[TURNED] == {round(whole - loss, 4) for whole in (SAME, COPY) for loss in lost}


def test_every_text_is_a_whole_sentence_and_no_candidate_is_its_reference(rows):
    for row in rows:
        for text in (row["reference"], row["candidate"]):
            assert re.fullmatch(r"[A-Z0-9][^{}]*[.]", text), text
        assert row["reference"] != row["candidate"]


def test_either_side_is_right_as_often():
    """The candidate alone does not tell: one that denies is right where the reference does, too, and as often wrong."""
    right, wrong = Counter(), Counter()
    for row in make_opposite_pairs(30_000, seed=2):
        for word in (" not ", " no ", "nobody", "lost", "too"):
            if word in row["candidate"] and row["candidate"].count(".") == 1:
                (right if row["system"] == KEPT else wrong)[word] += row["score"] in (SAME, round(SAME - CHANGED, 4))
    assert len(right) == 5
    for word in right:
        assert right[word] + wrong[word] > 100
        assert 0.4 < right[word] / (right[word] + wrong[word]) < 0.6, word


def test_all_lists_and_wordings_are_there():
    known = opposite_sentences._templates()
    for family in known["families"]:
        assert set(family["who"]) <= {*known["lists"], "pronoun"}, family
        assert len(family["say"]) >= 2
        sides = [side for wording in family["say"] for side in wording]
        assert len(set(sides)) == 2 * len(family["say"]), family
        for side in sides:
            slots = set(re.findall(r"\{(\w+)\}", side))
            assert slots & {"a", "A"} or "{visit}" in side, side
            assert slots - {"a", "A"} <= set(known["lists"]), side


def test_the_command_writes_them(tmp_path):
    output = tmp_path / "opposites.jsonl"
    with pytest.raises(SystemExit) as done:
        main(["data", "opposites", "--pairs", "50", "--seed", "1", "--output", str(output)])
    assert not done.value.code
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert written == make_opposite_pairs(50, seed=1)
