"""From text to ids: the official truncation for any lengths, the layouts, and text that looks like something else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bleurt_repro.metric.forward.encoding import PairEncoder, truncated_lengths, without_lone_surrogates
from bleurt_repro.metric.layout import Layout
from bleurt_repro.metric.loading.official_tokenizer import sentencepiece_tokenizer, wordpiece_tokenizer
from tests.official_checkpoints import make_sentencepiece, make_vocabulary, official_truncation, official_wordpiece

VOCABULARY = {token: i for i, token in enumerate(make_vocabulary())}
CLS, SEP = VOCABULARY["[CLS]"], VOCABULARY["[SEP]"]
# Text as it comes: words, accents, scripts, emoji with joiners, controls, spaces of all kinds, what looks special.
TEXT = st.lists(
    st.one_of(
        st.sampled_from(["the", "cat", "running", "[SEP]", "[CLS]", "[MASK]", "##ing", "<pad>", "▁", "a" * 150]),
        st.sampled_from(
            ["é", "e\u0301", "ÅNGSTRÖM", "ΚΟΣΜΟΣ", "İ", "ß", "猫", "日本語", "한글", "👩\u200d👩\u200d👧", "🙂"]
        ),
        st.sampled_from([" ", "\t", "\n", "\u00a0", "\u3000", "\u2028", "\x00", "\x07", "\x1f", "\ufeff", "\ufffd"]),
        st.text(st.characters(min_codepoint=32, max_codepoint=0x24F), max_size=8),
        st.text(st.characters(min_codepoint=0x370, max_codepoint=0x30FF, exclude_categories=["Cn"]), max_size=5),
    ),
    max_size=12,
).map("".join)


@pytest.fixture(scope="module")
def tokenizer():
    return wordpiece_tokenizer(VOCABULARY, lower_case=True, max_length=64)


@pytest.fixture(scope="module")
def pieces(tmp_path_factory):
    return make_sentencepiece(tmp_path_factory.mktemp("pieces"))


@given(st.integers(0, 700), st.integers(0, 700), st.integers(0, 600))
def test_truncation_of_pairs_is_the_official_loop(reference, candidate, room):
    official = official_truncation(range(reference), range(candidate), room)
    assert truncated_lengths([reference, candidate], room) == [len(side) for side in official]


@given(st.lists(st.integers(0, 60), min_size=1, max_size=4), st.integers(0, 120))
def test_truncation_of_any_number_takes_from_the_longest_and_of_equals_from_the_last(lengths, room):
    loop = list(lengths)
    while sum(loop) > room:
        loop[max(i for i, length in enumerate(loop) if length == max(loop))] -= 1
    assert truncated_lengths(lengths, room) == loop


@pytest.mark.parametrize(
    "lengths, room, kept",
    [
        ([3, 3], 6, [3, 3]),
        ([4, 4], 7, [4, 3]),  # of equals the candidate gives way
        ([300, 300], 509, [255, 254]),
        ([2, 9], 6, [2, 4]),
        ([9, 2], 6, [4, 2]),
        ([9, 2], 0, [0, 0]),
        ([9, 9, 1], 10, [5, 4, 1]),
        ([4, 9, 9], 13, [4, 5, 4]),  # what is left over goes to a text that has it
    ],
)
def test_truncation_by_example(lengths, room, kept):
    assert truncated_lengths(lengths, room) == kept


@settings(deadline=None)
@given(TEXT, TEXT, st.integers(5, 64))
def test_a_pair_is_encoded_as_the_official_code_does(tokenizer, reference, candidate, max_length):
    encoder = PairEncoder(tokenizer, Layout(max_length=max_length))
    tokens = encoder.tokenize([reference, candidate])
    encoded = encoder.encode([tokens[reference], tokens[candidate]])
    whole = [official_wordpiece(text, VOCABULARY) for text in (reference, candidate)]
    first, second = official_truncation(*whole, max_length - 3)
    assert encoded.ids == (CLS, *first, SEP, *second, SEP)
    assert encoded.segments == (0,) * (len(first) + 2) + (1,) * (len(second) + 1)
    assert encoded.truncated == (len(whole[0]) + len(whole[1]) > max_length - 3)


@settings(deadline=None)
@given(TEXT)
def test_sentencepiece_ids_are_those_of_sentencepiece(pieces, text):
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_file=str(pieces))
    encoder = PairEncoder(sentencepiece_tokenizer(pieces, 64), Layout(max_length=64))
    assert encoder.tokenize([text])[text] == [processor.PieceToId(piece) for piece in processor.EncodeAsPieces(text)]


def test_what_looks_like_a_special_token_is_text_to_sentencepiece(pieces):
    encoder = PairEncoder(sentencepiece_tokenizer(pieces, 64), Layout(max_length=64))
    text = "a [SEP] b [CLS] <pad> <unk> [MASK]"
    special = {encoder.tokenizer.convert_tokens_to_ids(token) for token in ("[SEP]", "[CLS]", "[MASK]", "<pad>")}
    assert len(special) == 4
    assert special.isdisjoint(encoder.tokenize([text])[text])


def test_repeated_texts_are_tokenized_once(tokenizer):
    encoder = PairEncoder(tokenizer, Layout())
    assert encoder.tokenize(["the cat", "the cat", ""]) == {
        "the cat": [VOCABULARY["the"], VOCABULARY["cat"]],
        "": [],
    }
    assert encoder.tokenize([]) == {}


@pytest.mark.parametrize(
    "inputs, separators, ids, segments",
    [
        (("reference", "candidate"), 1, [CLS, 10, 11, SEP, 20, SEP], [0, 0, 0, 0, 1, 1]),
        (("candidate", "reference"), 2, [CLS, 10, 11, SEP, SEP, 20, SEP], [0, 0, 0, 0, 1, 1, 1]),
        (("candidate",), 1, [CLS, 10, 11, SEP], [0, 0, 0, 0]),
        (
            ("source", "candidate", "reference"),
            2,
            [CLS, 10, 11, SEP, SEP, 20, SEP, SEP, 30, SEP],
            [0, 0, 0, 0, 1, 1, 1, 1, 1, 1],
        ),
    ],
)
def test_layouts(tokenizer, inputs, separators, ids, segments):
    encoder = PairEncoder(tokenizer, Layout(inputs=inputs, separators=separators))
    encoded = encoder.encode([[10, 11], [20], [30]][: len(inputs)])
    assert (list(encoded.ids), list(encoded.segments), encoded.truncated) == (ids, segments, False)


def test_the_candidate_gives_way_wherever_it_stands(tokenizer):
    encoder = PairEncoder(tokenizer, Layout(inputs=("candidate", "reference"), max_length=8))
    encoded = encoder.encode([[10] * 9, [20] * 9])
    assert encoded.ids == (CLS, 10, 10, SEP, 20, 20, 20, SEP)
    assert encoded.truncated


def test_half_a_character_is_replaced():
    assert without_lone_surrogates("a\ud83db") == "a\ufffdb"
    assert without_lone_surrogates("a\ud83d\ude42b") == "a🙂b"
    assert without_lone_surrogates("plain") == "plain"


@pytest.mark.parametrize("half", ["\ud800", "\udfff", "a \udcff b"])
def test_half_a_character_is_encoded_without_complaint(tokenizer, pieces, half):
    for each in (tokenizer, sentencepiece_tokenizer(pieces, 64)):
        assert PairEncoder(each, Layout()).tokenize([half])[half] is not None


def test_bos_and_eos_stand_in_for_cls_and_sep():
    class Tokenizer:
        cls_token_id = sep_token_id = None
        bos_token_id, eos_token_id = 7, 8

    assert PairEncoder(Tokenizer(), Layout()).encode([[1], [2]]).ids == (7, 1, 8, 2, 8)
    Tokenizer.eos_token_id = None
    with pytest.raises(ValueError, match=r"no \[CLS\] and \[SEP\] tokens"):
        PairEncoder(Tokenizer(), Layout())
