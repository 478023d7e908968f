"""Sentences and their opposites: either side is right as often, and all templates are whole."""

from __future__ import annotations

import re
from collections import Counter

from bleurt_repro.datasets_builders.contrasts import CHANGED, SAME
from bleurt_repro.datasets_builders.contrasts.templates import OPPOSITE_SENTENCES, make_opposite_pairs, templates

KEPT = "contrast: meaning kept"


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
    content = templates(OPPOSITE_SENTENCES)
    lists = {*templates()["lists"], *content["lists"]}
    for family in content["families"]:
        assert set(family["who"]) <= {*lists, "pronoun"}, family
        assert len(family["say"]) >= 2
        sides = [side for wording in family["say"] for side in wording]
        assert len(set(sides)) == 2 * len(family["say"]), family
        for side in sides:
            slots = set(re.findall(r"\{(\w+)\}", side))
            assert slots & {"a", "A"} or "{visit}" in side, side
            assert slots - {"a", "A"} <= lists, side
