"""Contrast pairs: what counts as the same, what as one word apart, and what is made of both."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pytest

from bleurt_repro.datasets_builders.contrasts import CHANGED, COPY, JOINED_WEIGHT, PARTLY, SAME, UNRELATED
from bleurt_repro.datasets_builders.contrasts.parallel_contrasts import (
    contrast_file,
    make_contrasts,
    one_word_apart,
    read_sentences,
    same_meaning,
    substitute,
)

SENTENCES = [
    ("I need to sleep.", "fr:Je dois dormir."),
    ("I have to sleep.", "fr:Je dois dormir."),
    ("I have to work.", "fr:Je dois travailler."),
    ("He has to work.", "fr:Il doit travailler."),
    ("Anna lives in Oslo now.", "fr:Anna habite a Oslo maintenant."),
    ("Now Anna is living in Oslo.", "fr:Anna habite a Oslo maintenant."),
    ("Peter drove to Basel and Anna to Oslo.", "fr:Peter est alle a Bale et Anna a Oslo."),
    ("We met two friends in Basel.", "fr:Nous avons vu deux amis."),
    ("They were not late.", "de:Sie waren puenktlich."),
    ("You were not late.", "de:Sie waren puenktlich."),
]
RATED = [("The council approved the plan on Monday after a long debate.", "On Monday the plan was approved.", 0.5)]


def test_sentences_with_one_translation_mean_the_same_but_for_other_pronouns():
    assert same_meaning(SENTENCES) == [
        ("Anna lives in Oslo now.", "Now Anna is living in Oslo."),
        ("I have to sleep.", "I need to sleep."),
    ]


def test_sentences_one_word_apart_are_contrasts_unless_they_mean_the_same():
    texts = [english for english, _ in SENTENCES]
    neighbours, substitutes = one_word_apart(texts, same_meaning(SENTENCES))
    assert neighbours == {
        "I have to sleep.": ["I have to work."],
        "I have to work.": ["I have to sleep."],
        "They were not late.": ["You were not late."],
        "You were not late.": ["They were not late."],
    }
    assert substitutes == {"sleep": ["work"], "work": ["sleep"], "they": ["you"], "you": ["they"]}


def test_a_word_that_once_meant_the_same_is_never_a_substitute():
    texts = ["It is a big dog.", "It is a large dog.", "It is a big car.", "It is a large car.", "It is a red car."]
    _, substitutes = one_word_apart(texts, [(texts[0], texts[1])])
    assert (substitutes["big"], substitutes["large"], set(substitutes["red"])) == (["red"], ["red"], {"big", "large"})


def test_a_substitute_keeps_the_capital():
    random = np.random.default_rng(0)
    assert substitute("Sleep well.", {"sleep": ["work"]}, random) == "Work well."
    assert substitute("Good night.", {"sleep": ["work"]}, random) is None


def test_each_kind_stands_where_it_should_and_nothing_altered_is_the_reference():
    rows = make_contrasts(SENTENCES, 600, RATED, seed=1)
    counts = Counter(row["system"] for row in rows)
    assert len(rows) == 600
    assert {
        f"contrast: {alteration}" for alteration in ("same", "form", "negation", "name", "left out", "word")
    } <= set(counts)
    for row in rows:
        alteration = row["system"].removeprefix("contrast: ")
        if alteration in ("same", "reordered"):
            assert row["score"] == SAME
        elif alteration == "form":
            assert row["score"] in (COPY, SAME, 0.5)
        elif alteration == "unrelated":
            assert row["score"] == UNRELATED
        else:
            lost = PARTLY if alteration in ("left out", "put in") else CHANGED
            possible = [worth - weight * lost for worth in (COPY, SAME, 0.5) for weight in (1, JOINED_WEIGHT)]
            assert row["score"] == pytest.approx(possible[int(np.abs(np.subtract(possible, row["score"])).argmin())])
            assert row["candidate"] != row["reference"]


def test_what_people_rated_is_altered_and_never_scored_anew():
    rows = [row for row in make_contrasts(SENTENCES, 600, RATED, seed=2) if row["reference"] == RATED[0][0]]
    candidates = {row["candidate"] for row in rows if row["score"] not in (COPY, 0.5, UNRELATED)}
    assert candidates
    assert RATED[0][1] not in candidates
    assert any(candidate.startswith("On Monday") for candidate in candidates)
    assert any(candidate.startswith("The council") for candidate in candidates)


def test_reordered_sentences_stand_against_those_whose_words_changed_places():
    sentences = [*SENTENCES, ("Anna saw Peter.", "fr:Anna a vu Peter."), ("We met Anna and Peter.", "fr:-")]
    rows = make_contrasts(sentences, 400, seed=1, reordered=1.0)
    assert {row["system"] for row in rows} == {"contrast: reordered", "contrast: roles"}
    by_reference = {(row["reference"], row["candidate"]): row["score"] for row in rows}
    assert by_reference["Anna saw Peter.", "Peter was seen by Anna."] == SAME
    assert by_reference["Peter was seen by Anna.", "Peter saw Anna."] == pytest.approx(SAME - CHANGED)
    none = make_contrasts(sentences, 400, seed=1, reordered=0.0)
    assert "contrast: reordered" not in {row["system"] for row in none}


def test_a_seed_decides_all():
    assert make_contrasts(SENTENCES, 50, RATED, seed=3) == make_contrasts(SENTENCES, 50, RATED, seed=3)
    assert make_contrasts(SENTENCES, 50, RATED, seed=3) != make_contrasts(SENTENCES, 50, RATED, seed=4)


def test_a_file_is_written_from_parallel_text(tmp_path):
    parallel, output = tmp_path / "en-fr.tsv", tmp_path / "contrasts.jsonl"
    lines = [f"tatoeba\ttrain\t{english}\t{translation[3:]}" for english, translation in SENTENCES]
    parallel.write_text("\n".join([*lines, "tatoeba\ttest\tKept out.\tNon."]) + "\n", encoding="utf-8")
    ratings = tmp_path / "ratings.csv"
    ratings.write_text(
        "reference,candidate,score\nA good day.,A fine day.,1.0\nA day.,Day bad.,-1\n", encoding="utf-8"
    )
    counts = contrast_file([parallel], output, 100, ratings)
    text = output.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len(rows) == sum(counts.values()) == 100
    assert "Kept out" not in text
    references = {row["reference"] for row in rows}
    assert "A good day." in references  # rated well, so that its alterations are made
    assert "A day." not in references


def test_a_malformed_line_is_named(tmp_path):
    path = tmp_path / "en-fr.tsv"
    path.write_text("tatoeba\ttrain\tHello.\tBonjour.\nHello.\tBonjour.\n", encoding="utf-8")
    with pytest.raises(
        ValueError, match=r"en-fr.tsv, line 2: expected source, split, english, target, found 2 column"
    ):
        read_sentences(path, "fr:")
    path.write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="no sentences"):
        read_sentences(path, "fr:")


def test_wrong_input():
    with pytest.raises(ValueError, match="at least 1"):
        make_contrasts(SENTENCES, 0)
    with pytest.raises(ValueError, match="from 0 to 1"):
        make_contrasts(SENTENCES, 5, reordered=1.5)
    with pytest.raises(ValueError, match="no two different sentences"):
        make_contrasts(SENTENCES[2:4], 10)


def test_a_source_is_left_out(tmp_path):
    path = tmp_path / "en-fr.tsv"
    path.write_text("tatoeba\ttrain\tHello.\tBonjour.\ncaptions-train\ttrain\tA dog.\tUn chien.\n", encoding="utf-8")
    assert read_sentences(path, "fr:") == [("Hello.", "fr:Bonjour."), ("A dog.", "fr:Un chien.")]
    assert read_sentences(path, "fr:", ["captions"]) == [("Hello.", "fr:Bonjour.")]
    with pytest.raises(ValueError, match="en-fr.tsv: no source to leave out begins with news"):
        read_sentences(path, "fr:", ["captions", "news"])
