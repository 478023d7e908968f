"""The official tokenization rules, character by character and on generated text, saved and opened again."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoTokenizer

from bleurt_repro.metric.loading.official_tokenizer import (
    read_vocabulary,
    sentencepiece_tokenizer,
    wordpiece_tokenizer,
)
from tests.official_checkpoints import make_sentencepiece, make_vocabulary, official_wordpiece

VOCABULARY = {token: i for i, token in enumerate(make_vocabulary())}
UNKNOWN = VOCABULARY["[UNK]"]
# Marks that a later Unicode version made spacing: Python's version and that of `tokenizers` may disagree on them.
REVISED = {0x1734, 0x1171E}
CHARACTERS = st.characters(exclude_categories=["Cs", "Cn"], exclude_characters=[chr(code) for code in REVISED])


def ids(tokenizer, text):
    return tokenizer(text, add_special_tokens=False)["input_ids"]


@pytest.fixture(scope="module")
def uncased():
    return wordpiece_tokenizer(VOCABULARY, lower_case=True, max_length=512)


@pytest.fixture(scope="module")
def cased():
    return wordpiece_tokenizer(VOCABULARY, lower_case=False, max_length=512)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return make_sentencepiece(tmp_path_factory.mktemp("pieces"))


def assigned_characters():
    """All but private ones; of ideographs and Hangul the first and last of each row of sixteen."""
    for code in range(0x110000):
        category = unicodedata.category(chr(code))
        if category in ("Cs", "Cn", "Co") or (category == "Lo" and code > 0x3400 and code % 16 not in (0, 15)):
            continue
        yield chr(code)


@pytest.mark.long
def test_every_assigned_character_within_a_word(uncased):
    texts = [f"a{character}b" for character in [*assigned_characters(), "\ue000", "\U0010fffd"]]
    found = uncased(texts, add_special_tokens=False)["input_ids"]
    differing = {
        text[1] for text, own in zip(texts, found, strict=True) if own != official_wordpiece(text, VOCABULARY)
    }
    assert len(texts) > 30_000
    assert {ord(character) for character in differing} <= REVISED


@settings(deadline=None, max_examples=300)
@given(st.text(CHARACTERS, max_size=40))
def test_any_text(uncased, cased, text):
    assert ids(uncased, text) == official_wordpiece(text, VOCABULARY)
    assert ids(cased, text) == official_wordpiece(text, VOCABULARY, lower_case=False)


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("ΣσςΑα'’. \u0301\u00ad·Ⅷ猫1-"), max_size=12))
def test_capital_sigma_is_folded_as_python_folds_it(uncased, text):
    assert ids(uncased, text) == official_wordpiece(text, VOCABULARY)


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("The CAT", ["the", "cat"]),
        ("[SEP]", ["[", "s", "##e", "##p", "]"]),
        ("e\u0301é", ["e", "##e"]),
        ("猫cat猫", ["猫", "cat", "猫"]),
        ("hello\u200dthere", ["hello", "##there"]),
        ("a\u00a0b\tc\x00d", ["a", "b", "c", "##d"]),
        ("x$y^z", ["x", "$", "y", "^", "z"]),
        ("a" * 200, ["a"] + ["##a"] * 199),
        ("a" * 201, ["[UNK]"]),
        ("🙂", ["🙂"]),
        ("🙃", ["[UNK]"]),
        ("ΣΣ", ["σ", "##ς"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_by_example(uncased, text, tokens):
    assert uncased.convert_ids_to_tokens(ids(uncased, text)) == tokens


def test_case_and_accents_stay_where_the_checkpoint_is_cased(cased):
    assert ids(cased, "cat é") == [VOCABULARY["cat"], VOCABULARY["é"]]
    assert ids(cased, "Cat") == [UNKNOWN]


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
def test_saved_and_opened_by_transformers_it_is_the_same(uncased, pieces, tmp_path, kind):
    tokenizer = uncased if kind == "wordpiece" else sentencepiece_tokenizer(pieces, 512)
    tokenizer.save_pretrained(tmp_path)
    model_type = {"wordpiece": "bert", "sentencepiece": "rembert"}[kind]
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type, "vocab_size": len(tokenizer)}))
    opened = AutoTokenizer.from_pretrained(tmp_path)
    text = f"The [SEP] cat {'a' * 150} ΚΟΣΜΟΣ 猫 é\u0301 🙂 <pad>"
    assert ids(opened, text) == ids(tokenizer, text)
    assert (opened.model_max_length, opened.pad_token_id, opened.split_special_tokens) == (512, 0, True)
    assert len(opened) == len(tokenizer)
    pair = opened("the cat", "the dog")
    first, second = ids(opened, "the cat"), ids(opened, "the dog")
    cls, sep = opened.cls_token_id, opened.sep_token_id
    assert pair["input_ids"] == [cls, *first, sep, *second, sep]
    assert pair["token_type_ids"] == [0] * (len(first) + 2) + [1] * (len(second) + 1)


def test_a_vocabulary_is_read_as_the_official_code_reads_it(tmp_path):
    file = tmp_path / "vocab.txt"
    file.write_bytes("[PAD]\n[UNK]\n[CLS]\n[SEP]\ncat \ndog\ncat\n\u2028\nend".encode())
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "cat", "dog", "", "end"]
    assert read_vocabulary(file) == {token: i for i, token in enumerate(tokens)}


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "no vocabulary"),
        (b"", r"has no \[CLS\], \[SEP\], \[UNK\]"),
        (b"[PAD]\n[UNK]\n[CLS]\n", r"has no \[SEP\]"),
        (b"[CLS]\n\xff\n", "no UTF-8"),
    ],
)
def test_a_damaged_vocabulary_is_refused(tmp_path, content, message):
    file = tmp_path / "vocab.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_vocabulary(file)


def test_a_damaged_sentencepiece_model_is_refused(tmp_path, pieces):
    file = tmp_path / "spm.model"
    with pytest.raises(ValueError, match="no SentencePiece model"):
        sentencepiece_tokenizer(file, 64)
    file.write_bytes(pieces.read_bytes()[:200])
    with pytest.raises(ValueError, match=r"cannot be read|has no \[CLS\]"):
        sentencepiece_tokenizer(file, 64)
    file.write_bytes(b"no model at all")
    with pytest.raises(ValueError, match="cannot be read"):
        sentencepiece_tokenizer(file, 64)


def test_a_sentencepiece_model_without_separator_is_refused(tmp_path):
    import sentencepiece

    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat sat on the mat"] * 20),
        model_prefix=str(tmp_path / "spm"),
        vocab_size=30,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    with pytest.raises(ValueError, match=r"has no \[CLS\]"):
        sentencepiece_tokenizer(tmp_path / "spm.model", 64)
