"""Similar words in place of each other, and the scores of a larger model beside their pairs."""

from __future__ import annotations

import json
import re
import runpy

import pytest
import torch
import typer
from transformers import BertConfig, BertModel

from tests.conftest import ROOT, make_tiny_tokenizer

SIMILAR = runpy.run_path(str(ROOT / "recipes" / "similar_words.py"))
SCORED = runpy.run_path(str(ROOT / "recipes" / "scored_pairs.py"))


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def encoder(tmp_path):
    torch.manual_seed(0)
    tokenizer = make_tiny_tokenizer(tmp_path / "encoder")
    model = BertModel(BertConfig(vocab_size=len(tokenizer), hidden_size=8, num_hidden_layers=1, num_attention_heads=2))
    model.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    return str(tmp_path / "encoder"), model.get_input_embeddings().weight, tokenizer


def test_one_word_becomes_one_of_its_nearest_and_no_word_that_judges(encoder, tmp_path):
    folder, table, tokenizer = encoder
    words = [piece for piece in tokenizer.get_vocab() if re.fullmatch("[a-z]{3,}", piece)]
    judging = SIMILAR["judging_words"]()
    assert {"million", "up"} <= judging
    # every word stands in enough sentences; the first one in capitals
    texts = [" ".join([words[i].capitalize(), *words, "north", "million."]) for i in range(12) for _ in "ab"]
    ratings = tmp_path / "ratings.jsonl"
    ratings.write_text(
        "".join(
            json.dumps({"reference": f"{text} {i}", "candidate": "x", "score": 0}) + "\n"
            for i, text in enumerate(texts)
        )
    )
    sentences = tmp_path / "sentences.txt"
    sentences.write_text("\n".join(texts) + "\n")
    output = tmp_path / "similar.jsonl"
    SIMILAR["main"](input=str(sentences), ratings=ratings, encoder=folder, output=output, pairs=80)
    rows = read(output)
    assert len(rows) == 80
    vectors = torch.nn.functional.normalize(table.detach(), dim=-1)
    known = sorted(set(words) - judging)
    for row in rows:
        changed = [
            (old, new)
            for old, new in zip(row["reference"].split(), row["candidate"].split(), strict=True)
            if old != new
        ]
        [(old, new)] = changed
        assert old[0].isupper() == new[0].isupper()
        pair = [old.lower(), new.lower()]
        assert not judging & set(pair)
        # one of the two is among the nearest of the other
        ranks = []
        for one, other in (pair, pair[::-1]):
            similarity = (
                vectors[[tokenizer.convert_tokens_to_ids(word) for word in known]]
                @ vectors[tokenizer.convert_tokens_to_ids(one)]
            )
            nearer = [known[i] for i in similarity.argsort(descending=True)]
            ranks.append(nearer.index(other))
        assert 1 <= min(ranks) <= SIMILAR["NEAREST"]


def test_scores_stand_beside_their_pairs_within_the_bounds_of_ratings(tmp_path):
    pairs, scores, output = tmp_path / "pairs.jsonl", tmp_path / "scores.txt", tmp_path / "scored.jsonl"
    pairs.write_text("".join(json.dumps({"reference": "R", "candidate": text}) + "\n" for text in "abc"))
    scores.write_text("0.25\n-99\n99\n")
    SCORED["main"](pairs=pairs, scores=scores, output=output)
    assert [(row["candidate"], row["score"]) for row in read(output)] == [
        ("a", 0.25), ("b", SCORED["LEAST"]), ("c", SCORED["MOST"])
    ]  # fmt: skip
    SCORED["main"](pairs=pairs, scores=scores, output=output, unbounded=True)
    assert [row["score"] for row in read(output)] == [0.25, -99, 99]
    scores.write_text("0.25\n")
    with pytest.raises((ValueError, typer.BadParameter), match="pairs"):
        SCORED["main"](pairs=pairs, scores=scores, output=output)


def test_scores_above_those_of_the_file_come_down_halfway(tmp_path):
    pairs, scores, output = tmp_path / "pairs.jsonl", tmp_path / "scores.txt", tmp_path / "scored.jsonl"
    rows = [{"reference": "R", "candidate": text, "score": -0.6} for text in "ab"]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores.write_text("0.2\n-1.0\n")
    SCORED["main"](pairs=pairs, scores=scores, output=output, lowered=True)
    assert [row["score"] for row in read(output)] == pytest.approx([-0.2, -1.0])


def test_turned_contrasts_stand_below_the_kept_ones_before_them(tmp_path):
    pairs, scores, output = tmp_path / "pairs.jsonl", tmp_path / "scores.txt", tmp_path / "scored.jsonl"
    rows = [
        {"reference": "R", "candidate": f"{kind} {i}", "score": 0.8, "system": f"contrast: paraphrase {kind}"}
        for i in range(2)
        for kind in ("kept", "turned")
    ]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scores.write_text("0.5\n0.25\n0.5\n-1.5\n")
    SCORED["main"](pairs=pairs, scores=scores, output=output, apart=0.75, raised=0.25)
    assert [row["score"] for row in read(output)] == [0.75, -0.25, 0.75, -1.5]
    pairs.write_text("".join(json.dumps(row) + "\n" for row in rows[::-1]))
    with pytest.raises(typer.BadParameter, match="in turns"):
        SCORED["main"](pairs=pairs, scores=scores, output=output, apart=0.75)


def test_too_few_texts_are_refused_with_what_to_do(encoder, tmp_path):
    ratings, sentences = tmp_path / "ratings.jsonl", tmp_path / "sentences.txt"
    ratings.write_text(json.dumps({"reference": "a b c d e f", "candidate": "x", "score": 0}) + "\n")
    sentences.write_text("one two three four five six\n")
    with pytest.raises(typer.BadParameter, match="lower --fewest-texts"):
        SIMILAR["main"](
            input=str(sentences), ratings=ratings, encoder=encoder[0], output=tmp_path / "o.jsonl", pairs=1
        )
