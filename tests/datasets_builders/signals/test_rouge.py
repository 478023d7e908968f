"""ROUGE-N against counts made by hand."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.signals import Rouge
from bleurt_repro.datasets_builders.synthetic.config import SyntheticConfig

TABLE = [
    (2, "the cat sat on the mat", "the cat sat on a mat", (3 / 5, 3 / 5, 3 / 5)),
    (2, "the cat sat on the mat", "The cat, sat!", (1.0, 2 / 5, 4 / 7)),
    (1, "the cat sat on the mat", "the the the", (2 / 3, 2 / 6, 4 / 9)),
    (2, "the cat sat", "", (0.0, 0.0, 0.0)),
    (2, "one", "one", (0.0, 0.0, 0.0)),
    (1, "one", "one", (1.0, 1.0, 1.0)),
]


@pytest.mark.parametrize(("order", "reference", "candidate", "expected"), TABLE)
def test_precision_recall_and_f_of_the_library(order, reference, candidate, expected):
    assert Rouge(order, "rouge-score")([reference], [candidate]).tolist() == [pytest.approx(list(expected))]


def test_the_default_is_two_words_as_in_the_papers_implementation():
    assert (Rouge().order, Rouge().implementation) == (2, "seq2seq")
    assert Rouge()([], []).shape == (0, 3)
    nine = "one two three four five six seven eight nine"
    assert Rouge(9)([nine], [nine]).tolist() == [[1, 1, pytest.approx(1)]]
    for order in (0, 10):
        with pytest.raises(ValueError, match=f"1 to 9 words, found {order}"):
            Rouge(order)


def test_each_reference_has_its_candidate():
    with pytest.raises(ValueError, match="shorter"):
        Rouge()(["one two", "three four"], ["one two"])


F_SLACK = 1e-8  # in the denominator of seq2seq's F


@pytest.mark.parametrize(
    ("order", "reference", "candidate", "expected"),
    [
        # "the cat" and "cat the" count once each: of 3 different bigrams of the candidate 2 are in the reference's 3
        (2, "the cat the cat sat", "the cat the cat ran", (2 / 3, 2 / 3)),
        (2, "The cat sat", "the cat sat", (1 / 2, 1 / 2)),  # its own case
        (2, "the cat sat.", "the cat sat", (1 / 2, 1 / 2)),  # punctuation belongs to the word
        (2, "the cat  sat", "the cat sat", (1 / 2, 1 / 3)),  # two blanks have an empty word between them
        (1, "the cat", "the the the", (1.0, 1 / 2)),
        (2, "one", "one", (0.0, 0.0)),
        (2, "the cat sat", "", (0.0, 0.0)),
        (1, "the cat sat", "", (0.0, 0.0)),
    ],
)
def test_seq2seq_counts_sets_of_words_between_blanks(order, reference, candidate, expected):
    precision, recall = expected
    f1 = 2 * precision * recall / (precision + recall + F_SLACK)
    scores = Rouge(order, "seq2seq")([reference], [candidate]).tolist()
    assert scores == [pytest.approx([precision, recall, f1], abs=1e-12)]


def test_the_implementations_differ_in_case_and_punctuation():
    reference, candidate = (
        "The old bridge, closed last winter, opens again in May.",
        "the old bridge opens again in may",
    )
    f1 = [Rouge(2, name)([reference], [candidate])[0, 2] for name in ("seq2seq", "rouge-score")]
    # seq2seq: "opens again", "again in" of 9 and 6 bigrams; rouge-score: those, "the old", "old bridge" and "in may"
    assert f1 == pytest.approx([2 * (2 / 6) * (2 / 9) / (2 / 6 + 2 / 9), 2 * (5 / 6) * (5 / 9) / (5 / 6 + 5 / 9)])


def test_the_implementation_is_part_of_the_recipe():
    assert SyntheticConfig(rouge_implementation="rouge-score").to_dict()["rouge_implementation"] == "rouge-score"
    with pytest.raises(ValueError, match=r"rouge_implementation must be of seq2seq, rouge-score, found \['rouge'\]"):
        SyntheticConfig(rouge_implementation="rouge")
    with pytest.raises(ValueError, match="implementation of ROUGE must be seq2seq or rouge-score, found 'rouge'"):
        Rouge(2, "rouge")
