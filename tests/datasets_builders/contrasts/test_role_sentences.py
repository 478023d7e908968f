"""Sentences whose participants have roles: the turned ones have the same words, and nothing else tells them apart."""

from __future__ import annotations

import re
from collections import Counter

from bleurt_repro.datasets_builders.contrasts import CHANGED, SAME
from bleurt_repro.datasets_builders.contrasts.templates import make_role_pairs, templates

KEPT, TURNED = "contrast: roles kept", "contrast: roles turned"


def test_each_reference_has_both_and_they_have_the_same_words():
    # A pronoun takes another form where it changes places: "I" and "me" count as one word.
    forms = {form: forms[0] for forms in templates()["pronouns"] for form in forms}

    def words(text):
        tokens = (word if word == "I" else word.lower() for word in re.findall(r"[\w-]+", text))
        return Counter(forms.get(word, word) for word in tokens)

    rows = make_role_pairs(3_000, seed=2)
    counts, judged = Counter(), 0
    for first, second in zip(rows, rows[1:], strict=False):
        if first["system"] == KEPT and second["reference"] == first["reference"]:
            assert second["system"] == TURNED
            assert words(first["candidate"]) == words(second["candidate"])
            judged += 1
        counts[first["system"]] += 1
    assert judged > 1_000
    assert counts[TURNED] > counts[KEPT]  # some are shown in the reference's own wording, too


def test_the_candidate_alone_does_not_tell():
    """As each of the two may be the one who acts, a text is as often right as wrong."""
    right, wrong = Counter(), Counter()
    for row in make_role_pairs(40_000, seed=3):
        again = row["score"] in (SAME, round(SAME - CHANGED, 4))  # not the reference's own wording turned round
        if again and re.fullmatch(r"(She|He|I) (\w+) (her|him|me)\.", row["candidate"]):
            (right if row["system"] == KEPT else wrong)[row["candidate"].split()[0]] += 1
    for who in ("She", "He", "I"):
        assert right[who] + wrong[who] > 50
        assert 0.35 < right[who] / (right[who] + wrong[who]) < 0.65


def test_all_lists_and_wordings_are_there():
    content = templates()
    for family in [*content["families"], *content["deeds"]]:
        assert set(family["who"]) <= {*content["lists"], "pronoun"}, family
    for family in content["families"]:
        assert len(family["say"]) >= 2
        for wording in family["say"]:
            slots = re.findall(r"\{(\w+)\}", wording)
            assert {slot.lower() for slot in slots} >= {"a", "b"}, wording
            assert {slot for slot in slots if slot.lower() not in ("a", "b")} <= set(content["lists"]), wording
    for deed in content["deeds"]:
        assert all(len(verb.split("/")) == 2 for verb in deed["say"])
