"""A translator's vocabulary: opened by transformers, tags as one token, any text written and read back."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers import AutoTokenizer, MarianConfig, MarianTokenizer

from bleurt_repro.training.teachers.translator_data import encode_texts, train_vocabulary
from tests.tiny_teachers import SENTENCES

OTHERS = [
    "  Two  blanks,\tand a tab ",
    "Łódź, São Paulo — 東京 🙂",
    "Œuvre n° 5 : « ici » – 3 000 €",
    "<pad or not>",
    "",
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> MarianTokenizer:
    folder = tmp_path_factory.mktemp("vocabulary")
    train_vocabulary(SENTENCES * 2, ["en", "fr"], 400, folder)
    MarianConfig().save_pretrained(folder)
    return AutoTokenizer.from_pretrained(folder)


def test_tags_and_ends(tokenizer: MarianTokenizer) -> None:
    assert isinstance(tokenizer, MarianTokenizer)
    ids = tokenizer(">>fr<< The old bridge.")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids)[0] == ">>fr<<"
    assert ids[-1] == tokenizer.eos_token_id == 0
    assert ids[1:] == tokenizer("The old bridge.")["input_ids"]
    assert tokenizer.supported_language_codes == [">>en<<", ">>fr<<"]
    assert tokenizer.pad_token_id == tokenizer.vocab_size - 1 <= 399


@pytest.mark.parametrize("text", [*SENTENCES[:3], *OTHERS])
def test_the_fast_way_gives_the_tokenizers_ids(tokenizer: MarianTokenizer, text: str) -> None:
    assert [*encode_texts([text], tokenizer)[0].tolist(), 0] == tokenizer(text)["input_ids"]
    assert tokenizer(text_target=text)["input_ids"] == tokenizer(text)["input_ids"]


@pytest.mark.parametrize("text", [*SENTENCES[:3], "Łódź, São Paulo — 東京 🙂", "Œuvre n° 5"])
def test_any_text_comes_back(tokenizer: MarianTokenizer, text: str) -> None:
    assert tokenizer.unk_token_id not in tokenizer(text)["input_ids"]
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


def test_too_small(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no vocabulary of 100 tokens can be made from the text"):
        train_vocabulary(SENTENCES, ["en"], 100, tmp_path)
