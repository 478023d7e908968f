"""Sentences of who did what to whom: which agree, which are turned round, and that nothing else tells them apart."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders import role_sentences
from bleurt_repro.datasets_builders.contrast_pairs import CHANGED, COPY, JOINED_WEIGHT, SAME
from bleurt_repro.datasets_builders.role_sentences import make_role_pairs

KEPT, TURNED = "contrast: roles kept", "contrast: roles turned"


@pytest.fixture(scope="module")
def rows():
    return make_role_pairs(6_000, seed=1)


def test_turned_round_costs_what_a_changed_meaning_costs(rows):
    scores = {kind: {row["score"] for row in rows if row["system"] == kind} for kind in (KEPT, TURNED)}
    lost = [CHANGED, CHANGED * JOINED_WEIGHT]
    assert scores[KEPT] == {SAME}
    assert scores[TURNED] == {round(whole - loss, 4) for whole in (SAME, COPY) for loss in lost}


def test_every_text_is_a_whole_sentence_and_no_candidate_is_its_reference(rows):
    for row in rows:
        for text in (row["reference"], row["candidate"]):
            assert re.fullmatch(r"[A-Z0-9][^{}]*[.]", text), text
        assert row["reference"] != row["candidate"]


def test_each_reference_has_both_and_they_have_the_same_words():
    # A pronoun takes another form where it changes places: "I" and "me" count as one word.
    forms = {form: forms[0] for forms in role_sentences.templates()["pronouns"] for form in forms}

    def words(text):
        found = (word if word == "I" else word.lower() for word in re.findall(r"[\w-]+", text))
        return Counter(forms.get(word, word) for word in found)

    rows = make_role_pairs(3_000, seed=2)
    told, judged = Counter(), 0
    for first, second in zip(rows, rows[1:], strict=False):
        if first["system"] == KEPT and second["reference"] == first["reference"]:
            assert second["system"] == TURNED
            assert words(first["candidate"]) == words(second["candidate"])
            judged += 1
        told[first["system"]] += 1
    assert judged > 1_000
    assert told[TURNED] > told[KEPT]  # some are shown in the reference's own wording, too


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
    known = role_sentences.templates()
    for family in [*known["families"], *known["deeds"]]:
        assert set(family["who"]) <= {*known["lists"], "pronoun"}, family
    for family in known["families"]:
        assert len(family["say"]) >= 2
        for wording in family["say"]:
            slots = re.findall(r"\{(\w+)\}", wording)
            assert {slot.lower() for slot in slots} >= {"a", "b"}, wording
            assert {slot for slot in slots if slot.lower() not in ("a", "b")} <= set(known["lists"]), wording
    for deed in known["deeds"]:
        assert all(len(verb.split("/")) == 2 for verb in deed["say"])


def test_a_seed_decides_all():
    assert make_role_pairs(200, seed=4) == make_role_pairs(200, seed=4)
    assert make_role_pairs(200, seed=4) != make_role_pairs(200, seed=5)


def test_the_command_writes_them(tmp_path, capsys):
    output = tmp_path / "roles.jsonl"
    with pytest.raises(SystemExit) as done:
        main(["data", "roles", "--pairs", "50", "--seed", "1", "--output", str(output)])
    assert not done.value.code
    written = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert written == make_role_pairs(50, seed=1)
    counts = Counter(row["system"] for row in written)
    assert f"{KEPT}: {counts[KEPT]} records" in capsys.readouterr().out


def test_wrong_input():
    with pytest.raises(ValueError, match="at least 1, found 0"):
        make_role_pairs(0)
