"""Near copies: which words are exchanged, what a pair is worth, no word of the examination, both sides, the command."""

from __future__ import annotations

import json
import re
from collections import Counter
from decimal import Decimal

import numpy as np
import pytest

from bleurt_repro.cli import main
from bleurt_repro.datasets_builders.contrasts.alterations import change_magnitude, swap_roles
from bleurt_repro.datasets_builders.contrasts.near_copies import (
    DEGENERATE,
    SAME_MEANING,
    TURNED,
    exchange,
    make_near_copies,
    word_groups,
)
from bleurt_repro.training.experiments.adversarial import turned_meanings

TEXTS = [
    "In May 1998 the local council may sell the old bridge near the river for 1,200 francs.",
    "The king praised his uncle Albert because the German team entered the stadium in the morning.",
    "Several teachers often travelled northeast of Vienna and did not remember the third visit by Anna.",
    "She was able to begin the film at home, although the government confirmed the final victory over Paris.",
    "Forty years ago every doctor thought that hot water was cheap and the train to London was slow.",
]


def random():
    return np.random.default_rng(0)


def test_no_word_by_which_the_experiment_judges_is_exchanged():
    judged = {word.lower() for groups in turned_meanings().values() for group in groups for word in group}
    trained = {word.lower() for replacements in word_groups().values() for word in replacements}
    assert len(judged) > 150 and len(trained) > 500
    assert not judged & trained


@pytest.mark.parametrize("topic", sorted(word_groups()))
def test_every_word_of_a_kind_is_found_and_replaced_by_another_of_its_group(topic):
    replacements = word_groups()[topic]
    for word, alternatives in replacements.items():
        assert word not in alternatives
        text = f"so they said {word} then"
        assert exchange(text, topic, random()) in {
            text.replace(f"{word} then", f"{alternative} then") for alternative in alternatives
        }


def test_a_capital_counts_at_the_beginning_only():
    assert exchange("In May it rained there", "modality", random()) is None
    assert exchange("Several men came", "quantity", random()) == "Hardly any men came"
    assert exchange("severally, northeastern-most", "quantity", random()) is None


def test_pairs_have_the_scores_of_their_kind_and_differ_in_little():
    rows = make_near_copies(TEXTS, 3_000, seed=1)
    assert len(rows) == 3_000
    counts = Counter(row["system"].removeprefix("contrast: ") for row in rows)
    assert set(DEGENERATE) | {"same words", "random word", "currency", "participants", "magnitude of a number"} <= set(
        counts
    )
    for row in rows:
        alteration = row["system"].removeprefix("contrast: ")
        expected = SAME_MEANING if alteration == "same words" else DEGENERATE.get(alteration, TURNED)
        assert row["score"] == expected
        assert row["reference"] != row["candidate"]
        if alteration not in DEGENERATE:
            assert row["reference"] in TEXTS or row["candidate"] in TEXTS
            reference_words, candidate_words = (
                Counter(re.findall(r"\w+", row[side])) for side in ("reference", "candidate")
            )
            assert sum(((reference_words - candidate_words) + (candidate_words - reference_words)).values()) <= 8
    changed_references = [row for row in rows if row["reference"] not in TEXTS]
    assert 0.35 < len(changed_references) / sum(1 for row in rows if row["system"][10:] not in DEGENERATE) < 0.65


def test_another_meaning_may_be_given_another_score():
    usual, lower = make_near_copies(TEXTS, 200, seed=1), make_near_copies(TEXTS, 200, seed=1, turned=-0.7)
    assert [row["candidate"] for row in usual] == [row["candidate"] for row in lower]
    assert [row["score"] for row in lower] == [-0.7 if row["score"] == TURNED else row["score"] for row in usual]
    for turned in (SAME_MEANING, float("nan"), float("-inf")):
        with pytest.raises(ValueError, match=r"below that of a paraphrase \(1.1\)"):
            make_near_copies(TEXTS, 5, turned=turned)


def test_the_seed_decides_all():
    assert make_near_copies(TEXTS, 50, seed=3) == make_near_copies(TEXTS, 50, seed=3)
    assert make_near_copies(TEXTS, 50, seed=3) != make_near_copies(TEXTS, 50, seed=4)


@pytest.mark.parametrize(
    ("texts", "pairs", "message"), [(TEXTS, 0, "at least 1, found 0"), (["too short", *TEXTS[:1]], 5, "found 1 of 2")]
)
def test_what_cannot_be_made_is_refused(texts, pairs, message):
    with pytest.raises(ValueError, match=message):
        make_near_copies(texts, pairs)


def test_a_number_becomes_ten_or_a_hundred_times_larger_or_smaller():
    factors = set()
    for seed in range(40):
        changed = change_magnitude("It cost 1,200 francs.", np.random.default_rng(seed))
        number = Decimal(re.search(r"[\d.,]*\d", changed).group().replace(",", ""))
        factors.add(number / 1200)
    assert factors == {Decimal(10), Decimal(100), Decimal("0.1"), Decimal("0.01")}
    assert change_magnitude("Nothing to see at 10:30 or 1-2", random()) is None


@pytest.mark.parametrize(
    "text", ["We saw France and Italy there.", "They met Anna, Peter and Ronald.", "I fed the cat and the dog."]
)
def test_members_of_a_list_are_not_exchanged(text):
    names = {"France", "Italy", "Anna", "Peter", "Ronald"}
    for seed in range(10):
        assert swap_roles(text, names, np.random.default_rng(seed)) is None


def test_the_command_reads_sentences_and_references(tmp_path, capsys):
    (tmp_path / "text.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(TEXTS[:3])), encoding="utf-8")
    ratings = [{"reference": text, "candidate": "no", "score": 0.1} for text in TEXTS[3:]]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ratings), encoding="utf-8")
    output = tmp_path / "near.jsonl"
    options = ["--input", str(tmp_path / "text.tsv"), "--column", "2", "--ratings", str(tmp_path / "ratings.jsonl")]
    with pytest.raises(SystemExit) as ended:
        main(["data", "near-copies", *options, "--pairs", "200", "--output", str(output)])
    assert ended.value.code == 0
    rows = [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 200
    assert {text for text in TEXTS if any(text in (row["reference"], row["candidate"]) for row in rows)} == set(TEXTS)
    assert "random word: " in capsys.readouterr().out


def test_the_command_asks_for_texts(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["data", "near-copies", "--output", str(tmp_path / "near.jsonl")])
    assert "--input" in capsys.readouterr().err
