"""What training does with data that it cannot read."""

from __future__ import annotations

import pytest
from datasets import Dataset

from bleurt_repro.metric.layout import Layout
from bleurt_repro.training.collator import encode_texts

LAYOUT = Layout(inputs=("reference", "candidate"), max_length=64)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"reference": ["a"], "rating": [1.0]}, "the data lack candidate, score; they have reference, rating"),
        ({"reference": [], "candidate": [], "score": []}, "the data have no rows"),
    ],
)
def test_data_that_cannot_be_read_are_named(columns, message, tiny_scorer):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_scorer)
    with pytest.raises(ValueError, match=message):
        encode_texts(Dataset.from_dict(columns), tokenizer, LAYOUT, keep=["score"])


def test_texts_are_replaced_by_what_the_model_reads(tiny_scorer):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_scorer)
    texts = {"reference": ["the cat"], "candidate": ["a dog"], "score": [0.5], "lp": ["de-en"]}
    row = encode_texts(Dataset.from_dict(texts), tokenizer, LAYOUT, keep=["score"])[0]
    assert set(row) == {"input_ids", "token_type_ids", "attention_mask", "length", "truncated", "score"}
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == ["[CLS]", "the", "cat", "[SEP]", "a", "dog", "[SEP]"]
    assert (row["token_type_ids"], row["length"], row["score"]) == ([0, 0, 0, 0, 1, 1, 1], 7, 0.5)


def test_data_on_disk_are_tokenised_once(tiny_scorer, tmp_path, monkeypatch):
    from transformers import AutoTokenizer

    from bleurt_repro.metric.forward.encoding import PairEncoder

    Dataset.from_dict({"reference": ["the cat"] * 3, "candidate": ["a dog"] * 3}).to_parquet(
        tmp_path / "pairs.parquet"
    )

    def encoded(**more):
        rows = Dataset.from_parquet(str(tmp_path / "pairs.parquet"), cache_dir=str(tmp_path / "cache"))
        return encode_texts(rows, AutoTokenizer.from_pretrained(tiny_scorer), LAYOUT, keep=[], **more)[:]

    calls, encode = [], PairEncoder.encode
    monkeypatch.setattr(PairEncoder, "encode", lambda *args: calls.append(1) or encode(*args))
    first = encoded()
    assert len(calls) == 3
    assert encoded() == first  # as a second process of a run does, after the first
    assert len(calls) == 3


def test_several_processes_tokenise_alike(tiny_scorer):
    from transformers import AutoTokenizer

    texts = {"reference": ["the cat", "it rains", "a dog sat"], "candidate": ["a dog", "good bye", "hi"]}
    tokenizer, rows = AutoTokenizer.from_pretrained(tiny_scorer), Dataset.from_dict(texts)
    alone = encode_texts(rows, tokenizer, LAYOUT, keep=[])[:]
    assert encode_texts(rows, tokenizer, LAYOUT, keep=[], num_proc=2)[:] == alone
