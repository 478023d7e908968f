"""Copies and empty candidates that a checkpoint misses."""

from __future__ import annotations

import json
import runpy

import pytest

from bleurt_repro.metric.scorer import BleurtScorer
from tests.conftest import ROOT

HARD = runpy.run_path(str(ROOT / "recipes" / "hard_extremes.py"))
REFERENCES = [f"The council of town number {i} met on Monday evening and put off its vote." for i in range(20)]
SEVERAL = [f"Town number {i} voted. It was late." for i in range(20)]
HELD = ["Town number 99 voted. It was early.", "Good evening."]


@pytest.fixture
def made(tmp_path, tiny_scorer):
    """Return a function that makes the pairs by a checkpoint whose scores are far from both ends."""

    def make(**options):
        for name, texts in (("ratings", REFERENCES + SEVERAL + HELD), ("held", HELD)):
            rows = [{"reference": text, "candidate": "x", "score": 0} for text in texts]
            (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        parallel = tmp_path / "parallel.tsv"
        sentences = ["Good evening.", "Who are you?", "She said that nobody in the whole town had seen the train."]
        parallel.write_text("".join(f"tatoeba\ttrain\t{text}\tandere Sprache\n" for text in sentences))
        given = {"number": 12, "empty_score": -9, "copy_score": 9, "missed_by": 0.35, "others": 800, "seed": 1}
        output = tmp_path / "out.jsonl"
        held_out = [tmp_path / "held.jsonl"]
        HARD["main"](
            str(tiny_scorer), tmp_path / "ratings.jsonl", [parallel], output, held_out, None, **(given | options)
        )
        return [json.loads(line) for line in output.read_text().splitlines()]

    return make


def test_what_is_missed_by_far_stands_twice_with_the_score_it_should_have(made):
    rows = made()
    empty, copies = ([row for row in rows if row["system"] == kind] for kind in (HARD["EMPTY"], HARD["COPY"]))
    assert empty and {(row["candidate"], row["score"]) for row in empty} == {("", -9)}
    assert copies and {row["score"] for row in copies} == {9}
    assert all(row["candidate"] == row["reference"] for row in copies)
    for side in (empty, copies):
        texts = [row["reference"] for row in side]
        assert len(texts) == 2 * len(set(texts))
    assert "Who are you?" in {row["reference"] for row in empty}
    together = {row["reference"] for row in copies} - {*REFERENCES, *SEVERAL}
    assert sum(2 <= sum(part in text for part in REFERENCES + SEVERAL) <= 3 for text in together) >= 5
    assert not any(text in row["reference"] for row in rows for text in HELD)


def test_pieces_and_references_whose_end_stands_twice_are_among_both_kinds(made):
    rows = made(number=36)
    sources = [text.split() for text in REFERENCES + SEVERAL]
    for kind in (HARD["EMPTY"], HARD["COPY"]):
        texts = {tuple(row["reference"].split()) for row in rows if row["system"] == kind}
        pieces = {
            text
            for text in texts
            if any(
                len(text) < len(words) and list(text) == words[i : i + len(text)]
                for words in sources
                for i in range(len(words))
            )
        }
        twice = {
            text for text in texts for words in sources for n in range(1, 6) if list(text) == [*words, *words[-n:]]
        }
        assert pieces and max(len(text) for text in pieces) <= HARD["MOST_OF_A_PIECE"]
        assert twice


def test_outputs_and_texts_that_are_cut_off_get_an_empty_candidate(made, tmp_path):
    outputs = [f"Of {i} town council it the vote on Monday off put." for i in range(20)]
    rows = [{"reference": text, "candidate": output} for text, output in zip(REFERENCES, outputs, strict=True)]
    rows.append({"reference": HELD[0], "candidate": "Kept out of it."})
    (tmp_path / "outputs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    rows = made(outputs=tmp_path / "outputs.jsonl")
    empty, copies = (
        {row["reference"] for row in rows if row["system"] == kind} for kind in (HARD["EMPTY"], HARD["COPY"])
    )
    assert {*outputs} <= empty and not {*outputs} & copies

    def begins(text, wholes):
        return any(text != whole and whole.startswith(f"{text} ") for whole in wholes)

    assert any(begins(text, outputs) for text in empty)
    assert any(begins(text, REFERENCES + SEVERAL) for text in empty)
    after = [
        text.removeprefix(f"{first} ") for first in REFERENCES + SEVERAL for text in empty if text.startswith(first)
    ]
    assert any(begins(text, outputs) for text in after)
    assert not any("Kept" in text for text in empty | copies)
    # a reference with its output after it says the same twice
    assert {f"{text} {output}" for text, output in zip(REFERENCES, outputs, strict=True)} & copies


def test_a_sample_of_the_others_keeps_its_scores_where_it_is_a_copy(made, tiny_scorer):
    rows = made(missed_by=1000, others=5)
    empty, copies = ([row for row in rows if row["system"] == kind] for kind in (HARD["EMPTY"], HARD["COPY"]))
    assert len(empty) == len(copies) == 5
    assert {row["score"] for row in empty} == {-9}
    unrelated = [row for row in rows if row["system"] == HARD["UNRELATED"]]
    assert len(unrelated) == 2 and all(row["candidate"] != row["reference"] for row in unrelated)
    own = BleurtScorer(str(tiny_scorer), dtype="bfloat16").score_rows(copies + unrelated)
    assert [row["score"] for row in copies + unrelated] == pytest.approx(own, abs=0.02)


def test_a_reference_without_a_word_that_passes_for_a_copy_gets_less(made):
    rows = [row for row in made(left_out=10, left_out_score=-9) if row["system"] == HARD["LEFT_OUT"]]
    assert len(rows) == 20 and {row["score"] for row in rows} == {-9}
    for row in rows:
        words, left = row["reference"].split(), row["candidate"].split()
        assert len(words) > HARD["LEAST_LEFT"]
        assert left in [words[:i] + words[i + 1 :] for i in range(len(words))]
    assert not [row for row in made() if row["system"] == HARD["LEFT_OUT"]]
