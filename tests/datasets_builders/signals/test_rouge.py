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
def test_precision_recall_and_f(order, reference, candidate, expected):
    assert Rouge(order)([reference], [candidate]).tolist() == [pytest.approx(list(expected))]


def test_the_default_is_two_words_as_in_the_papers_implementation():
    assert Rouge().order == 2
    assert Rouge()([], []).shape == (0, 3)
    nine = "one two three four five six seven eight nine"
    assert Rouge(9)([nine], [nine]).tolist() == [[1, 1, 1]]
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
    found = Rouge(order, "seq2seq")([reference], [candidate]).tolist()
    assert found == [pytest.approx([precision, recall, f1], abs=1e-12)]


def test_the_implementation_is_part_of_the_recipe():
    assert SyntheticConfig(rouge_implementation="seq2seq").to_dict()["rouge_implementation"] == "seq2seq"
    with pytest.raises(ValueError, match="rouge_implementation must be rouge-score or seq2seq, found 'rouge'"):
        SyntheticConfig(rouge_implementation="rouge")
    with pytest.raises(ValueError, match="ROUGE must be of rouge-score or seq2seq, found 'rouge'"):
        Rouge(2, "rouge")
