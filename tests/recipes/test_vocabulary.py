"""The vocabulary that is cut to what the texts need: the kept pieces have their vectors, and nothing becomes unknown."""

from __future__ import annotations

import gzip
import json
import runpy

import pytest
import torch
import typer
from transformers import AutoModel, AutoTokenizer

from tests.conftest import ROOT
from tests.tiny_robertas import make_tiny_encoder

RECIPE = runpy.run_path(str(ROOT / "recipes" / "vocabulary.py"))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return make_tiny_encoder(tmp_path_factory.mktemp("encoders") / "tiny", "xlm-roberta")


@pytest.fixture
def texts(tmp_path):
    ratings = [{"lp": "de-en", "reference": "the cat", "candidate": "cat", "source": "der Hund"}] * 5
    (tmp_path / "ratings.jsonl.gz").write_bytes(gzip.compress("".join(json.dumps(r) + "\n" for r in ratings).encode()))
    (tmp_path / "parallel.tsv").write_text("tatoeba\ttrain\tit rains\tes regnet\n" * 3)
    return [tmp_path / "ratings.jsonl.gz", tmp_path / "parallel.tsv"]


def test_needed_pieces_keep_their_vectors(encoder, texts, tmp_path, capsys):
    before = AutoTokenizer.from_pretrained(encoder)
    characters = sum(len(piece.removeprefix("▁")) <= 1 for piece in before.get_vocab())
    size = characters + len(before.all_special_ids) + 4
    RECIPE["main"](encoder, tmp_path / "small", texts, size, words=False)
    after, model = AutoTokenizer.from_pretrained(tmp_path / "small"), AutoModel.from_pretrained(tmp_path / "small")
    assert len(after) == model.config.vocab_size == size
    assert f"{size} of {len(before)} pieces" in capsys.readouterr().out
    # Words of the texts are one piece as before, other words are spelled, and nothing is unknown.
    assert (
        after.tokenize("the cat it rains") == before.tokenize("the cat it rains") == ["▁the", "▁cat", "▁it", "▁rains"]
    )
    assert len(after.tokenize("dog")) > len(before.tokenize("dog")) == 1
    assert after.unk_token_id not in after("dog sat mat der Hund")["input_ids"]
    # Inputs have the same form and the same vectors.
    ids = {name: tokenizer("the cat", "it rains")["input_ids"] for name, tokenizer in (("b", before), ("a", after))}
    assert before.convert_ids_to_tokens(ids["b"]) == after.convert_ids_to_tokens(ids["a"])
    vectors = AutoModel.from_pretrained(encoder).get_input_embeddings()(torch.tensor(ids["b"]))
    assert torch.equal(vectors, model.get_input_embeddings()(torch.tensor(ids["a"])))
    assert after.pad_token_id == model.config.pad_token_id == 1


def test_too_small_a_size(encoder, texts, tmp_path):
    with pytest.raises(typer.BadParameter, match="special or single characters: expected a larger --size"):
        RECIPE["main"](encoder, tmp_path / "small", texts, 10, words=False)
