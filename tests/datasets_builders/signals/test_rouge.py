"""ROUGE-N against counts made by hand."""

from __future__ import annotations

import pytest

from bleurt_repro.datasets_builders.signals import Rouge

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
    with pytest.raises(ValueError, match="1 to 9 words, found 0"):
        Rouge(0)


def test_each_reference_has_its_candidate():
    with pytest.raises(ValueError, match="shorter"):
        Rouge()(["one two", "three four"], ["one two"])
