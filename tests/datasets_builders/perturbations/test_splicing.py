"""Filled tokens in their text: what was not masked keeps its letters and blanks."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.perturbations.mask_filling import splice
from tests.tiny_teachers import _bert_tokenizer


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    return _bert_tokenizer(tmp_path_factory.mktemp("tokenizer"))


@pytest.mark.parametrize(
    ("text", "fills", "expected"),
    [
        ("Heavy RAIN fell.", {2: "winter"}, "Heavy winter fell."),
        ("Heavy  RAIN\tfell.", {1: "wild"}, "Wild  RAIN\tfell."),
        ("He wrote (born in 1950).", {4: "was"}, "He wrote (was in 1950)."),
        ("He wrote (born in 1950).", {3: "the"}, "He wrote the born in 1950)."),
        ("rain, rain", {2: "was"}, "rain was rain"),
        ("rain rain", {2: "##s"}, "rains"),
        ("the old river was far", {2: "new", 3: "road"}, "the new road was far"),
        ("the old river was far", {2: ",", 3: "road"}, "the, road was far"),
        ("the old river was far", {2: "rain", 4: "##ing"}, "the rain rivering far"),
        ("rain", {1: "wild"}, "wild"),
        ("Rain was far", {1: "wild", 3: "new"}, "Wild was new"),
    ],
)
def test_splice(tokenizer, text, fills, expected):
    encoding = tokenizer(text, return_offsets_mapping=True)
    ids = list(encoding["input_ids"])
    for position, piece in fills.items():
        ids[position] = tokenizer.convert_tokens_to_ids(piece)
        assert ids[position] != tokenizer.unk_token_id
    assert splice(text, encoding["offset_mapping"], ids, sorted(fills), tokenizer.decode) == expected
