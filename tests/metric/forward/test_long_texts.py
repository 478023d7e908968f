"""Very long texts are tokenised in parts, and only as far as they are read: ids, truncation and scores stay the same."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from bleurt_repro.metric.forward import encoding
from bleurt_repro.metric.forward.encoding import SPACE_IN_TEXT, PairEncoder, longest_word, word_starts
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.find import EMBEDDED_FOLDER
from bleurt_repro.metric.loading.official_tokenizer import sentencepiece_tokenizer, wordpiece_tokenizer
from tests.official_checkpoints import make_sentencepiece, make_vocabulary
from tests.tiny_robertas import roberta_tokenizer, xlm_roberta_tokenizer

# What a text may be full of: words, one word without an end, marks that are dropped, scripts without spaces, sigmas.
PIECES = [
    *("the cat ", "sat ", "running", "x" * 90, "x" * 300, "é", "e\u0301" * 40, "\u0301" * 50, "\u200b" * 30, "ΟΔΟΣ"),
    *("Σ", "Σ'", "ʰ" * 20, "'", ".", ":", "^", ",", "-", "_", "[SEP]", "##", "   ", "\n\t", "\u3000", "\u2028", "—"),
    *(
        "日本語",
        "かな" * 30,
        "한글" * 20,
        "ไทย" * 20,
        "👩\u200d👧",
        "\U00020000",
        "\uf900",
        "½",
        "²",
        "\x00",
        "\ud83d",
        "\ude00",
    ),
]
LONGEST = 12_000


def long_text(seed: int) -> str:
    generator = random.Random(seed)
    chosen = generator.sample(PIECES, generator.choice([1, 2, 3, 8, len(PIECES)]))
    text = ""
    while len(text) < generator.choice([300, 3_000, LONGEST]):
        text += generator.choice(chosen) * generator.choice([1, 1, 5, 200])
    return text


def tokenizers(folder):
    vocabulary = {token: i for i, token in enumerate(make_vocabulary())}
    return {
        "bert": AutoTokenizer.from_pretrained(EMBEDDED_FOLDER / "bleurt-repro-mini"),
        "official": wordpiece_tokenizer(vocabulary, lower_case=True, max_length=24),
        "official cased": wordpiece_tokenizer(vocabulary, lower_case=False, max_length=24),
        "sentencepiece": sentencepiece_tokenizer(make_sentencepiece(folder), 24),
        "unigram": xlm_roberta_tokenizer(),
        "byte-level": roberta_tokenizer(),
    }


@pytest.mark.parametrize("seeds", [(6, 11, 17, 21), pytest.param(range(60), marks=pytest.mark.long)])
def test_the_ids_are_those_of_the_whole_texts(tmp_path, monkeypatch, seeds):
    different = 0
    for name, tokenizer in tokenizers(tmp_path).items():
        encoder = PairEncoder(tokenizer, Layout(max_length=24))
        for seed in seeds:
            pair = (long_text(2 * seed), long_text(2 * seed + 1))
            with monkeypatch.context() as patch:
                patch.setattr(encoding, "CHARACTERS_PER_TOKEN", 10**9)
                whole = encoder.tokenize(pair)
                expected = encoder.encode_all([pair])
            parts = encoder.tokenize(pair)
            assert encoder.encode_all([pair]) == expected, (name, seed)
            for text in pair:
                assert whole[text][: len(parts[text])] == parts[text], (name, seed)
                assert len(parts[text]) == len(whole[text]) or len(parts[text]) > 21
                different += parts[text] != whole[text]
    assert different > 0.8 * len(seeds), "texts must be long enough to be read in part"


def test_which_tokenizers_are_given_long_texts_in_parts(tmp_path):
    for name, tokenizer in tokenizers(tmp_path).items():
        if name == "bert":
            assert longest_word(tokenizer) == 100
        elif "official" in name:
            assert longest_word(tokenizer) == 200, name
        else:
            assert longest_word(tokenizer) is None, name
            assert word_starts(tokenizer) is SPACE_IN_TEXT, name


@pytest.mark.parametrize("missing", ["normalizer", "pre_tokenizer"])
def test_a_wordpiece_tokenizer_that_may_not_divide_at_spaces_reads_texts_whole(missing):
    tokenizer = AutoTokenizer.from_pretrained(EMBEDDED_FOLDER / "bleurt-repro-mini")
    setattr(tokenizer.backend_tokenizer, missing, None)
    assert longest_word(tokenizer) is None


def test_with_tokens_of_a_users_own_texts_are_read_whole(tmp_path):
    for name, tokenizer in tokenizers(tmp_path).items():
        tokenizer.add_tokens(["at the"])
        assert longest_word(tokenizer) is None, name
        assert word_starts(tokenizer) is None, name


def test_a_long_word_after_others_is_one_part(tmp_path):
    text = "the cat " * 40 + "x" * 2_000 + " sat" * 200
    encoder = PairEncoder(tokenizers(tmp_path)["unigram"], Layout(max_length=24))
    parts = list(encoder._pieces(text, 400))
    assert "".join(parts) == text
    assert [len(part) for part in parts[:2]] == [319, 2_001]


@pytest.mark.parametrize(
    "text",
    [
        "'a ' * 8_000_000",
        *(pytest.param(f"'{letter}' * 8_000_000", marks=pytest.mark.long) for letter in ("a", "\\u65e5", " ")),
    ],
)
@pytest.mark.long
def test_a_line_of_many_megabytes_takes_little_more_than_itself(text):
    """Whole, each takes several gigabytes."""
    program = f"""
import resource
from bleurt_repro import BleurtScorer
encoder = BleurtScorer(device="cpu").members[0].encoder
encoder.encode_all([("a cat", "a dog")])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
encoder.encode_all([({text}, "a dog")])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert int(done.stdout) < 400_000, "kilobytes"
